// Package gate judges a change with deterministic checks: policy on the change, then
// the test commands. It never asks a model.
package gate

import (
	"encoding/json"
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
	Duration time.Duration `json:"-"`      // in seconds where it is recorded
	Output   string        `json:"output"` // head and tail, 6,000 characters each at most
}

// MarshalJSON gives the time in seconds, as the transcript does everywhere.
func (c Command) MarshalJSON() ([]byte, error) {
	type fields Command
	return json.Marshal(struct {
		fields
		Seconds float64 `json:"seconds"`
	}{fields(c), c.Duration.Seconds()})
}

// OK reports success.
func (c Command) OK() bool { return c.Exit == 0 && !c.TimedOut }

// A Verdict is everything wrong with a candidate at once.
type Verdict struct {
	Passed    bool             `json:"passed"`
	Findings  []Finding        `json:"findings,omitempty"`  // at most 200 of a rule, the last one saying how many more
	Commands  []Command        `json:"commands,omitempty"`  // empty when policy failed already
	PutBack   []string         `json:"put_back,omitempty"`  // paths returned to the base commit
	Discarded string           `json:"discarded,omitempty"` // diff of what was put back
	Notes     []string         `json:"notes,omitempty"`
	Change    *worktree.Change `json:"-"` // what was judged, and is committed

	strays []string // every path that PutBack returns, however many findings are listed
}

// Rules are what the configuration says.
type Rules struct {
	MaxFiles, MaxLines int      // 0: not limited
	Protected, Allowed []string // globs
	Kind               string   // "code" or ""; "tests" and "docs" come with the contract
	Direct             bool     // mode direct: only DirectPaths may change
	DirectPaths        []string // globs
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

	full func(dir string) (bool, error) // the probe for a full disk; nil is diskFull
}

// RulesOf takes the rules out of a configuration.
func RulesOf(c *config.Config) Rules {
	return Rules{
		MaxFiles:    c.MaxFiles,
		MaxLines:    c.MaxLines,
		Protected:   c.ProtectedPaths,
		Allowed:     c.AllowPaths,
		Kind:        kindCode,
		Direct:      c.Mode == "direct",
		DirectPaths: c.DirectPaths,
	}
}
