package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"issuesmith/internal/transcript"
)

// A replay answers with the turns that a transcript holds, in their order.
type replay struct {
	name         string
	turns        []recorded
	at           int
	said         int // turns of the current attempt answered so far
	failed       bool
	conversation conversation
}

// A recorded turn.
type recorded struct {
	attempt int
	model   transcript.Model
}

func openReplay(file string) (Client, error) {
	f, err := os.Open(file) // #nosec G304 -- the file the person named
	if err != nil {
		return nil, fmt.Errorf("model replay/%s: %w; name a transcript of a run", file, err)
	}
	defer func() { _ = f.Close() }() // only read
	return NewReplay(f, file)
}

// NewReplay reads a transcript and returns a client that answers with its recorded turns and
// failures, usage and cost as recorded. Each attempt of the record is one conversation. name is for
// messages: Name is replay/name.
func NewReplay(r io.Reader, name string) (Client, error) {
	p := &replay{name: name, conversation: conversation{model: replayName, usage: true}}
	for ev, err := range transcript.Read(r) {
		if err != nil {
			return nil, fmt.Errorf("reading the transcript %s: %w", name, err)
		}
		if ev.Kind != transcript.KindModel {
			continue
		}
		t := recorded{attempt: ev.Attempt}
		if err := json.Unmarshal(ev.Data, &t.model); err != nil {
			return nil, fmt.Errorf("reading the transcript %s: turn %d: %w", name, len(p.turns)+1, err)
		}
		p.turns = append(p.turns, t)
	}
	if len(p.turns) == 0 {
		return nil, fmt.Errorf("the transcript %s holds no turn of a model, so there is nothing to replay", name)
	}
	return p, nil
}

// Name is replay/name.
func (p *replay) Name() string { return replayName + "/" + p.name }

// Window is unknown.
func (p *replay) Window(context.Context) int { return 0 }

// Request is the body an endpoint would get.
func (p *replay) Request(messages []Message, tools []Tool) ([]byte, error) {
	body, err := p.conversation.encode(messages, tools)
	return append([]byte(nil), body...), err
}

// Complete answers with the next recorded turn. A conversation that does not go the recorded way
// is an *Error of kind Protocol.
func (p *replay) Complete(ctx context.Context, messages []Message, _ []Tool) (*Turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answered := 0
	for _, m := range messages {
		if m.Role == Assistant {
			answered++
		}
	}
	if p.at == len(p.turns) {
		return nil, p.fail(Protocol, fmt.Sprintf("the record ends after turn %d, but the conversation goes on", p.at))
	}
	next := p.turns[p.at]
	if p.at > 0 && next.attempt != p.turns[p.at-1].attempt && answered == 0 {
		p.said, p.failed = 0, false
	}
	// After a recorded failure the conversation may have been shortened: only its end is known.
	if answered != p.said && !p.failed || p.begins(next) && answered != 0 {
		return nil, p.fail(Protocol, p.astray(next, answered))
	}
	p.at++
	if next.model.Error != "" {
		p.failed = true
		kind := Kind(next.model.ErrorKind)
		if kind == "" {
			kind = Server
		}
		return nil, p.fail(kind, "as recorded: "+next.model.Error)
	}
	p.said++
	return next.turn(), nil
}

// begins says that a turn is the first of its attempt.
func (p *replay) begins(next recorded) bool {
	return p.at == 0 || p.turns[p.at-1].attempt != next.attempt
}

func (p *replay) astray(next recorded, answered int) string {
	switch {
	case p.begins(next):
		return fmt.Sprintf("turn %d of the record begins attempt %d, but the conversation has %d answers already: it went another way", p.at+1, next.attempt, answered)
	case answered == 0:
		return fmt.Sprintf("turn %d of the record goes on with attempt %d, but the conversation has just begun: the attempt ended earlier than recorded", p.at+1, next.attempt)
	}
	return fmt.Sprintf("turn %d of the record follows %d answers, but the conversation has %d: it went another way", p.at+1, p.said, answered)
}

func (p *replay) fail(kind Kind, message string) *Error {
	return &Error{Kind: kind, Message: plain(message, ""), Model: p.Name()}
}

func (r recorded) turn() *Turn {
	m := r.model
	return &Turn{
		Message:    Message{Role: Assistant, Content: m.Content, Reasoning: m.Reasoning, Calls: slices.Clone(m.Calls)},
		Finish:     m.Finish,
		Usage:      m.Usage,
		FirstToken: seconds(m.FirstToken),
		Elapsed:    seconds(m.Seconds),
		Model:      m.Model,
		RequestID:  m.RequestID,
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
