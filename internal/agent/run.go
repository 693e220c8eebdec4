package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"issuesmith/internal/endpoint"
	"issuesmith/internal/tool"
	"issuesmith/internal/transcript"
)

const (
	maxIdle  = 3  // turns in a row without a valid call
	maxCalls = 32 // calls of one turn that are run
)

// Run holds one conversation. The error is ctx's, or the run cannot go on (disk full, sandbox broken); the Result then
// says how far it came.
func Run(ctx context.Context, o Options) (*Result, error) {
	c := &conversation{Options: o, steer: steer{started: time.Now()}}
	c.result.Usage.CostKnown = true
	limited, cancel := o.Limits.context(ctx)
	defer cancel()
	err := c.hold(limited)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		reason := o.Limits.timeReason()
		c.end(reason, timeDetail(reason, c.result.Calls))
		err = nil
	}
	c.result.Elapsed = time.Since(c.steer.started)
	if c.unpriced > 0 && o.Limits.Cost > 0 {
		c.result.Detail += fmt.Sprintf("; the cost of %d model calls is not known and was counted as 0", c.unpriced)
	}
	return &c.result, err
}

// A conversation is the state of a Run.
type conversation struct {
	Options
	messages []endpoint.Message // appended to, never changed
	tools    []endpoint.Tool
	steer    steer
	result   Result
	ended    bool
	step     int // requests so far, failed ones too
	edits    int // successful ones
	idle     int // turns since the last valid call
	unpriced int // turns of unknown cost
	steps    [][]print
}

func (c *conversation) end(r Reason, detail string) {
	c.result.Reason, c.result.Detail, c.ended = r, detail, true
}

// hold asks, acts and observes until something ends the attempt.
func (c *conversation) hold(ctx context.Context) error {
	defs := c.Tools.Definitions()
	c.tools = Tools(defs)
	c.messages = Messages(c.Brief, defs, c.Limits)
	err := c.record(transcript.KindPrompt, transcript.Prompt{System: c.messages[0].Content, Task: c.messages[1].Content})
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if reason, detail := c.Limits.spent(c.result.Calls, c.result.Usage, time.Now()); reason != "" {
			c.end(reason, detail)
			return nil
		}
		turn, err := c.ask(ctx)
		if err != nil || c.ended {
			return err
		}
		if err := c.act(ctx, turn); err != nil || c.ended {
			return err
		}
	}
}

