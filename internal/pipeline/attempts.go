package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"issuesmith/internal/agent"
	"issuesmith/internal/gate"
	"issuesmith/internal/tool"
	"issuesmith/internal/transcript"
)

// attempts lets the agent work and the gate judge until a candidate passes.
func (r *run) attempts(ctx context.Context) (*gate.Verdict, error) {
	outputs := filepath.Join(r.Folder, "outputs")
	if err := os.MkdirAll(outputs, 0o700); err != nil {
		return nil, infrastructure("making the folder for outputs", err)
	}
	g := &gate.Gate{
		Tree: r.tree, Sandbox: r.sandbox, Rules: gate.RulesOf(r.Config), Tests: r.Config.TestCommands,
		Timeout: r.Config.TestTimeout, Redact: r.Redact, Progress: r.progress,
	}
	var feedback string
	rejected := map[string]bool{}
	var last *gate.Verdict
	for r.attempt = 1; r.attempt <= r.Config.MaxAttempts; r.attempt++ {
		if err := r.stillWanted(ctx); err != nil {
			return nil, err
		}
		if r.Config.CostLimit > 0 && r.usage.Cost >= r.Config.CostLimit {
			return nil, r.unsolved(last, fmt.Sprintf("cost-limit of %.2f USD is used up", r.Config.CostLimit))
		}
		result, err := r.converse(ctx, feedback, outputs)
		if err != nil {
			return nil, err
		}
		verdict, err := r.judge(ctx, g)
		if err != nil {
			return nil, err
		}
		last = verdict
		if verdict.Passed {
			return verdict, nil
		}
		if err := r.hopeless(result, verdict); err != nil {
			return nil, err
		}
		if signature := verdict.Signature(); rejected[signature] {
			return nil, r.unsolved(verdict, "no progress: the same change was rejected twice for the same reasons")
		} else {
			rejected[signature] = true
		}
		if err := g.PutBack(ctx, verdict); err != nil {
			return nil, infrastructure("putting rejected files back", err)
		}
		feedback = gate.Feedback(verdict, r.Redact)
	}
	r.attempt = r.Config.MaxAttempts
	return nil, r.unsolved(last, fmt.Sprintf("%d of %d attempts used", r.attempt, r.Config.MaxAttempts))
}

