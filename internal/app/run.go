package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"issuesmith/internal/actions"
	"issuesmith/internal/config"
	"issuesmith/internal/forge"
	"issuesmith/internal/pipeline"
	"issuesmith/internal/redact"
)

// runOptions are the flags of run beside the settings.
type runOptions struct {
	request
	promptOnly bool
}

const howToRun = `there is no issue to work on. Give one:
  in a workflow: trigger on "issues: types: [labeled]" or pass the input "issue"
  on a desk, with a Gitea:     issuesmith run --issue N --server-url URL --repository OWNER/NAME   (ISSUESMITH_TOKEN holds the token)
  on a desk, without a forge:  issuesmith run --repo DIR --issue-file FILE   (first line: title, rest: text)
  to see it work first:        issuesmith demo`

func (p *program) newRun() *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use: "run", Short: "Work on one issue", Args: cobra.NoArgs,
		Long: "Work on one issue. In a workflow step the issue comes from the event or the input `issue`;\n" +
			"with --repo and --issue-file it comes from a file, and the result is a branch and a patch.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.flags = settingsGiven(cmd)
			return p.runRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.dir, "repo", "", "folder of the git checkout [the workspace, else the current folder]")
	cmd.Flags().StringVar(&o.issueFile, "issue-file", "", "file with the issue: first line title, rest text; no forge is used")
	cmd.Flags().BoolVar(&o.json, "json", false, "the outcome as JSON on stdout, the log on stderr")
	cmd.Flags().BoolVar(&o.promptOnly, "prompt-only", false, "print the redacted first request and stop; claims nothing")
	addSettings(cmd)
	return cmd
}

// runRun is one issue from the command line or the event to the exit code.
func (p *program) runRun(ctx context.Context, o *runOptions) error {
	ctx, stop := actions.WatchParent(ctx)
	defer stop()
	b, err := p.assemble(o.request)
	if b.log != nil {
		defer b.log.Close()
	}
	if err != nil {
		if lost := len(o.flags) == 0 && o.dir == "" && o.issueFile == ""; lost && !b.step.Active {
			err = append(config.Problems{{Key: "issue", Message: howToRun}}, asProblems(err)...)
		}
		return b.refuse(err, o.json)
	}
	target, err := b.target()
	var nothing *nothingToDoError
	if errors.As(err, &nothing) {
		b.log.Printf(actions.Info, "nothing to do: %s", nothing.why)
		return b.deliver(&pipeline.Outcome{Status: pipeline.NothingToDo, Reason: nothing.why}, o.json)
	}
	if err != nil {
		return b.refuse(err, o.json)
	}
	if o.promptOnly {
		return b.promptOnly(ctx, target)
	}
	outcome, err := b.solve(ctx, target)
	if err != nil {
		return b.refuse(err, o.json)
	}
	b.show(outcome)
	return b.deliver(outcome, o.json)
}

// A target is an issue and what the event says about it.
type target struct {
	issue     int
	approval  forge.Approval
	needLabel bool
	recover   bool
}

// nothingToDoError: the event asks for nothing.
type nothingToDoError struct{ why string }

func (e *nothingToDoError) Error() string { return e.why }

// target finds the issue: the local file, the setting, the event.
func (b *bench) target() (target, error) {
	if b.desk != nil {
		return target{issue: b.desk.number}, nil
	}
	if b.config.Issue > 0 {
		return target{issue: b.config.Issue}, nil
	}
	if !b.step.Active || b.step.EventPath == "" {
		return target{}, config.Problems{{Where: "run", Key: "issue", Message: howToRun}}
	}
	event, err := b.event()
	if err != nil {
		return target{}, config.Problems{{Where: "event", Value: b.step.EventPath, Message: err.Error()}}
	}
	if event.Input != "" {
		issue, err := actions.ParseIssue(event.Input)
		if err != nil {
			return target{}, config.Problems{{Where: "input", Key: "issue", Value: event.Input, Message: err.Error()}}
		}
		return target{issue: issue}, nil
	}
	if event.Issue == 0 {
		return target{}, config.Problems{{Where: "event " + event.Name, Key: "issue", Message: howToRun}}
	}
	for _, name := range event.Added {
		if name == b.config.Queued {
			return target{issue: event.Issue, needLabel: true, approval: approval(event)}, nil
		}
	}
	return target{}, &nothingToDoError{fmt.Sprintf("this event on issue #%d did not add the label %s", event.Issue, b.config.Queued)}
}

func (b *bench) event() (*actions.Event, error) {
	f, err := os.Open(b.step.EventPath)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return actions.ParseEvent(b.step.EventName, f)
}

func approval(e *actions.Event) forge.Approval {
	return forge.Approval{
		By: e.Sender, At: e.Updated, FromEvent: true, Title: e.Title, Body: e.Body, Author: e.Author, ContentVersion: e.ContentVersion,
	}
}

