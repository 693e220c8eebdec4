package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"issuesmith/internal/transcript"
)

// A conversation makes the bodies of requests. They are, byte for byte, what go-openai makes
// of its ChatCompletionRequest, but a message is encoded once and its bytes are kept, so that a
// step of a long conversation costs its new messages and not the square of its length. The
// bytes of a turn's messages are a prefix of the next turn's: endpoints cache by prefix.
type conversation struct {
	model     string
	reasoning bool // send reasoning back (DeepSeek)
	usage     bool // ask for usage with stream_options
	// signatures are Gemini's extra_content by the id of the call, which it demands back.
	signatures map[string]json.RawMessage

	body  []byte // the opening of the request and the encoded messages
	seen  []Message
	ends  []int // ends[i] is where seen[i] ends in body
	open  int   // where the messages begin
	tools []Tool
	tail  []byte // what follows the messages
}

const messagesKey = `"messages":[]`

// encode returns the body for messages and tools. It is valid until the next call.
func (c *conversation) encode(messages []Message, tools []Tool) ([]byte, error) {
	if c.tail == nil || !slices.EqualFunc(c.tools, tools, sameTool) {
		if err := c.frame(tools); err != nil {
			return nil, err
		}
	}
	// Strings that were kept compare by their pointers, so this costs next to nothing.
	same := 0
	for same < len(c.seen) && same < len(messages) && sameMessage(c.seen[same], messages[same]) {
		same++
	}
	c.cut(same)
	for i := same; i < len(messages); i++ {
		if err := c.add(messages[i]); err != nil {
			c.cut(i)
			return nil, fmt.Errorf("encoding message %d: %w", i+1, err)
		}
	}
	end := len(c.body)
	c.body = append(c.body, c.tail...)
	whole := c.body
	c.body = c.body[:end] // the next message overwrites the tail
	return whole, nil
}

// frame encodes what stands before and after the messages, by go-openai's order of fields.
func (c *conversation) frame(tools []Tool) error {
	request := openai.ChatCompletionRequest{
		Model:    c.model,
		Messages: []openai.ChatCompletionMessage{},
		Stream:   true,
	}
	if c.usage {
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	for _, t := range tools {
		request.Tools = append(request.Tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Schema},
		})
	}
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the tools: %w", err)
	}
	head, tail, found := bytes.Cut(text, []byte(messagesKey))
	if !found {
		return fmt.Errorf("encoding the request: no %s in it", messagesKey)
	}
	opening := append(slices.Clip(head), messagesKey[:len(messagesKey)-1]...)
	if !bytes.HasPrefix(c.body, opening) || c.open != len(opening) {
		c.body, c.seen, c.ends, c.open = opening, nil, nil, len(opening)
	}
	c.tail = append([]byte("]"), tail...)
	c.tools = slices.Clone(tools)
	return nil
}

// cut forgets all but the first n messages.
func (c *conversation) cut(n int) {
	if n >= len(c.seen) {
		return
	}
	clear(c.seen[n:])
	c.seen, c.ends = c.seen[:n], c.ends[:n]
	end := c.open
	if n > 0 {
		end = c.ends[n-1]
	}
	c.body = c.body[:end]
}

func (c *conversation) add(m Message) error {
	text, err := json.Marshal(c.wire(m))
	if err != nil {
		return err
	}
	if len(c.seen) > 0 {
		c.body = append(c.body, ',')
	}
	c.body = append(c.body, text...)
	m.Calls = slices.Clone(m.Calls)
	c.seen, c.ends = append(c.seen, m), append(c.ends, len(c.body))
	return nil
}

// wire is the message as it is sent.
func (c *conversation) wire(m Message) any {
	w := openai.ChatCompletionMessage{Role: string(m.Role), Content: m.Content, ToolCallID: m.CallID}
	signed := false
	for _, call := range m.Calls {
		w.ToolCalls = append(w.ToolCalls, openai.ToolCall{
			ID:       call.ID,
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: call.Name, Arguments: objectText(call.Arguments)},
		})
		signed = signed || c.signatures[call.ID] != nil
	}
	// Empty content would be left out, which some servers refuse.
	if w.Content == "" && len(w.ToolCalls) == 0 {
		w.Content = "(no output)"
	}
	// DeepSeek refuses a thinking model's calls without their reasoning; Mistral refuses the field.
	if c.reasoning && len(m.Calls) > 0 {
		w.ReasoningContent = m.Reasoning
	}
	if signed {
		return c.sign(w)
	}
	return w
}

// A signedMessage is an assistant's message whose calls carry what go-openai has no field for.
type signedMessage struct {
	Role    string       `json:"role"`
	Content string       `json:"content,omitempty"`
	Calls   []signedCall `json:"tool_calls"`
}

type signedCall struct {
	openai.ToolCall
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

func (c *conversation) sign(w openai.ChatCompletionMessage) signedMessage {
	s := signedMessage{Role: w.Role, Content: w.Content}
	for _, call := range w.ToolCalls {
		s.Calls = append(s.Calls, signedCall{ToolCall: call, Extra: c.signatures[call.ID]})
	}
	return s
}

// objectText is a call's arguments as a request may hold them. A model's malformed JSON is
// answered by the tool, but has to go back in the history, where many servers parse it and refuse
// the whole request: there it becomes an object that holds the text.
func objectText(arguments string) string {
	if strings.HasPrefix(strings.TrimSpace(arguments), "{") && json.Valid([]byte(arguments)) {
		return arguments
	}
	text, err := json.Marshal(map[string]string{"malformed": arguments})
	if err != nil {
		return "{}" // cannot happen with strings
	}
	return string(text)
}

func sameMessage(a, b Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning && a.CallID == b.CallID &&
		slices.EqualFunc(a.Calls, b.Calls, func(x, y transcript.Call) bool { return x == y })
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
