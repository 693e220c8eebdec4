package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"issuesmith/internal/actions"
	"issuesmith/internal/endpoint"
	"issuesmith/internal/transcript"
)

func (p *program) newReplay() *cobra.Command {
	q := request{}
	cmd := &cobra.Command{
		Use: "replay TRANSCRIPT", Short: "Run again with the recorded answers of the model", Args: oneFile("a transcript"),
		Long: "Run again on the recorded commit with the recorded answers of the model, against the local forge:\n" +
			"nothing is asked, pushed or commented. Settings are those of the record unless given again.\n" +
			"--repo names a repository that has the recorded commit; of a demo, the folder `project` it left.",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.flags = settingsGiven(cmd)
			return p.runReplay(cmd.Context(), q, args[0])
		},
	}
	cmd.Flags().StringVar(&q.dir, "repo", "", "folder of a git repository that has the recorded commit [the current folder]")
	cmd.Flags().BoolVar(&q.json, "json", false, "the outcome as JSON on stdout, the log on stderr")
	addSettings(cmd)
	return cmd
}

func (p *program) runReplay(ctx context.Context, q request, file string) error {
	record, err := recordedRun(file)
	if err != nil {
		return err
	}
	f, err := os.Open(file) // #nosec G304 -- the user's own argument
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if q.client, err = endpoint.NewReplay(f, file); err != nil {
		return err
	}
	q.local = true
	takeRecorded(q.flags, record.Config)
	b, err := p.assemble(q)
	if b.log != nil {
		defer b.log.Close()
	}
	if err != nil {
		return b.refuse(err, q.json)
	}
	if _, err := b.repository.Commit(record.Base); err != nil {
		return fmt.Errorf("the recorded run began at commit %s, which this repository does not have (%w); fetch it, or name another with --repo", record.Base, err)
	}
	b.base, b.branch = record.Base, record.Branch
	if err := b.useDesk(record.Issue, record.Title, record.Body); err != nil {
		return b.refuse(err, q.json)
	}
	outcome, err := b.solve(ctx, target{issue: record.Issue})
	if err != nil {
		return b.refuse(err, q.json)
	}
	b.show(outcome)
	b.log.Printf(actions.Info, "the record is %s", file)
	return b.deliver(outcome, q.json)
}

// recordedRun finds the event that says what was run.
func recordedRun(file string) (*transcript.Run, error) {
	f, err := os.Open(file) // #nosec G304 -- the user's own argument
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	for event, err := range transcript.Read(f) {
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if event.Kind == transcript.KindRun {
			run, err := transcript.Decode[transcript.Run](event)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			return &run, nil
		}
	}
	return nil, errors.New(file + " holds no run: give the transcript.jsonl of a run that got as far as its worktree")
}

// replayed are the settings that decide what a run does; the others (token, labels, log) do not matter here.
var replayed = []string{
	"setup-commands", "test-commands", "max-attempts", "step-limit", "cost-limit", "agent-timeout", "command-timeout",
	"test-timeout", "run-timeout", "max-changed-files", "max-changed-lines", "branch-prefix",
}

// takeRecorded gives settings their recorded values where the command line has none.
func takeRecorded(flags map[string]string, recorded map[string]any) {
	for _, name := range replayed {
		value, ok := recorded[name]
		if _, given := flags[name]; given || !ok {
			continue
		}
		if list, ok := value.([]any); ok {
			var lines []string
			for _, item := range list {
				lines = append(lines, fmt.Sprint(item))
			}
			value = strings.Join(lines, "\n")
		}
		if text := fmt.Sprint(value); text != "" && value != nil {
			flags[name] = text
		}
	}
}
