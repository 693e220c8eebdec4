// Package transcript is the append-only JSONL record of a run: one event a line,
// flushed as it happens, never rewritten, redacted before it reaches the file. It
// survives a SIGKILL up to the last line.
package transcript

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Kind names what an event records.
type Kind string

// The kinds of events, in the order a run writes them.
const (
	KindRun      Kind = "run"      // Run: what runs, on what, with which configuration
	KindSnapshot Kind = "snapshot" // Snapshot: the state of the worktree at a boundary
	KindAttempt  Kind = "attempt"  // Attempt: an attempt starts or ends
	KindPrompt   Kind = "prompt"   // Prompt: the system and task messages of an attempt
	KindModel    Kind = "model"    // Model: one turn of the model
	KindCall     Kind = "call"     // ToolCall: a call that is about to run
	KindResult   Kind = "result"   // ToolResult: what the call gave
	KindGate     Kind = "gate"     // any: the verdict
	KindPublish  Kind = "publish"  // any: what was pushed or opened
	KindNote     Kind = "note"     // Note: a decision, warning or wait worth keeping
	KindEnd      Kind = "end"      // End: how the run ended
)

// An Event is one line.
type Event struct {
	Time    time.Time       `json:"time"`
	Kind    Kind            `json:"event"`
	Attempt int             `json:"attempt,omitempty"`
	Step    int             `json:"step,omitempty"`
	Data    json.RawMessage `json:"data"`
}

// Run is the payload of KindRun.
type Run struct {
	ID         string         `json:"id"`
	Version    string         `json:"version"`
	Issue      int            `json:"issue"`
	Title      string         `json:"title"`
	Body       string         `json:"body"` // the issue as approved, for replay
	Repository string         `json:"repository"`
	Base       string         `json:"base"`   // commit the worktree is made from
	Branch     string         `json:"branch"` // base branch
	Model      string         `json:"model"`
	Sandbox    string         `json:"sandbox"` // what was asked for: strict, best-effort, off
	Config     map[string]any `json:"config"`  // effective values, secrets as ***
	// Isolation is what was reached, as `issuesmith sandbox --report` prints it; nothing where no sandbox was begun.
	Isolation json.RawMessage `json:"isolation,omitempty"`
}

// Prompt is the payload of KindPrompt.
type Prompt struct {
	System string `json:"system"`
	Task   string `json:"task"`
}

// A Call is a tool call as the model made it; Arguments is its raw JSON text.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Usage counts tokens of one turn; Cost is USD.
type Usage struct {
	Prompt     int     `json:"prompt"`
	Cached     int     `json:"cached"`
	Completion int     `json:"completion"`
	Estimated  bool    `json:"estimated,omitempty"`
	Cost       float64 `json:"cost"`
	CostKnown  bool    `json:"cost_known"`
}

// Model is the payload of KindModel: a whole turn, enough to replay it.
type Model struct {
	RequestID  string  `json:"request_id,omitempty"`
	Model      string  `json:"model,omitempty"` // what really answered
	Content    string  `json:"content"`
	Reasoning  string  `json:"reasoning,omitempty"`
	Calls      []Call  `json:"calls,omitempty"`
	Finish     string  `json:"finish"`
	Usage      Usage   `json:"usage"`
	FirstToken float64 `json:"first_token_s"`   // seconds from request to first token
	Seconds    float64 `json:"seconds"`         // seconds from request to the end of the turn
	Error      string  `json:"error,omitempty"` // set instead of a turn when the request failed
	ErrorKind  string  `json:"error_kind,omitempty"`
}

// ToolCall is the payload of KindCall.
type ToolCall Call

// ToolResult is the payload of KindResult.
type ToolResult struct {
	ID      string  `json:"id"`
	Output  string  `json:"output"` // as the model sees it
	Failed  bool    `json:"failed,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Snapshot is the payload of KindSnapshot.
type Snapshot struct {
	At    string `json:"at"` // "start", "judged", …
	Tree  string `json:"tree,omitempty"`
	Files int    `json:"files"`
}

// Attempt is the payload of KindAttempt.
type Attempt struct {
	Phase   string `json:"phase"` // "start" or "end"
	Reason  string `json:"reason,omitempty"`
	Summary string `json:"summary,omitempty"`
	Calls   int    `json:"calls,omitempty"`
}

// Note is the payload of KindNote.
type Note struct {
	Text string `json:"text"`
}

// End is the payload of KindEnd.
type End struct {
	Status  string  `json:"status"`
	Class   string  `json:"class,omitempty"` // agent, gate, infrastructure, configuration
	Reason  string  `json:"reason,omitempty"`
	Exit    int     `json:"exit"`
	Seconds float64 `json:"seconds"`
	Calls   int     `json:"calls"`
	Usage   Usage   `json:"usage"`
}

// Decode gives the payload of an event as T, one of the types above.
func Decode[T any](e Event) (T, error) {
	var data T
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return data, fmt.Errorf("transcript event %q holds no %T: %w", e.Kind, data, err)
	}
	return data, nil
}
