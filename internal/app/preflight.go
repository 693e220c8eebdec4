package app

import (
	"context"

	"github.com/spf13/cobra"

	"issuesmith/internal/actions"
	"issuesmith/internal/pipeline"
)

func (p *program) newPreflight() *cobra.Command {
	q := request{}
	var askEndpoint bool
	cmd := &cobra.Command{
		Use: "preflight", Short: "Try worktree, setup and test commands, without claiming anything", Args: cobra.NoArgs,
		Long: "Make the clean worktree, run the setup and test commands in it and say what isolation there is.\n" +
			"Claims nothing and does not ask the model, unless --endpoint is given: then one tiny request,\n" +
			"with a tool.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.flags = settingsGiven(cmd)
			return p.runPreflight(cmd.Context(), q, askEndpoint)
		},
	}
	cmd.Flags().StringVar(&q.dir, "repo", "", "folder of the git checkout [the workspace, else the current folder]")
	cmd.Flags().BoolVar(&askEndpoint, "endpoint", false, "ask the model one tiny question too")
	addSettings(cmd)
	return cmd
}

func (p *program) runPreflight(ctx context.Context, q request, askEndpoint bool) error {
	ctx, stop := actions.WatchParent(ctx)
	defer stop()
	q.noForge, q.noModel = true, !askEndpoint
	b, err := p.assemble(q)
	if b.log != nil {
		defer b.log.Close()
	}
	if err != nil {
		return b.refuse(err, false)
	}
	f, err := newFolder(b.runsFolder(), 0, !b.step.Active)
	if err != nil {
		return &infraError{err}
	}
	err = pipeline.Preflight(ctx, b.options(f), askEndpoint)
	if closeErr := f.close(false); closeErr != nil {
		b.log.Printf(actions.Warn, "cleaning up: %v", closeErr)
	}
	outcome := pipeline.PreflightOutcome(err, b.redact)
	b.conclude(outcome)
	return ended(outcome.Exit)
}
