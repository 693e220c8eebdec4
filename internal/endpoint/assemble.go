package endpoint

import (
	"encoding/json"
	"fmt"
	"strings"

	"issuesmith/internal/transcript"
)

// maxCalls of one turn; more is not an answer but a flood.
const maxCalls = 256

// An assembly puts one turn together from its chunks.
type assembly struct {
	content, reasoning strings.Builder
	calls              []*call
	finish             string
	model, id          string
	usage              *usage
	timings            *timings
	begun              bool // a token has arrived
}

// A call as far as it has arrived.
type call struct {
	index number
	id    string // as on the wire
	name  string
	args  strings.Builder
	nest  nesting
	extra json.RawMessage
}

// take adds a chunk; token says whether it brought a part of the answer.
func (a *assembly) take(c *chunk) (token bool, err error) {
	if a.id == "" {
		a.id = string(c.ID)
	}
	if c.Model != "" {
		a.model = string(c.Model)
	}
	if c.Usage != nil && (c.Usage.Prompt.given || c.Usage.Completion.given) {
		a.usage = c.Usage
	}
	if c.Timings != nil {
		a.timings = c.Timings
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index.value != 0 {
			continue // one answer was asked for
		}
		d := choice.Delta
		if d == nil && !a.begun { // a whole message; after deltas it would only repeat them
			d = choice.Message
		}
		if d != nil {
			some, err := a.add(d)
			if err != nil {
				return token, err
			}
			token = token || some
		}
		if choice.Finish != "" {
			a.finish = string(choice.Finish)
			token = true
		}
	}
	a.begun = a.begun || token
	return token, nil
}

func (a *assembly) add(d *delta) (token bool, err error) {
	reasoning := d.ReasoningContent.text
	if reasoning == "" { // some servers send both names with the same text
		reasoning = d.Reasoning.text
	}
	reasoning += d.Content.thinking
	a.content.WriteString(d.Content.text)
	a.content.WriteString(string(d.Refusal))
	a.reasoning.WriteString(reasoning)
	for i := range d.Calls {
		if err := a.call(&d.Calls[i]); err != nil {
			return true, err
		}
	}
	return d.Content.text != "" || d.Refusal != "" || reasoning != "" || len(d.Calls) > 0, nil
}

// call adds a fragment to the call it belongs to.
func (a *assembly) call(f *fragment) error {
	name, args := string(f.Function.Name), string(f.Function.Arguments)
	c := a.owner(f, name, args)
	if c == nil {
		if len(a.calls) == maxCalls {
			return fmt.Errorf("%w: more than %d calls in one turn", errNotChat, maxCalls)
		}
		c = &call{index: f.Index}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = string(f.ID)
	}
	if c.name == "" {
		c.name = name
	}
	if len(f.Extra) > 0 && string(f.Extra) != "null" {
		c.extra = f.Extra
	}
	if c.nest.whole() && strings.HasPrefix(strings.TrimSpace(args), "{") {
		// Arguments that begin again: a repetition of the whole, or the real ones after a
		// placeholder {}.
		c.args.Reset()
		c.nest = nesting{}
	}
	c.args.WriteString(args)
	feed(&c.nest, args)
	return nil
}

// owner finds the call a fragment continues: by id, else by index, else the last one. It is
// nil when the fragment begins a new call.
func (a *assembly) owner(f *fragment, name, args string) *call {
	var near *call // the last call with the fragment's index, or the last at all
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		if f.ID != "" && c.id == string(f.ID) && !c.other(f, name) {
			return c
		}
		if near == nil && (!f.Index.given || c.index == f.Index) {
			near = c
		}
	}
	switch {
	case near == nil:
		return nil
	case name == "":
		return near // the rest of a call; some servers give every fragment a new id
	case near.name == "":
		return near
	case near.name != name:
		return nil
	case f.ID != "" && near.id != "":
		return nil // Ollama: whole calls, all with index 0, told apart by their ids
	case near.nest.whole() && args != "" && args != near.args.String():
		return nil // no ids: a second call of the same tool
	}
	return near // the name is repeated with every fragment
}

// other says that a fragment with the call's id still belongs to another one: there are servers
// that give one id to every call of a turn.
func (c *call) other(f *fragment, name string) bool {
	return c.index.given && f.Index.given && c.index != f.Index || c.name != "" && name != "" && c.name != name
}

// whole says that every call has all of its arguments.
func (a *assembly) whole() bool {
	for _, c := range a.calls {
		if c.args.Len() > 0 && !json.Valid([]byte(c.args.String())) {
			return false
		}
	}
	return true
}

// verdict says whether what has arrived is a turn, now that nothing more comes.
func (a *assembly) verdict() (Kind, string) {
	switch strings.ToLower(a.finish) {
	case "":
		return Truncated, "the answer ended without a finish reason"
	case "error":
		return Server, "the endpoint gave up (finish reason error)"
	case "abort", "cancelled", "canceled":
		return Truncated, "the endpoint stopped the answer (finish reason " + a.finish + ")"
	case "length", "model_length", "max_tokens": // OpenAI, Mistral, Anthropic
		a.finish = "length"
		if !a.whole() {
			return Length, "the output limit cut a call; nothing of it was run"
		}
	case "content_filter":
		if !a.whole() {
			return Truncated, "a content filter cut a call; nothing of it was run"
		}
	}
	for _, c := range a.calls {
		if c.name == "" {
			return Protocol, "a call without a name"
		}
	}
	return "", ""
}

// message is the turn's message; newID makes up ids for calls that have none.
func (a *assembly) message(newID func() string) Message {
	m := Message{Role: Assistant, Content: a.content.String(), Reasoning: a.reasoning.String()}
	taken := make(map[string]bool)
	for _, c := range a.calls {
		if !usableID(c.id) || taken[c.id] {
			c.id = newID()
		}
		taken[c.id] = true
		args := c.args.String()
		if strings.TrimSpace(args) == "" {
			args = "{}"
		}
		m.Calls = append(m.Calls, transcript.Call{ID: c.id, Name: c.name, Arguments: args})
	}
	return m
}

// usableID keeps ids that go back into requests and records within reason.
func usableID(id string) bool {
	if id == "" || len(id) > 200 {
		return false
	}
	for _, r := range id {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return true
}
