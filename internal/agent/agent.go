// Package agent is the loop: one conversation of a model with its tools over one worktree.
package agent

import (
	"time"

	"issuesmith/internal/endpoint"
	"issuesmith/internal/tool"
	"issuesmith/internal/transcript"
)

// A Brief is what the task message says.
type Brief struct {
	Number       int
	Title, URL   string
	Body         string    // approved; cut to 20,000 characters by Task
	Comments     []Comment // trusted
	Guidance     []Guide   // AGENTS.md, CLAUDE.md, CONTRIBUTING.md of the base commit
	Playbook     string
	TestCommands []string
	MaxFiles     int
	MaxLines     int
	Notes        []string // LFS pointers, submodules, what is not there
	Feedback     string   // the verdict on the last attempt, redacted; "" on the first
	Attempt      int
	Attempts     int
}

// A Comment of a trusted person.
type Comment struct{ Author, Body, Where string }

// A Guide is a guidance file of the repository.
type Guide struct{ Path, Text string }

// Limits of one attempt; zero means no limit.
type Limits struct {
	Steps    int
	Cost     float64   // USD left of the run's budget
	Deadline time.Time // the attempt's or the run's, whichever is first
	// DeadlineIs names what Deadline is: "agent-timeout" or "run-timeout".
	DeadlineIs string
}

// Progress is told after every step.
type Progress struct {
	Step  int    // requests so far
	Calls int    // model calls so far, as in Result
	Doing string // one line: "bash: go test ./..."
	Usage transcript.Usage
}

// Options of Run.
type Options struct {
	Client     endpoint.Client
	Tools      *tool.Set
	Brief      Brief
	Limits     Limits
	Attempt    int
	Transcript *transcript.Writer
	Progress   func(Progress)
}

// A Reason says why an attempt ended.
type Reason string

// The reasons.
const (
	Submitted  Reason = "submitted"
	StepLimit  Reason = "step-limit"
	CostLimit  Reason = "cost-limit"
	TimeLimit  Reason = "agent-timeout"
	RunLimit   Reason = "run-timeout"
	NoCall     Reason = "no valid call" // three turns without one
	NoProgress Reason = "no progress"   // the same call with the same result five times in ten steps
	Endpoint   Reason = "endpoint"      // the endpoint failed; Err says how
)

// A Result is what an attempt left, whatever its end.
type Result struct {
	Reason     Reason
	Detail     string // a sentence for a person: "50 of 50 model calls used"
	Submission tool.Submission
	Calls      int // model calls
	Usage      transcript.Usage
	Elapsed    time.Duration
	Err        error // set when Reason is Endpoint
}

// Tools are the definitions as an endpoint takes them.
func Tools(defs []tool.Definition) []endpoint.Tool {
	list := make([]endpoint.Tool, len(defs))
	for i, d := range defs {
		list[i] = endpoint.Tool{Name: d.Name, Description: d.Description, Schema: d.Schema}
	}
	return list
}
