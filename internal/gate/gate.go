// Package gate judges a change with deterministic checks: policy on the change, then
// the test commands. It never asks a model.
package gate

import (
	"context"
	"time"

	"issuesmith/internal/config"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

// A Finding is one thing that is wrong.
type Finding struct {
	Rule    string `json:"rule"`
	Path    string `json:"path,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// A Command is the result of one test or setup command.
type Command struct {
	Command  string        `json:"command"`
	Exit     int           `json:"exit"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Duration time.Duration `json:"duration"`
	Output   string        `json:"output"` // head and tail, 6,000 characters each at most
}

// OK reports success.
func (c Command) OK() bool { return c.Exit == 0 && !c.TimedOut }

// A Verdict is everything wrong with a candidate at once.
type Verdict struct {
	Passed    bool             `json:"passed"`
	Findings  []Finding        `json:"findings,omitempty"`
	Commands  []Command        `json:"commands,omitempty"`  // empty when policy failed already
	PutBack   []string         `json:"put_back,omitempty"`  // paths returned to the base commit
	Discarded string           `json:"discarded,omitempty"` // diff of what was put back
	Notes     []string         `json:"notes,omitempty"`
	Change    *worktree.Change `json:"-"` // what was judged, and is committed
}

// Rules are what the configuration says.
type Rules struct {
	MaxFiles, MaxLines int
	Protected, Allowed []string // globs
	Kind               string   // "code"; "tests" and "docs" come with the contract
	Direct             bool
	DirectPaths        []string
}

// A Gate judges one worktree.
type Gate struct {
	Tree     *worktree.Tree
	Sandbox  *sandbox.Sandbox
	Rules    Rules
	Tests    []string
	Timeout  time.Duration // of one test command
	Redact   *redact.Redactor
	Progress func(doing string) // told before each command; may be nil
}

// Policy judges the change: all findings, sorted by path and line.
func (g *Gate) Policy(c *worktree.Change) ([]Finding, error) { panic("not built") }

// Judge normalises and judges what stands in the worktree, runs the test commands when policy
// passed, puts the judged tree back, and judges again. An *InfraError says that something around the
// tests failed; any other error is ctx's or the disk's.
func (g *Gate) Judge(ctx context.Context) (*Verdict, error) { panic("not built") }

// PutBack returns files under path, protected, kind and temporary findings to the base
// commit and notes them in the verdict with the diff discarded.
func (g *Gate) PutBack(ctx context.Context, v *Verdict) error { panic("not built") }

// Feedback is the verdict as text for the model, redacted, at most 8,000 characters and the failing commands' output.
func Feedback(v *Verdict, r *redact.Redactor) string { panic("not built") }

// Setup runs the setup commands; the first failure is an *InfraError.
func Setup(ctx context.Context, s *sandbox.Sandbox, commands []string, timeout time.Duration, progress func(string)) ([]Command, error) {
	panic("not built")
}

// RulesOf takes the rules out of a configuration.
func RulesOf(c *config.Config) Rules { panic("not built") }

// An InfraError is not the model's fault: no attempt is spent on it.
type InfraError struct {
	What   string // what failed: "setup command `npm ci`"
	Detail string // redacted by the caller
	Remedy string
	Err    error
}

func (e *InfraError) Error() string {
	s := e.What
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *InfraError) Unwrap() error { return e.Err }
