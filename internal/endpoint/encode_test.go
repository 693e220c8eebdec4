package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"

	"issuesmith/internal/config"
	"issuesmith/internal/transcript"
)

var bash = Tool{Name: "bash", Description: "run a <command> & wait", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)}

func talk() []Message {
	return []Message{
		{Role: System, Content: "be careful"},
		{Role: User, Content: "fix <it> & \"say\" so\u2028 – Änderung \xff"},
		{Role: Assistant, Content: "", Reasoning: "hm", Calls: []transcript.Call{{ID: "a", Name: "bash", Arguments: `{"command":"ls"}`}, {ID: "b", Name: "bash", Arguments: `{"command": ls}`}}},
		{Role: ToolRole, CallID: "a", Content: ""},
		{Role: ToolRole, CallID: "b", Content: "bad JSON"},
	}
}

func TestRequestBytes(t *testing.T) {
	t.Parallel()
	c := newTestChat(t, "http://127.0.0.1:1", nil)
	got, err := c.Request(talk(), []Tool{bash})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m","messages":[{"role":"system","content":"be careful"},` +
		`{"role":"user","content":"fix \u003cit\u003e \u0026 \"say\" so\u2028 – Änderung \ufffd"},` +
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},` +
		`{"id":"b","type":"function","function":{"name":"bash","arguments":"{\"malformed\":\"{\\\"command\\\": ls}\"}"}}]},` +
		`{"role":"tool","content":"(no output)","tool_call_id":"a"},{"role":"tool","content":"bad JSON","tool_call_id":"b"}],` +
		`"stream":true,"tools":[{"function":{"name":"bash","description":"run a \u003ccommand\u003e \u0026 wait","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}},"type":"function"}],` +
		`"stream_options":{"include_usage":true}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// No tools, no messages: still what go-openai would send, without an empty list of tools,
	// which Mistral refuses.
	got, err = c.Request(nil, nil)
	if err != nil || string(got) != `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}` {
		t.Errorf("empty request: %s, %v", got, err)
	}
}

// The assembled body is what go-openai's own encoder gives for the whole request, whatever the
// model is called.
func TestRequestIsGoOpenAIs(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"m", `odd","messages":[] name`, "a/b", "<>"} {
		c := newTestChat(t, "http://127.0.0.1:1", func(cfg *config.Config) { cfg.Model.Name = model })
		request := openai.ChatCompletionRequest{Model: model, Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true}}
		for _, m := range talk() {
			request.Messages = append(request.Messages, c.conversation.wire(m).(openai.ChatCompletionMessage))
		}
		request.Tools = []openai.Tool{{Type: "function", Function: &openai.FunctionDefinition{Name: bash.Name, Description: bash.Description, Parameters: bash.Schema}}}
		want, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Request(talk(), []Tool{bash})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("model %q: %v\ngot  %s\nwant %s", model, err, got, want)
		}
	}
}

func TestRequestOfProviders(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]struct{ usage, reasoning bool }{
		"mistral":  {usage: false}, // refuses both
		"openai":   {usage: true},
		"deepseek": {usage: true, reasoning: true},
	} {
		c := newTestChat(t, "http://127.0.0.1:1", func(cfg *config.Config) { cfg.Model.Provider = provider })
		got, err := c.Request(talk(), []Tool{bash})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(got), "stream_options") != want.usage || strings.Contains(string(got), "reasoning") != want.reasoning {
			t.Errorf("%s: %s", provider, got)
		}
	}
}

