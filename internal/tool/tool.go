// Package tool holds what the model can do: one file a tool, its description beside it.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

// A Bench is what tools work on.
type Bench struct {
	Tree    *worktree.Tree
	Sandbox *sandbox.Sandbox
	Outputs string           // folder outside the worktree that keeps whole outputs
	Timeout time.Duration    // of one bash command
	Redact  *redact.Redactor // known values are taken out of every result
}

// A Result is what the model gets back; Text is bounded.
type Result struct {
	Text   string
	Failed bool        // the call could not be done, or the command failed
	Submit *Submission // set by submit only
}

// A Submission ends an attempt.
type Submission struct {
	Summary string   `json:"summary"`
	Tests   []string `json:"tests_run"`
}

// A Definition is a tool as the model is told of it.
type Definition struct {
	Name, Description string
	Schema            json.RawMessage
}

// A Set is the tools of a run. Not safe for concurrent use.
type Set struct{}

// NewSet returns the tools bash, read_file, search, edit_file, write_file, submit.
func NewSet(b Bench) *Set { panic("not built") }

// Definitions lists the tools in a fixed order.
func (s *Set) Definitions() []Definition { panic("not built") }

// Call runs one call. Bad names and malformed arguments are Results that explain themselves with the schema
// (valid=false); an error means the run must stop (ctx ended, disk full, sandbox broken).
func (s *Set) Call(ctx context.Context, name, arguments string) (r Result, valid bool, err error) {
	panic("not built")
}
