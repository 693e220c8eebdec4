package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Conversation is what the model says in one attempt, turn by turn.
type Conversation struct {
	// When picks the conversation by the text of its first request (system and task
	// together); nil takes any. Conversations are tried in the order of the script and
	// each is used once.
	When  func(prompt string) bool
	Turns []Turn
	Cut   bool // the attempt may end before all turns were said, or never begin
}

// Holding picks a conversation whose task holds a text.
func Holding(text string) func(string) bool {
	return func(prompt string) bool { return strings.Contains(prompt, text) }
}

// A Turn is one answer.
type Turn struct {
	Text  string
	Calls []Call
	// Fail is what happens to the first requests for this turn, in order, before it is
	// answered.
	Fail []Failure
	// Before is called when the request has come, before anything is answered.
	Before func(Request)
	// Usage overrides the tokens reported.
	Usage *Usage
}

// Usage is the count of tokens of a turn.
type Usage struct{ Prompt, Cached, Completion int }

// A Call is one tool call. Raw, if set, is sent as its arguments as it is.
type Call struct {
	Name string
	Args map[string]any
	Raw  string
}

func (c Call) arguments() string {
	if c.Raw != "" || c.Args == nil {
		return c.Raw
	}
	data, err := json.Marshal(c.Args)
	if err != nil {
		panic(fmt.Sprintf("model script: %v", err)) // a mistake in the test itself
	}
	return string(data)
}

// Bash is a turn that runs one command.
func Bash(command string) Turn {
	return Turn{Calls: []Call{{Name: "bash", Args: map[string]any{"command": command}}}}
}

// Read is a turn that reads files, all in one go: what exists must be read before it
// may be written.
func Read(paths ...string) Turn {
	var t Turn
	for _, p := range paths {
		t.Calls = append(t.Calls, Call{Name: "read_file", Args: map[string]any{"path": p}})
	}
	return t
}

// Edit is a turn that replaces a text that stands once in a file.
func Edit(path, old, with string) Turn {
	return Turn{Calls: []Call{{Name: "edit_file", Args: map[string]any{"path": path, "edits": []any{map[string]any{"old": old, "new": with}}}}}}
}

// Write is a turn that writes one file.
func Write(path, content string) Turn {
	return Turn{Calls: []Call{{Name: "write_file", Args: map[string]any{"path": path, "content": content}}}}
}

// Submit is a turn that finishes the attempt.
func Submit(summary string) Turn {
	return Turn{Calls: []Call{{Name: "submit", Args: map[string]any{"summary": summary, "tests_run": []string{}}}}}
}

// After returns a copy of the turn that is said after f has returned.
func (t Turn) After(f func(Request)) Turn {
	t.Before = f
	return t
}

// Failing returns a copy of the turn that fails in these ways first.
func (t Turn) Failing(f ...Failure) Turn {
	t.Fail = f
	return t
}

// A Failure answers one request wrongly. turn is what would have been said.
type Failure func(w http.ResponseWriter, r *http.Request, turn Turn, ids []string)

// Status answers with a status, the error object the wire format has for it, and
// further headers as key and value in turn.
func Status(code int, message string, header ...string) Failure {
	return func(w http.ResponseWriter, _ *http.Request, _ Turn, _ []string) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		writeJSON(w, map[string]any{"error": map[string]any{"message": message, "type": "scripted", "code": code}})
	}
}

// Page answers 200 with a page of HTML, as a proxy that wants a login does.
func Page() Failure {
	return func(w http.ResponseWriter, _ *http.Request, _ Turn, _ []string) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Sign in</title><p>Please sign in.")) // the client may be gone
	}
}

// Reset closes the connection after the turn's first chunk.
func Reset() Failure {
	return func(w http.ResponseWriter, _ *http.Request, turn Turn, ids []string) {
		s := stream(w)
		s.start(turn, ids)
		s.flush()
		panic(http.ErrAbortHandler)
	}
}

// Truncated ends the stream in the middle of a call, without a finish reason.
func Truncated() Failure {
	return func(w http.ResponseWriter, _ *http.Request, turn Turn, ids []string) {
		s := stream(w)
		s.start(turn, ids)
		s.half(turn)
	}
}

// Length ends the turn in the middle of a call with finish reason "length".
func Length() Failure {
	return func(w http.ResponseWriter, _ *http.Request, turn Turn, ids []string) {
		s := stream(w)
		s.start(turn, ids)
		s.half(turn)
		s.finish("length", turn)
	}
}

// Stall sends the first chunk and then nothing for a while, or until the client has gone.
func Stall(d time.Duration) Failure {
	return func(w http.ResponseWriter, r *http.Request, turn Turn, ids []string) {
		s := stream(w)
		s.start(turn, ids)
		s.flush()
		select {
		case <-r.Context().Done():
		case <-time.After(d):
		}
		panic(http.ErrAbortHandler)
	}
}
