package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"issuesmith/internal/actions"
	"issuesmith/internal/forge"
	"issuesmith/internal/pipeline"
)

// jobLimit is the runner's own limit for a job (3 h), less what cleaning up may take.
const jobLimit = 3*time.Hour - 5*time.Minute

func (p *program) newSweep() *cobra.Command {
	q := request{}
	cmd := &cobra.Command{
		Use: "sweep", Short: "Work on all queued issues, and recover those whose run died", Args: cobra.NoArgs,
		Long: "One pass over the queued issues, oldest first, after what dead runs left. Without a checkout the\n" +
			"base branch is fetched first.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.flags = settingsGiven(cmd)
			return p.runSweep(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&q.dir, "repo", "", "folder of the git checkout [the workspace, else the current folder]")
	cmd.Flags().BoolVar(&q.json, "json", false, "the outcomes as JSON on stdout, the log on stderr")
	addSettings(cmd)
	return cmd
}

// runSweep is one pass: what dead runs left first, then the queue, oldest first.
func (p *program) runSweep(ctx context.Context, q request) error {
	started := time.Now()
	ctx, stop := actions.WatchParent(ctx)
	defer stop()
	if p.noCheckout(q) {
		found, remove, err := p.cloneBase(ctx, q)
		if err != nil {
			return p.refuseEarly(err, q.json)
		}
		defer remove()
		q.base = found
	}
	b, err := p.assemble(q)
	if b.log != nil {
		defer b.log.Close()
	}
	if err != nil {
		return b.refuse(err, q.json)
	}
	numbers, stale, err := b.queue(ctx)
	if err != nil {
		return b.refuse(&infraError{err}, q.json)
	}
	b.log.Printf(actions.Info, "%d issues to look at", len(numbers))
	outcomes := []*pipeline.Outcome{}
	for _, number := range numbers {
		if time.Since(started)+b.config.RunTimeout > jobLimit {
			b.log.Printf(actions.Warn, "no time for another run in this job; issue #%d and those after it wait for the next sweep", number)
			break
		}
		outcome, err := b.solve(ctx, target{issue: number, needLabel: true, recover: true})
		if err != nil {
			return b.refuse(err, q.json)
		}
		b.bury(ctx, outcome, stale[number])
		b.conclude(outcome)
		outcomes = append(outcomes, outcome)
		if ctx.Err() != nil {
			break
		}
	}
	return b.deliverAll(outcomes, q.json)
}

// queue lists the issues of stale claims and those that bear the queued label.
func (b *bench) queue(ctx context.Context) ([]int, map[int]*forge.Standing, error) {
	claims, err := b.forge.Claims(ctx)
	if err != nil {
		return nil, nil, err
	}
	var numbers []int
	stale := map[int]*forge.Standing{}
	for i, c := range claims {
		if c.Stale {
			numbers = append(numbers, c.Issue)
			stale[c.Issue] = &claims[i]
		}
	}
	queued, err := b.forge.Labelled(ctx, b.config.Queued)
	if err != nil {
		return nil, nil, err
	}
	for _, issue := range queued {
		if stale[issue.Number] == nil {
			numbers = append(numbers, issue.Number)
		}
	}
	return numbers, stale, nil
}

// bury drops the claim of a dead run whose issue wants nothing any more.
func (b *bench) bury(ctx context.Context, o *pipeline.Outcome, s *forge.Standing) {
	if s == nil || o.Status != pipeline.NothingToDo {
		return
	}
	if err := b.forge.Drop(ctx, *s); err != nil && !errors.Is(err, forge.ErrNotFound) {
		b.log.Printf(actions.Warn, "dropping the claim on issue #%d: %v", o.Issue, err)
	}
}

// deliverAll: the outputs are those of the last issue, the exit code is the worst.
func (b *bench) deliverAll(outcomes []*pipeline.Outcome, asJSON bool) error {
	issues, err := json.Marshal(outcomes)
	if err != nil {
		return err
	}
	if asJSON {
		if _, err := b.program.stdout.Write(append(issues, '\n')); err != nil {
			return &infraError{fmt.Errorf("printing the outcomes: %w", err)}
		}
	}
	last := &pipeline.Outcome{Status: pipeline.NothingToDo}
	worst := pipeline.ExitDone
	for _, o := range outcomes {
		last = o
		worst = worse(worst, o.Exit)
	}
	if b.step.Active {
		if err := b.output(last, issues); err != nil {
			return &infraError{err}
		}
	}
	return ended(worst)
}

// worse orders exit codes: infrastructure, then configuration, then unsolved; a busy issue is fine.
func worse(a, b int) int {
	rank := map[int]int{pipeline.ExitFailed: 1, pipeline.ExitConfiguration: 2, pipeline.ExitInfrastructure: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