// The messages of one request are a prefix of the next one's, and what was kept is never wrong:
// after every change the body is the same as one encoded from nothing.
func TestRequestPrefix(t *testing.T) {
	t.Parallel()
	kept := newTestChat(t, "http://127.0.0.1:1", nil)
	rng := rand.New(rand.NewPCG(1, 2))
	var messages []Message
	tools := []Tool{bash}
	var last []byte
	for step := range 300 {
		appended := true
		switch rng.IntN(6) {
		case 0: // compaction, a new attempt, an edit
			if len(messages) > 3 {
				messages, appended = append(slices.Clone(messages[:rng.IntN(3)]), messages[len(messages)-1]), false
			}
		case 1:
			if i := len(messages) - 1; i > 0 && len(messages[i].Calls) > 0 {
				messages[i].Calls[0].Arguments, appended = fmt.Sprintf(`{"n":%d}`, step), false
			}
		case 2:
			messages = append(messages, Message{Role: Assistant, Calls: []transcript.Call{{ID: fmt.Sprint(step), Name: "bash", Arguments: "{}"}}})
		default:
			messages = append(messages, Message{Role: User, Content: strings.Repeat("<x>", rng.IntN(50))})
		}
		if rng.IntN(40) == 0 {
			tools = []Tool{{Name: fmt.Sprint("t", step), Schema: bash.Schema}}
		}
		got, err := kept.conversation.encode(messages, tools)
		if err != nil {
			t.Fatal(err)
		}
		fresh := newTestChat(t, "http://127.0.0.1:1", nil)
		want, err := fresh.Request(messages, tools)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("step %d: %v\ngot  %s\nwant %s", step, err, got, want)
		}
		if appended && !bytes.HasPrefix(got, last) {
			t.Fatalf("step %d: not a prefix:\n%s\n%s", step, last, got)
		}
		last = bytes.Clone(got[:len(got)-len(kept.conversation.tail)])
	}
}

func TestRequestRefusesABrokenSchema(t *testing.T) {
	t.Parallel()
	c := newTestChat(t, "http://127.0.0.1:1", nil)
	if _, err := c.Request(hello, []Tool{{Name: "x", Schema: json.RawMessage(`{"a":`)}}); err == nil {
		t.Error("no error")
	}
	if got, err := c.Request(hello, []Tool{bash}); err != nil || !json.Valid(got) {
		t.Errorf("after an error: %s, %v", got, err)
	}
}

// Gemini wants its thought signatures back with the calls.
func TestSignaturesGoBack(t *testing.T) {
	t.Parallel()
	c := newTestChat(t, "http://127.0.0.1:1", nil)
	turn, err := readAll(c, strings.NewReader(data(
		callChunk(`"id":"f1","function":{"name":"bash","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}`), stop)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Request([]Message{turn.Message}, nil)
	want := `{"role":"assistant","tool_calls":[{"id":"f1","type":"function","function":{"name":"bash","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}}]}`
	if err != nil || !strings.Contains(string(got), want) {
		t.Errorf("got %s, %v", got, err)
	}
}

// steps makes a conversation whose request has about size bytes, in steps of 9 KB of output.
func steps(size int) []Message {
	output := strings.Repeat("ok  \tpackage/of/some/name\t0.012s\n", 9000/33)
	messages := []Message{{Role: System, Content: "be careful"}, {Role: User, Content: "fix it"}}
	for at := 0; at < size; at += len(output) + 200 {
		id := fmt.Sprintf("c%08d", at)
		messages = append(messages,
			Message{Role: Assistant, Content: "next", Calls: []transcript.Call{{ID: id, Name: "bash", Arguments: `{"command":"go test ./..."}`}}},
			Message{Role: ToolRole, CallID: id, Content: output})
	}
	return messages
}

// What one step costs when the conversation before it is so long; "go-openai" is what encoding
// the whole request each time would cost.
func BenchmarkRequest(b *testing.B) {
	for _, size := range []int{100 << 10, 1 << 20} {
		messages := steps(size)
		name := fmt.Sprintf("%dKB", size>>10)
		b.Run(name, func(b *testing.B) {
			c := newTestChat(b, "http://127.0.0.1:1", nil)
			tools := []Tool{bash}
			for b.Loop() {
				b.StopTimer()
				if _, err := c.conversation.encode(messages[:len(messages)-2], tools); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				body, err := c.conversation.encode(messages, tools)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(body)))
			}
		})
		b.Run(name+"/go-openai", func(b *testing.B) {
			c := newTestChat(b, "http://127.0.0.1:1", nil)
			for b.Loop() {
				request := openai.ChatCompletionRequest{Model: "m", Stream: true}
				for _, m := range messages {
					request.Messages = append(request.Messages, c.conversation.wire(m).(openai.ChatCompletionMessage))
				}
				body, err := json.Marshal(request)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(body)))
			}
		})
	}
}
