package model

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ask sends a chat request and returns status and body; an error of reading the body
// is what a reset looks like.
func ask(t *testing.T, s *Script, key string, messages ...map[string]any) (int, string, error) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "scripted", "stream": true, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Base+"/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(out), err
}

func user(s string) map[string]any { return map[string]any{"role": "user", "content": s} }

func called(id string) map[string]any {
	return map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "bash", "arguments": "{}"}}}}
}

// arguments joins the argument fragments of a stream, as a client does.
func arguments(t *testing.T, body string) string {
	t.Helper()
	var out strings.Builder
	for scan := bufio.NewScanner(strings.NewReader(body)); scan.Scan(); {
		data, ok := strings.CutPrefix(scan.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		for _, c := range chunk.Choices {
			for _, call := range c.Delta.ToolCalls {
				out.WriteString(call.Function.Arguments)
			}
		}
	}
	return out.String()
}

func script(t *testing.T, name, key string, conversations ...Conversation) *Script {
	t.Helper()
	server, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s, err := server.Script(name, key, conversations...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConversationsAreToldApart(t *testing.T) {
	s := script(t, "apart", "key",
		Conversation{When: Holding("second"), Turns: []Turn{Bash("echo second")}},
		Conversation{Turns: []Turn{Bash("echo first"), Submit("done")}})
	_, a, _ := ask(t, s, "key", user("the first task"))
	_, b, _ := ask(t, s, "key", user("the second task"))
	if got := arguments(t, a); got != `{"command":"echo first"}` {
		t.Errorf("first: %s", got)
	}
	if got := arguments(t, b); got != `{"command":"echo second"}` {
		t.Errorf("second: %s", got)
	}
	_, c, _ := ask(t, s, "key", user("the first task"), called("c01t000k0"), map[string]any{"role": "tool", "content": "first"})
	if !strings.Contains(c, `"submit"`) || !strings.Contains(c, `"finish_reason":"tool_calls"`) {
		t.Errorf("turn two: %s", c)
	}
	if p := s.Problems(); len(p) > 0 {
		t.Error(p)
	}
	if n := len(s.Requests()); n != 3 {
		t.Errorf("%d requests kept", n)
	}
}

func TestUnforeseenAndUnused(t *testing.T) {
	s := script(t, "unforeseen", "key", Conversation{Turns: []Turn{Bash("true"), Submit("x")}})
	if status, _, _ := ask(t, s, "other", user("x")); status != http.StatusUnauthorized {
		t.Errorf("wrong key: %d", status)
	}
	_, _, _ = ask(t, s, "key", user("x")) // seen below
	if status, _, _ := ask(t, s, "key", user("x")); status != http.StatusUnprocessableEntity {
		t.Errorf("a second conversation: %d", status)
	}
	if status, _, _ := ask(t, s, "key", user("x"), called("other0001")); status != http.StatusUnprocessableEntity {
		t.Errorf("a foreign turn: %d", status)
	}
	if p := s.Problems(); len(p) != 3 || !strings.Contains(p[2], "turn 1 was asked for 0 times") {
		t.Errorf("problems: %q", p)
	}
}

func TestFailuresComeFirst(t *testing.T) {
	s := script(t, "failures", "", Conversation{Turns: []Turn{Bash("echo long enough to be cut").Failing(
		Status(http.StatusTooManyRequests, "slow down", "Retry-After", "1"), Page(), Reset(), Truncated(), Length(), Stall(time.Millisecond))}})
	want := []struct {
		status int
		holds  string
		broken bool
	}{
		{429, "slow down", false},
		{200, "<!doctype html>", false},
		{200, "tool_calls", true},
		{200, `{\"command\"`, false},
		{200, `"finish_reason":"length"`, false},
		{200, "tool_calls", true},
		{200, `"finish_reason":"tool_calls"`, false},
	}
	for i, w := range want {
		status, body, err := ask(t, s, "", user("x"))
		if status != w.status || !strings.Contains(body, w.holds) || (err != nil) != w.broken {
			t.Errorf("answer %d: %d, error %v:\n%s", i, status, err, body)
		}
	}
}
