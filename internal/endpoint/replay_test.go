package endpoint

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"issuesmith/internal/config"
	"issuesmith/internal/transcript"
)

// record writes a transcript as the agent does: turns are of the attempts given.
func record(t *testing.T, turns ...recorded) string {
	t.Helper()
	var b strings.Builder
	line := func(kind transcript.Kind, attempt int, payload any) {
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		event, err := json.Marshal(transcript.Event{Time: time.Unix(1, 0).UTC(), Kind: kind, Attempt: attempt, Data: text})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(event, '\n'))
	}
	line(transcript.KindRun, 0, transcript.Run{ID: "r"})
	for _, turn := range turns {
		line(transcript.KindModel, turn.attempt, turn.model)
		line(transcript.KindResult, turn.attempt, transcript.ToolResult{ID: "x"})
	}
	return b.String()
}

func said(attempt int, content string) recorded {
	return recorded{attempt: attempt, model: transcript.Model{
		Content: content, Reasoning: "why", Finish: "tool_calls", RequestID: "id-" + content, Model: "real",
		Calls:      []transcript.Call{{ID: "c-" + content, Name: "bash", Arguments: `{"command":"ls"}`}},
		Usage:      transcript.Usage{Prompt: 10, Cached: 3, Completion: 2, Cost: 0.5, CostKnown: true},
		FirstToken: 0.25, Seconds: 1.5,
	}}
}

func failed(attempt int, kind Kind, words string) recorded {
	return recorded{attempt: attempt, model: transcript.Model{Error: words, ErrorKind: string(kind)}}
}

// answers makes a conversation with n answers.
func answers(n int) []Message {
	messages := []Message{{Role: System, Content: "s"}, {Role: User, Content: "u"}}
	for range n {
		messages = append(messages, Message{Role: Assistant, Content: "a"}, Message{Role: ToolRole, CallID: "x"})
	}
	return messages
}

func TestReplay(t *testing.T) {
	t.Parallel()
	// Each step: how many answers the conversation has, and what comes back.
	type step struct {
		answers int
		content string
		kind    Kind
		words   string
	}
	for name, tt := range map[string]struct {
		turns []recorded
		steps []step
	}{
		"two attempts": {
			turns: []recorded{said(1, "a"), said(1, "b"), said(2, "c"), said(2, "d")},
			steps: []step{{0, "a", "", ""}, {1, "b", "", ""}, {0, "c", "", ""}, {1, "d", "", ""}, {2, "", Protocol, "ends after turn 4"}},
		},
		"attempts of one turn": {
			turns: []recorded{said(1, "a"), said(2, "b"), said(3, "c")},
			steps: []step{{0, "a", "", ""}, {0, "b", "", ""}, {0, "c", "", ""}},
		},
		"goes on after the attempt": {
			turns: []recorded{said(1, "a"), said(2, "b")},
			steps: []step{{0, "a", "", ""}, {1, "", Protocol, "begins attempt 2"}},
		},
		"begins again too early": {
			turns: []recorded{said(1, "a"), said(1, "b")},
			steps: []step{{0, "a", "", ""}, {0, "", Protocol, "ended earlier"}},
		},
		"begins in the middle": {
			turns: []recorded{said(1, "a")},
			steps: []step{{3, "", Protocol, "another way"}},
		},
		"skips": {
			turns: []recorded{said(1, "a"), said(1, "b"), said(1, "c")},
			steps: []step{{0, "a", "", ""}, {2, "", Protocol, "has 2"}},
		},
		"recorded failures": {
			turns: []recorded{said(1, "a"), failed(1, ContextOverflow, "too long"), said(1, "b"), failed(2, RateLimit, "slow down")},
			steps: []step{{0, "a", "", ""}, {1, "", ContextOverflow, "too long"}, {0, "b", "", ""}, {0, "", RateLimit, "slow down"}},
		},
		"a failure of no kind": {
			turns: []recorded{failed(1, "", "gone")},
			steps: []step{{0, "", Server, "gone"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := NewReplay(strings.NewReader(record(t, tt.turns...)), "T")
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range tt.steps {
				turn, err := c.Complete(t.Context(), answers(s.answers), nil)
				if s.kind != "" {
					var e *Error
					if !errors.As(err, &e) || e.Kind != s.kind || !strings.Contains(err.Error(), s.words) {
						t.Fatalf("step %d: got %s", i, describe(turn, err))
					}
					continue
				}
				want := said(0, s.content).turn()
				if err != nil || !reflect.DeepEqual(turn, want) {
					t.Fatalf("step %d: got %s", i, describe(turn, err))
				}
			}
		})
	}
}

func TestReplayOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run", "transcript.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text := record(t, said(1, "a"))
	if err := os.WriteFile(file, []byte(text+`{"cut by a cra`), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(name string) (Client, error) {
		return New(Options{Config: &config.Config{Model: config.Model{Provider: "replay", Name: name}}})
	}
	c, err := open(file)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := c.Complete(t.Context(), answers(0), nil)
	if err != nil || turn.Message.Content != "a" || turn.Usage.Cost != 0.5 || turn.Elapsed != 1500*time.Millisecond {
		t.Errorf("got %s", describe(turn, err))
	}
	if c.Name() != "replay/"+file || c.Window(t.Context()) != 0 {
		t.Errorf("name %s", c.Name())
	}
	if body, err := c.Request(hello, []Tool{bash}); err != nil || !json.Valid(body) {
		t.Errorf("request %s, %v", body, err)
	}
	if _, err := open(file + ".missing"); err == nil || !strings.Contains(err.Error(), "name a transcript") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(file, []byte(record(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(file); err == nil || !strings.Contains(err.Error(), "nothing to replay") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(file, []byte("not a transcript\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}