// ask makes one request. A failure of the endpoint ends the attempt; the error is ctx's or the transcript's.
func (c *conversation) ask(ctx context.Context) (*endpoint.Turn, error) {
	c.step++
	began := time.Now()
	turn, err := c.Client.Complete(ctx, c.messages, c.tools)
	if err != nil {
		failure := transcript.Model{Error: err.Error(), Seconds: time.Since(began).Seconds()}
		var typed *endpoint.Error
		if errors.As(err, &typed) {
			failure.ErrorKind, failure.Model = string(typed.Kind), typed.Model
		}
		if werr := c.record(transcript.KindModel, failure); werr != nil {
			return nil, werr
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.result.Err = err
		c.end(Endpoint, fmt.Sprintf("the model endpoint failed after %d model calls", c.result.Calls))
		return nil, nil
	}
	c.result.Calls++
	c.result.Usage = add(c.result.Usage, turn.Usage)
	if !turn.Usage.CostKnown {
		c.unpriced++
	}
	return turn, c.record(transcript.KindModel, transcript.Model{
		RequestID: turn.RequestID, Model: turn.Model,
		Content: turn.Message.Content, Reasoning: turn.Message.Reasoning, Calls: turn.Message.Calls,
		Finish: turn.Finish, Usage: turn.Usage,
		FirstToken: turn.FirstToken.Seconds(), Seconds: turn.Elapsed.Seconds(),
	})
}

// act takes a turn into the history, runs its calls in order and answers every one of them.
func (c *conversation) act(ctx context.Context, turn *endpoint.Turn) error {
	answer := c.clean(turn.Message)
	c.messages = append(c.messages, history(answer))
	note := c.steer.note(c.Limits, c.result.Calls, c.result.Usage, time.Now())
	doing, valid := "", false
	var step []print
	for i, call := range answer.Calls {
		last := ""
		if i == len(answer.Calls)-1 {
			last = note
		}
		done, err := c.run(ctx, call, i, last)
		if err != nil {
			return err
		}
		if done != nil {
			step = append(step, done.print)
			valid = valid || done.valid
			doing = describe(call)
		}
	}
	if len(answer.Calls) == 0 {
		c.messages = append(c.messages, endpoint.Message{Role: endpoint.User, Content: strings.TrimSpace(askForCall(turn.Finish) + "\n" + note)})
		doing = "no tool call"
	}
	c.steps = append(c.steps, step)
	if c.idle++; valid {
		c.idle = 0
	}
	if c.Progress != nil {
		c.Progress(Progress{Step: c.step, Calls: c.result.Calls, Doing: c.Tools.Clean(doing), Usage: c.result.Usage})
	}
	switch {
	case c.ended:
	case c.idle >= maxIdle:
		c.end(NoCall, fmt.Sprintf("%d turns in a row without a valid tool call, after %d model calls", c.idle, c.result.Calls))
	case repeated(c.steps):
		c.end(NoProgress, fmt.Sprintf("the same call gave the same result %d times within %d steps, after %d model calls", repeatLimit, repeatWindow, c.result.Calls))
	}
	return nil
}

// A done is a call that was run.
type done struct {
	print print
	valid bool
}

// run makes one call, the i-th of its turn, and answers it; nil when it was not run because of what came before it.
func (c *conversation) run(ctx context.Context, call transcript.Call, i int, note string) (*done, error) {
	if err := c.record(transcript.KindCall, transcript.ToolCall(call)); err != nil {
		return nil, err
	}
	began := time.Now()
	var r tool.Result
	var ran *done
	switch {
	case c.ended:
		r = tool.Result{Text: "not run: submit came before it.", Failed: true}
	case i >= maxCalls:
		r = tool.Result{Text: fmt.Sprintf("not run: at most %d calls in one turn.", maxCalls), Failed: true}
	default:
		var valid bool
		var err error
		r, valid, err = c.Tools.Call(ctx, call.Name, call.Arguments)
		if err != nil {
			return nil, c.broken(ctx, call, began, err)
		}
		if r.Changed {
			c.edits++
		}
		ran = &done{printOf(call, r, c.edits), valid}
	}
	if r.Submit != nil {
		c.result.Submission = *r.Submit
		c.end(Submitted, fmt.Sprintf("submitted after %d model calls", c.result.Calls))
	}
	text := r.Text
	if text == "" {
		text = "(no output)"
	}
	if note != "" {
		text += "\n" + note
	}
	c.messages = append(c.messages, endpoint.Message{Role: endpoint.ToolRole, Content: text, CallID: call.ID})
	return ran, c.record(transcript.KindResult, transcript.ToolResult{
		ID: call.ID, Output: text, Failed: r.Failed, Seconds: time.Since(began).Seconds(),
	})
}

// broken records a call that could not be brought to an end and says why the run stops.
func (c *conversation) broken(ctx context.Context, call transcript.Call, began time.Time, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	werr := c.record(transcript.KindResult, transcript.ToolResult{
		ID: call.ID, Output: "interrupted: " + err.Error(), Failed: true, Seconds: time.Since(began).Seconds(),
	})
	if werr != nil && ctx.Err() == nil {
		return errors.Join(err, werr)
	}
	return err
}

func (c *conversation) record(kind transcript.Kind, data any) error {
	if err := c.Transcript.Write(kind, c.Attempt, c.step, data); err != nil {
		return fmt.Errorf("writing the transcript: %w", err)
	}
	return nil
}

// toolName is what chat servers take as the name of a function.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// clean takes known values out of an answer before anything uses it. What a server sent is not copied in place: the record
// of the turn holds it too.
func (c *conversation) clean(m endpoint.Message) endpoint.Message {
	m.Role = endpoint.Assistant
	m.Content, m.Reasoning = c.Tools.Clean(m.Content), c.Tools.Clean(m.Reasoning)
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		m.Calls[i].Arguments = c.Tools.Clean(m.Calls[i].Arguments)
	}
	return m
}

// history is an answer as it goes back to the endpoint. Servers refuse a whole conversation in which one old call has arguments that
// are not JSON or a name they do not allow, or that has an answer with nothing in it: what is wrong is told in the call's result instead.
func history(m endpoint.Message) endpoint.Message {
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		call := &m.Calls[i]
		arguments := strings.TrimSpace(call.Arguments)
		if len(arguments) > tool.MaxArguments || !strings.HasPrefix(arguments, "{") || !json.Valid([]byte(arguments)) {
			call.Arguments = "{}"
		}
		if !toolName.MatchString(call.Name) {
			call.Name = "unknown"
		}
	}
	if len(m.Calls) == 0 && strings.TrimSpace(m.Content) == "" {
		m.Content = "(no answer)"
	}
	return m
}

// askForCall answers a turn without a call.
func askForCall(finish string) string {
	text := "That turn had no tool call, so nothing was done. Go on with a tool call, or call submit when the change is complete."
	if finish == "length" {
		text = "Your answer reached the length limit before any tool call. Be brief and go on with a tool call."
	}
	return text
}

// describe is a call in one line for a person: its name and the argument that says most.
func describe(call transcript.Call) string {
	name := line(call.Name, 40)
	var a struct{ Command, Path, Pattern, Summary string }
	if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil {
		return name // the call's own answer says what is wrong with them
	}
	for _, s := range []string{a.Command, a.Pattern, a.Path, a.Summary} {
		if s = line(s, 100); s != "" {
			return name + ": " + s
		}
	}
	return name
}
