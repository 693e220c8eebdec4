// Package pipeline is the run: admit → claim → survey → prepare → attempts → publish →
// finish. Solve is the whole of it; each stage is one call in a file of its own.
package pipeline

import (
	"context"
	"errors"
	"io"
	"time"

	"issuesmith/internal/config"
	"issuesmith/internal/endpoint"
	"issuesmith/internal/forge"
	"issuesmith/internal/gate"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/transcript"
	"issuesmith/internal/worktree"
)

// Options are what a run works with. Everything but Approval and RunURL is required.
type Options struct {
	Config     *config.Config
	Version    string
	Folder     string // keeps transcript, patch and outputs
	Work       string // holds worktree, HOME and TMPDIR while the run lasts
	Path       string // the caller's PATH
	Repository *worktree.Repository
	Base       string // commit that is checked out
	BaseBranch string
	Forge      forge.Forge
	Remote     worktree.Remote
	Client     endpoint.Client
	Redact     *redact.Redactor
	Log        Log

	Issue     int
	Approval  forge.Approval
	NeedLabel bool        // label event and sweep: without the label there is nothing to do
	Recover   bool        // sweep: a run cancelled by a person is closed, not restarted
	Claim     forge.Claim // Run, Attempt and Host; the rest is filled in
	RunURL    string      // page of the workflow run
}

// A Log is where a person follows the run.
type Log interface {
	// Stage opens a stage; state is the text of its heartbeat.
	Stage(name string, state func() string)
	Infof(format string, args ...any)
	Warnf(format string, args ...any)
	// Foreign takes output of commands, which must not be able to run workflow commands.
	Foreign() io.WriteCloser
}

// A Status is the output of the same name.
type Status string

// The statuses, as the README lists them.
const (
	Opened      Status = "opened"
	Updated     Status = "updated"
	Pushed      Status = "pushed"
	DryRun      Status = "dry-run"
	NothingToDo Status = "nothing-to-do"
	Failed      Status = "failed"
	Busy        Status = "busy"
)

// A Class says whose failure it was.
type Class string

// The classes of failure.
const (
	AgentClass          Class = "agent"
	GateClass           Class = "gate"
	InfrastructureClass Class = "infrastructure"
	ConfigurationClass  Class = "configuration"
)

// Exit codes of the program.
const (
	ExitDone           = 0
	ExitFailed         = 1
	ExitConfiguration  = 2
	ExitInfrastructure = 3
	ExitBusy           = 75
)

// An Outcome is how a run ended.
type Outcome struct {
	Issue      int              `json:"issue"`
	Status     Status           `json:"status"`
	Exit       int              `json:"exit"`
	Class      Class            `json:"class,omitempty"`
	Reason     string           `json:"reason,omitempty"` // redacted, for a person
	PullNumber int              `json:"pull_request_number,omitempty"`
	PullURL    string           `json:"pull_request_url,omitempty"`
	PullTitle  string           `json:"-"`
	PullBody   string           `json:"-"`
	Branch     string           `json:"branch,omitempty"`
	Commit     string           `json:"commit,omitempty"`
	Patch      string           `json:"patch,omitempty"` // file
	Attempts   int              `json:"attempts"`
	Calls      int              `json:"model_calls"`
	Usage      transcript.Usage `json:"usage"`
	Transcript string           `json:"transcript,omitempty"` // file
	Report     string           `json:"-"`                    // the final comment, Markdown
}

// A Failure ends a run with a class and a reason that a person can act on.
type Failure struct {
	Class  Class
	Reason string
	Err    error
}

func (f *Failure) Error() string { return f.Reason }

func (f *Failure) Unwrap() error { return f.Err }

// unwanted ends a run that has nothing to do.
type unwanted struct {
	why  string
	gone bool // there is no issue any more that could be told
}

func (u *unwanted) Error() string { return u.why }

// ErrStopped is the cause of a context that a person ended (SIGTERM, Ctrl-C).
var ErrStopped = errors.New("stopped by a person")

// errRunTimeout is the cause of the run's own deadline.
var errRunTimeout = errors.New("run-timeout")

// run is the state of one run; each field is written by the stage named.
type run struct {
	Options
	started  time.Time
	deadline time.Time

	record *transcript.Writer // admit
	issue  *forge.Issue       // admit, then claim

	held    *forge.Held // claim
	task    *forge.Task // claim
	comment int64       // claim: the progress comment
	marked  bool        // claim: the labels say that this run works

	start start // survey

	tree    *worktree.Tree   // prepare
	sandbox *sandbox.Sandbox // prepare

	attempt int // attempts
	calls   int
	usage   transcript.Usage
	summary string
	ended   string // why the last attempt ended, when not by submit
	doing   string
	told    time.Time // last time the progress comment was written

	result Outcome // publish
}

// Solve works on one issue and returns how that ended. It never leaves an issue without
// saying so: every path goes through finish.
func Solve(ctx context.Context, o Options) *Outcome {
	r := &run{Options: o, started: time.Now()}
	r.deadline = r.started.Add(o.Config.RunTimeout)
	limited, cancel := context.WithDeadlineCause(ctx, r.deadline, errRunTimeout)
	defer cancel()
	err := r.solve(limited)
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	return r.finish(ctx, err)
}

func (r *run) solve(ctx context.Context) error {
	if err := r.admit(ctx); err != nil {
		return err
	}
	if err := r.takeClaim(ctx); err != nil {
		return err
	}
	if err := r.survey(ctx); err != nil {
		return err
	}
	if r.start.done {
		return r.publishLeftover(ctx)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	verdict, err := r.attempts(ctx)
	if err != nil {
		return err
	}
	return r.publish(ctx, verdict)
}

// note records a decision in the transcript and the log.
func (r *run) note(text string) {
	r.Log.Infof("%s", text)
	_ = r.record.Write(transcript.KindNote, r.attempt, 0, transcript.Note{Text: text})
}

// progress is what gate and setup tell before each command.
func (r *run) progress(doing string) {
	r.doing = doing
	r.Log.Infof("%s", doing)
}

// infrastructure wraps an error of the forge, the disk or the sandbox.
func infrastructure(doing string, err error) error {
	var failure *Failure
	var infra *gate.InfraError
	switch {
	case errors.As(err, &failure):
		return err
	case errors.As(err, &infra):
		return &Failure{Class: InfrastructureClass, Reason: infra.Error(), Err: err}
	default:
		return &Failure{Class: InfrastructureClass, Reason: doing + ": " + err.Error(), Err: err}
	}
}
