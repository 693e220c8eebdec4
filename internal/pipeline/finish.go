package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"issuesmith/internal/forge"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/transcript"
)

// reasonLimit is how much of a failure's reason people get to read.
const reasonLimit = 3000

// finish leaves the issue in a state a person understands, whatever err is, gives the claim
// back and closes what is open. It has its own time, since err may be the end of ctx.
func (r *run) finish(ctx context.Context, err error) *Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	o := r.outcome(err)
	r.Log.Stage("Finish", r.state)
	var nothing *unwanted
	switch untouched := errors.As(err, &nothing) && (nothing.gone || !r.marked); {
	case r.held == nil:
	case untouched:
		r.release(ctx, o) // nothing was touched, or nothing is there to be told
	default:
		r.close(ctx, o)
	}
	r.cleanUp(o)
	_ = r.record.Write(transcript.KindEnd, 0, 0, transcript.End{
		Status: string(o.Status), Class: string(o.Class), Reason: o.Reason, Exit: o.Exit,
		Seconds: time.Since(r.started).Seconds(), Calls: r.calls, Usage: r.usage,
	})
	if err := r.record.Close(); err != nil {
		r.Log.Warnf("the transcript is incomplete: %v", err)
		o.fail(InfrastructureClass, "writing the transcript: "+err.Error())
	}
	return o
}

// outcome is the table "How a run ends".
func (r *run) outcome(err error) *Outcome {
	o := r.result
	o.Issue, o.Attempts, o.Calls, o.Usage, o.Transcript = r.Issue, r.attempt, r.calls, r.usage, r.record.Path()
	var failure *Failure
	var nothing *unwanted
	switch {
	case err == nil:
		o.Exit = ExitDone
	case o.Status != "":
		// The pull request is there; what came after it failed.
		o.Exit, o.Class, o.Reason = ExitInfrastructure, InfrastructureClass, err.Error()
	case errors.Is(err, forge.ErrBusy):
		o.Status, o.Exit, o.Reason = Busy, ExitBusy, err.Error()
	case errors.As(err, &nothing):
		o.Status, o.Exit, o.Reason = NothingToDo, ExitDone, nothing.why
	case errors.Is(err, ErrStopped):
		o.Status, o.Exit, o.Class, o.Reason = Failed, ExitFailed, AgentClass, err.Error()
	case errors.Is(err, errRunTimeout):
		o.Status, o.Exit, o.Class = Failed, ExitFailed, AgentClass
		o.Reason = fmt.Sprintf("run-timeout: the run used up its %s", r.Config.RunTimeout)
	case errors.As(err, &failure):
		o.Status, o.Class, o.Reason = Failed, failure.Class, failure.Reason
		o.Exit = map[Class]int{AgentClass: ExitFailed, GateClass: ExitFailed, ConfigurationClass: ExitConfiguration, InfrastructureClass: ExitInfrastructure}[failure.Class]
	default:
		o.Status, o.Exit, o.Class, o.Reason = Failed, ExitInfrastructure, InfrastructureClass, err.Error()
	}
	o.Reason = redact.Cut(r.Redact.Text(o.Reason), reasonLimit)
	return &o
}

// fail turns an outcome into an infrastructure failure unless it is a worse one already.
func (o *Outcome) fail(class Class, reason string) {
	if o.Exit == ExitDone || o.Exit == ExitFailed {
		o.Exit = ExitInfrastructure
	}
	if o.Class == "" {
		o.Class = class
	}
	if o.Reason != "" {
		reason = o.Reason + "; " + reason
	}
	o.Reason = reason
}

// close sets the labels, writes the last comment and gives the claim back, in this order: a
// run killed in between is taken over by the next.
func (r *run) close(ctx context.Context, o *Outcome) {
	report := r.Redact.Text(r.finalComment(o))
	o.Report = report
	if err := r.setLabel(ctx, r.finalLabel(o)); err != nil {
		r.Log.Warnf("%v", err)
		o.fail(InfrastructureClass, err.Error())
	}
	if _, err := r.Forge.Comment(ctx, r.Issue, r.comment, report); err != nil {
		r.Log.Warnf("writing the last comment: %v", err)
		o.fail(InfrastructureClass, "writing the last comment: "+err.Error())
	}
	r.release(ctx, o)
}

func (r *run) release(ctx context.Context, o *Outcome) {
	if err := r.Forge.Release(ctx, r.held); err != nil {
		r.Log.Warnf("giving the claim back: %v; the next run takes it over", err)
		o.fail(InfrastructureClass, "giving the claim back: "+err.Error())
	}
}

// finalLabel is the label the issue is left with; "" is none.
func (r *run) finalLabel(o *Outcome) string {
	switch o.Status {
	case Opened, Updated, Pushed:
		return r.Config.Ready
	case Failed:
		return r.Config.Failed
	default:
		return ""
	}
}

// cleanUp removes worktree, HOME and TMPDIR.
func (r *run) cleanUp(o *Outcome) {
	var err error
	if r.sandbox != nil {
		err = r.sandbox.Close()
	}
	if r.tree != nil {
		err = errors.Join(err, r.tree.Close())
	}
	err = errors.Join(err, sandbox.RemoveAll(r.Work))
	if err != nil {
		r.Log.Warnf("cleaning up: %v", err)
	}
	if r.held == nil && o.Status != Failed {
		// Nothing happened that a transcript could tell.
		o.Transcript = ""
	}
}