// solve runs the pipeline in a folder of its own.
func (b *bench) solve(ctx context.Context, t target) (*pipeline.Outcome, error) {
	f, err := newFolder(b.runsFolder(), t.issue, !b.step.Active)
	if err != nil {
		return nil, &infraError{err}
	}
	o := b.options(f)
	o.Issue, o.Approval, o.NeedLabel, o.Recover = t.issue, t.approval, t.needLabel, t.recover
	if b.desk != nil {
		if err := b.atDesk(&o); err != nil {
			return nil, &infraError{errors.Join(err, f.close(false))}
		}
	}
	outcome := pipeline.Solve(ctx, o)
	if err := f.close(outcome.Transcript != ""); err != nil {
		b.log.Printf(actions.Warn, "cleaning up: %v", err)
	}
	return outcome, nil
}

// promptOnly prints the first request.
func (b *bench) promptOnly(ctx context.Context, t target) error {
	b.redact.Add(b.config.TestSecrets()...)
	o := b.options(&folder{})
	o.Issue, o.Approval = t.issue, t.approval
	body, err := pipeline.FirstRequest(ctx, o)
	if err != nil {
		return &infraError{err}
	}
	_, err = fmt.Fprintf(b.program.stdout, "%s\n", body)
	return err
}

// refuse tells why there is no run, as an outcome too, and returns the exit code.
func (b *bench) refuse(err error, asJSON bool) error {
	outcome := &pipeline.Outcome{Status: pipeline.Failed, Exit: pipeline.ExitInfrastructure, Class: pipeline.InfrastructureClass}
	var problems config.Problems
	if errors.As(err, &problems) {
		outcome.Exit, outcome.Class = pipeline.ExitConfiguration, pipeline.ConfigurationClass
	}
	outcome.Reason = b.redact.Text(err.Error())
	if b.log == nil {
		return err
	}
	if !b.step.Active && !asJSON {
		_, _ = fmt.Fprintln(b.program.stderr, outcome.Reason) // as it is: a desk has no annotations
		return ended(outcome.Exit)
	}
	return b.deliver(outcome, asJSON)
}

// refuseEarly is refuse before there is a bench.
func (p *program) refuseEarly(err error, asJSON bool) error {
	b := &bench{program: p, step: p.step(), redact: redact.New(), config: &config.Config{LogLevel: "info"}}
	b.startLog(asJSON)
	defer b.log.Close()
	return b.refuse(err, asJSON)
}

// deliver writes outputs, summary and JSON and returns the exit code.
func (b *bench) deliver(o *pipeline.Outcome, asJSON bool) error {
	b.conclude(o)
	if asJSON {
		if err := json.NewEncoder(b.program.stdout).Encode(o); err != nil {
			return &infraError{fmt.Errorf("printing the outcome: %w", err)}
		}
	}
	if !b.step.Active {
		return ended(o.Exit)
	}
	if err := b.output(o, nil); err != nil {
		return &infraError{err}
	}
	return ended(stepExit(o))
}

// stepExit: a doubled event is not a red job.
func stepExit(o *pipeline.Outcome) int {
	if o.Status == pipeline.Busy {
		return pipeline.ExitDone
	}
	return o.Exit
}

// conclude is the last line of the log about an issue.
func (b *bench) conclude(o *pipeline.Outcome) {
	b.log.EndStage()
	switch {
	case o.Status == pipeline.Busy:
		b.log.Printf(actions.Notice, "%s", o.Reason)
	case o.Exit == pipeline.ExitDone && o.PullURL != "":
		b.log.Printf(actions.Info, "done: %s, %s", o.Status, o.PullURL)
	case o.Exit == pipeline.ExitDone && o.Reason != "":
		b.log.Printf(actions.Info, "done: %s, %s", o.Status, o.Reason)
	case o.Exit == pipeline.ExitDone:
		b.log.Printf(actions.Info, "done: %s", o.Status)
	default:
		b.log.Printf(actions.Error, "%s (%s): %s", o.Status, o.Class, o.Reason)
	}
	if o.Transcript != "" {
		b.log.Printf(actions.Info, "transcript: %s", o.Transcript)
	}
}

// output sets the step's outputs and its summary.
func (b *bench) output(o *pipeline.Outcome, issues []byte) error {
	values := map[string]string{
		"status": string(o.Status), "pull-request-number": number(o.PullNumber), "pull-request-url": o.PullURL, "branch": o.Branch,
		"commit": o.Commit, "attempts": strconv.Itoa(o.Attempts), "model-calls": strconv.Itoa(o.Calls),
		"prompt-tokens": strconv.Itoa(o.Usage.Prompt), "cached-tokens": strconv.Itoa(o.Usage.Cached),
		"completion-tokens": strconv.Itoa(o.Usage.Completion), "cost": strconv.FormatFloat(o.Usage.Cost, 'f', -1, 64), "transcript": o.Transcript,
	}
	if issues != nil {
		values["issues"] = string(issues)
	}
	if err := actions.Outputs(b.program.getenv, values); err != nil {
		return fmt.Errorf("setting the step's outputs: %w", err)
	}
	if o.Report == "" {
		return nil
	}
	if err := actions.Summary(b.program.getenv, o.Report); err != nil {
		return fmt.Errorf("writing the step's summary: %w", err)
	}
	return nil
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
