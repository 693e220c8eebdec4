package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"issuesmith/internal/agent"
	"issuesmith/internal/endpoint"
	"issuesmith/internal/forge"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/tool"
)

// Preflight does what a run does before and after the agent: a clean worktree, setup commands, test
// commands on the base commit. It claims nothing. askEndpoint sends the model one tiny request.
func Preflight(ctx context.Context, o Options, askEndpoint bool) error {
	r := &run{Options: o, started: time.Now()}
	defer func() {
		if r.sandbox != nil {
			_ = r.sandbox.Close()
		}
		if r.tree != nil {
			_ = r.tree.Close()
		}
	}()
	r.Log.Stage("Prepare a clean worktree", r.state)
	if err := r.open(ctx, r.Base); err != nil {
		return infrastructure("preparing the worktree", err)
	}
	if err := r.setup(ctx); err != nil {
		return infrastructure("setting up", err)
	}
	r.Log.Stage("Test the base commit", r.state)
	if err := r.testBase(ctx); err != nil {
		return err
	}
	if !askEndpoint {
		return nil
	}
	r.Log.Stage("Ask the model", r.state)
	return r.askOnce(ctx)
}

// testBase: red tests on the base would keep every repair from being published that does not turn them green.
func (r *run) testBase(ctx context.Context) error {
	var red []string
	for _, command := range r.Config.TestCommands {
		r.progress(command)
		result, err := r.sandbox.Run(ctx, sandbox.Command{Script: command, Timeout: r.Config.TestTimeout})
		if err != nil {
			return infrastructure("running "+command, err)
		}
		notes := strings.Join(append([]string{""}, result.Notes...), "\n")
		switch {
		case result.TimedOut:
			red = append(red, fmt.Sprintf("%s: no end within test-timeout (%s)%s", command, r.Config.TestTimeout, notes))
		case result.Exit != 0:
			red = append(red, fmt.Sprintf("%s: exit %d%s\n%s", command, result.Exit, notes, redact.Cut(result.Output(), 2000)))
		default:
			r.Log.Infof("passed in %s", result.Duration.Round(time.Millisecond))
		}
	}
	if len(red) > 0 {
		return &Failure{Class: GateClass, Reason: "test commands fail on the base commit already; the gate wants them green, so only a repair of these failures could be published:\n" + strings.Join(red, "\n")}
	}
	return nil
}

// askOnce wants one call of one tool.
func (r *run) askOnce(ctx context.Context) error {
	schema := json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}},"required":["word"],"additionalProperties":false}`)
	turn, err := r.Client.Complete(ctx,
		[]endpoint.Message{{Role: endpoint.User, Content: "Call the tool `echo` with the word ready."}},
		[]endpoint.Tool{{Name: "echo", Description: "Echoes a word.", Schema: schema}})
	if err != nil {
		return infrastructure("asking the model", err)
	}
	if len(turn.Message.Calls) == 0 {
		return &Failure{Class: InfrastructureClass, Reason: fmt.Sprintf(
			"the model %s answered without calling the tool it was asked to call: it, or its server's chat template, has no tools", r.Client.Name())}
	}
	r.Log.Infof("%s answered with a tool call after %s, %d prompt tokens", r.Client.Name(), turn.Elapsed.Round(time.Millisecond), turn.Usage.Prompt)
	return nil
}

// PreflightOutcome is how Preflight ended, as an outcome.
func PreflightOutcome(err error, red *redact.Redactor) *Outcome {
	r := &run{Options: Options{Redact: red}}
	o := r.outcome(err)
	if err == nil {
		o.Status, o.Reason = "ready", "setup and test commands work"
	}
	return o
}

// FirstRequest is the redacted first request of a run that is not started: nothing is claimed or written.
func FirstRequest(ctx context.Context, o Options) ([]byte, error) {
	r := &run{Options: o, started: time.Now()}
	issue, err := r.Forge.Issue(ctx, r.Issue)
	if err != nil {
		return nil, fmt.Errorf("reading issue #%d: %w", r.Issue, err)
	}
	r.issue = issue
	r.task = forge.Approve(issue, r.Approval, r.owner(ctx), r.Config.TrustedUsers, r.started)
	r.start = start{commit: r.Base}
	tools := tool.NewSet(tool.Bench{Redact: r.Redact})
	limits := agent.Limits{Steps: r.Config.StepLimit, Cost: r.Config.CostLimit, Deadline: r.started.Add(r.Config.AgentTimeout), DeadlineIs: "agent-timeout"}
	body, err := r.Client.Request(agent.Messages(r.brief(1, ""), tools.Definitions(), limits), agent.Tools(tools.Definitions()))
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return []byte(r.Redact.Values(string(body))), nil
}
