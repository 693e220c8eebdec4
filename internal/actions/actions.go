// Package actions is the runner's side: the workflow step's variables, the event,
// outputs, log commands and the step summary. Only this package and app know about workflows.
package actions

import (
	"context"
	"io"
	"time"

	"issuesmith/internal/redact"
)

// A Step is what a workflow step's environment says. Zero outside a step.
type Step struct {
	Active     bool   // GITHUB_ACTIONS=true
	EventName  string // issues, workflow_dispatch, schedule, …
	EventPath  string
	Workspace  string
	Temp       string // RUNNER_TEMP
	RunID      string
	RunAttempt int
	ServerURL  string
	Repository string
	Ref        string // refs/heads/main, refs/pull/7/head
	Actor      string
	RunURL     string // page of the run, "" when unknown
}

// FromEnv reads the step.
func FromEnv(getenv func(string) string) Step { panic("not built") }

// An Event is what matters of the payload.
type Event struct {
	Name           string
	Action         string
	Issue          int // 0 when none
	Title, Body    string
	Author         string
	ContentVersion int
	IsPull         bool
	Added          []string // labels added by this event, all forms
	Labels         []string // labels on the issue as the payload has them; may be empty although there are some
	Sender         string
	Updated        time.Time
	Input          string // workflow_dispatch: input "issue" as it came
}

// ParseEvent reads a payload; at most 25 MiB.
func ParseEvent(name string, r io.Reader) (*Event, error) { panic("not built") }

// A Level of log lines.
type Level int

// The levels.
const (
	Debug Level = iota
	Info
	Warn
	Error
)

// A Log writes for a person: stages as groups in a step, every line redacted and cut, foreign
// output unable to run workflow commands, a heartbeat line at least every 30 s while a stage runs.
type Log struct{}

// NewLog writes to w. inStep selects workflow commands.
func NewLog(w io.Writer, inStep bool, level Level, r *redact.Redactor) *Log { panic("not built") }

// Stage ends the last stage's group and opens the next. Heartbeats call state for their text.
func (l *Log) Stage(name string, state func() string) { panic("not built") }

// Printf writes one line at a level; Warn and Error become annotations in a step.
func (l *Log) Printf(level Level, format string, args ...any) { panic("not built") }

// Foreign returns a writer for the output of commands and the model: prefixed lines at Debug, at most
// 8,000 characters in all.
func (l *Log) Foreign() io.WriteCloser { panic("not built") }

// Mask tells the runner to mask the values (each line of them).
func (l *Log) Mask(values ...string) { panic("not built") }

// Close ends the group and the heartbeat.
func (l *Log) Close() { panic("not built") }

// Outputs writes name=value pairs to GITHUB_OUTPUT with random delimiters; outside a step it does nothing.
func Outputs(getenv func(string) string, values map[string]string) error { panic("not built") }

// Summary appends Markdown to GITHUB_STEP_SUMMARY.
func Summary(getenv func(string) string, markdown string) error { panic("not built") }

// WatchParent cancels when the parent process is gone (the runner kills only the direct child).
func WatchParent(ctx context.Context) (context.Context, context.CancelFunc) { panic("not built") }