// converse is one conversation of the agent.
func (r *run) converse(ctx context.Context, feedback, outputs string) (*agent.Result, error) {
	r.Log.Stage(fmt.Sprintf("Attempt %d of %d", r.attempt, r.Config.MaxAttempts), r.state)
	r.tell(ctx)
	limits := agent.Limits{Steps: r.Config.StepLimit, Deadline: time.Now().Add(r.Config.AgentTimeout), DeadlineIs: "agent-timeout"}
	if r.deadline.Before(limits.Deadline) {
		limits.Deadline, limits.DeadlineIs = r.deadline, "run-timeout"
	}
	if r.Config.CostLimit > 0 {
		limits.Cost = r.Config.CostLimit - r.usage.Cost
	}
	_ = r.record.Write(transcript.KindAttempt, r.attempt, 0, transcript.Attempt{Phase: "start"})
	before := r.usage
	calls := r.calls
	result, err := agent.Run(ctx, agent.Options{
		Client: r.Client, Limits: limits, Attempt: r.attempt, Transcript: r.record, Brief: r.brief(r.attempt, feedback),
		Tools: tool.NewSet(tool.Bench{Tree: r.tree, Sandbox: r.sandbox, Outputs: outputs, Timeout: r.Config.CommandTimeout, Redact: r.Redact}),
		Progress: func(p agent.Progress) {
			r.calls, r.usage, r.doing = calls+p.Calls, sum(before, p.Usage), p.Doing
			r.Log.Infof("step %d: %s", p.Step, oneLine(p.Doing, 200))
			r.tellNowAndThen(ctx)
		},
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, infrastructure("the agent's conversation", err)
	}
	r.calls, r.usage = calls+result.Calls, sum(before, result.Usage)
	r.ended = fmt.Sprintf("%s: %s", result.Reason, result.Detail)
	if result.Submission.Summary != "" {
		r.summary = result.Submission.Summary
	}
	_ = r.record.Write(transcript.KindAttempt, r.attempt, 0, transcript.Attempt{
		Phase: "end", Reason: string(result.Reason), Summary: result.Submission.Summary, Calls: result.Calls,
	})
	r.Log.Infof("the attempt ended: %s (%s)", result.Reason, result.Detail)
	return result, r.endpointFailed(ctx, result)
}

// endpointFailed tells a failing endpoint from a failing attempt: without any change there is
// nothing to judge, and the model is not to blame.
func (r *run) endpointFailed(ctx context.Context, result *agent.Result) error {
	if result.Reason != agent.Endpoint {
		return nil
	}
	change, err := r.tree.Change(ctx)
	if err != nil {
		return infrastructure("looking for changes after the endpoint failed", err)
	}
	if len(change.Files) == 0 || result.Calls == 0 {
		return &Failure{Class: InfrastructureClass, Reason: "the model endpoint failed: " + result.Err.Error(), Err: result.Err}
	}
	return nil
}

func (r *run) judge(ctx context.Context, g *gate.Gate) (*gate.Verdict, error) {
	r.Log.Stage(fmt.Sprintf("Judge attempt %d", r.attempt), r.state)
	r.tell(ctx)
	verdict, err := g.Judge(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, infrastructure("judging the change", err)
	}
	_ = r.record.Write(transcript.KindGate, r.attempt, 0, verdict)
	if verdict.Passed {
		r.Log.Infof("the gate passed: %d files, %d lines", len(verdict.Change.Files), verdict.Change.Lines())
	} else {
		r.Log.Infof("the gate refused: %s", oneLine(verdict.Reason(), 1000))
	}
	return verdict, nil
}

// hopeless ends a run that no further attempt could save: the run's own time is over.
func (r *run) hopeless(result *agent.Result, verdict *gate.Verdict) error {
	if result.Reason == agent.RunLimit || !time.Now().Before(r.deadline) {
		return r.unsolved(verdict, "run-timeout: "+result.Detail)
	}
	return nil
}

// unsolved is the failure of a run whose agent could not satisfy the gate. It counts as the
// agent's when it changed nothing, else as the gate's.
func (r *run) unsolved(verdict *gate.Verdict, why string) error {
	failure := &Failure{Class: AgentClass, Reason: why}
	if r.ended != "" {
		failure.Reason += "\nlast attempt: " + r.ended
	}
	if verdict != nil {
		if verdict.Change != nil && len(verdict.Change.Files) > 0 {
			failure.Class = GateClass
		}
		failure.Reason += "\n" + verdict.Reason()
		r.keepPatch(verdict)
	}
	return failure
}

// keepPatch saves what the last attempt left, so that nothing is lost with the worktree.
func (r *run) keepPatch(verdict *gate.Verdict) {
	if verdict.Change == nil || len(verdict.Change.Files) == 0 {
		return
	}
	if err := r.writePatch(verdict); err != nil {
		r.Log.Warnf("the last change could not be kept as a patch: %v", err)
	}
}

func (r *run) writePatch(verdict *gate.Verdict) error {
	patch, err := r.tree.Patch(verdict.Change)
	if err != nil {
		return err
	}
	file := filepath.Join(r.Folder, "change.patch")
	if err := os.WriteFile(file, []byte(r.Redact.Values(patch)), 0o600); err != nil {
		return err
	}
	r.result.Patch = file
	return nil
}

func sum(a, b transcript.Usage) transcript.Usage {
	return transcript.Usage{
		Prompt: a.Prompt + b.Prompt, Cached: a.Cached + b.Cached, Completion: a.Completion + b.Completion,
		Estimated: a.Estimated || b.Estimated, Cost: a.Cost + b.Cost, CostKnown: b.CostKnown && (a.CostKnown || a == transcript.Usage{}),
	}
}
