package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"issuesmith/internal/forge"
)

// takeovers is how often an issue whose run was killed is tried again.
const takeovers = 2

// labels are the automation labels with the look they get when they are missing.
func (r *run) labels() []forge.Label {
	c := r.Config
	return []forge.Label{
		{Name: c.Queued, Color: "1d76db", Description: "issuesmith: work on this issue"},
		{Name: c.Running, Color: "fbca04", Description: "issuesmith: a run works on this issue"},
		{Name: c.Ready, Color: "0e8a16", Description: "issuesmith: a pull request waits for review"},
		{Name: c.Failed, Color: "b60205", Description: "issuesmith: the last run did not solve this issue"},
	}
}

// takeClaim makes this run the one that works on the issue, fixes the text it works on,
// and says so on the issue.
func (r *run) takeClaim(ctx context.Context) error {
	r.Log.Stage("Claim the issue", r.state)
	claim := r.Claim
	claim.Issue, claim.Started, claim.Deadline = r.Issue, r.started.UTC(), r.deadline.UTC().Add(finishLimit)
	held, err := r.Forge.Claim(ctx, claim)
	if errors.Is(err, forge.ErrBusy) {
		return err
	}
	if err != nil {
		return infrastructure("claiming the issue", err)
	}
	r.held = held
	if held.Over != nil {
		r.note(fmt.Sprintf("took over the claim of run %s: %s", held.Over.Run, held.Why))
	}
	// The issue may have changed between the first look and the claim.
	issue, err := r.Forge.Issue(ctx, r.Issue)
	if err != nil {
		return infrastructure("reading the issue again", err)
	}
	r.issue = issue
	r.comment = r.leftComment()
	if err := r.afterClaim(issue); err != nil {
		return err
	}
	if err := r.markRunning(ctx); err != nil {
		return err
	}
	return r.checkTask()
}

// afterClaim decides whether the issue still asks for a run, and whether a run that was
// stopped is to be repeated.
func (r *run) afterClaim(issue *forge.Issue) error {
	c := r.Config
	if err := r.wanted(issue, r.NeedLabel); err != nil {
		return err
	}
	over := r.held.Over
	if r.NeedLabel && !issue.HasLabel(c.Queued) && over == nil {
		return &unwanted{why: fmt.Sprintf("issue #%d does not bear the label %s any more", issue.Number, c.Queued)}
	}
	again := issue.HasLabel(c.Queued) // a person asked for it since
	if r.held.Cancelled && r.Recover && !again {
		return &Failure{Class: AgentClass, Reason: "the last run was stopped by a person, so it is not restarted", Err: ErrStopped}
	}
	if over != nil && r.held.Takeover > takeovers {
		return &Failure{Class: InfrastructureClass, Reason: fmt.Sprintf(
			"%d runs on this issue were killed before they could end, so it is not tried again; look for the cause in the runner's log (memory, disk, a machine that restarts)", r.held.Takeover)}
	}
	return nil
}

// markRunning fixes the task, then tells people: the progress comment first, since it is what they wait
// for, then the labels.
func (r *run) markRunning(ctx context.Context) error {
	c := r.Config
	r.task = forge.Approve(r.issue, r.Approval, r.owner(ctx), c.TrustedUsers, r.started)
	r.tell(ctx)
	if err := r.Forge.EnsureLabels(ctx, r.labels()); err != nil {
		return infrastructure("making the automation labels", err)
	}
	if err := r.setLabel(ctx, c.Running); err != nil {
		return err
	}
	r.marked = true
	return nil
}

// owner is the repository's owner, whose comments are trusted.
func (r *run) owner(ctx context.Context) string {
	if repository, err := r.Forge.Repository(ctx); err == nil {
		return repository.Owner
	}
	owner, _, _ := strings.Cut(r.Config.Repository, "/")
	return owner
}

// setLabel makes name the only state label ("" for none). Others are never touched.
func (r *run) setLabel(ctx context.Context, name string) error {
	c := r.Config
	if name != "" {
		if err := r.Forge.AddLabel(ctx, r.Issue, name); err != nil {
			return infrastructure("setting the label "+name, err)
		}
	}
	for _, other := range []string{c.Queued, c.Running, c.Ready, c.Failed} {
		switch {
		case other == name:
			continue
		case other == c.Queued && r.marked:
			continue // this run took it off, so a person asks for another run
		case other != c.Running && !r.issue.HasLabel(other):
			continue
		}
		if err := r.Forge.RemoveLabel(ctx, r.Issue, other); err != nil {
			return infrastructure("removing the label "+other, err)
		}
	}
	return nil
}

// checkTask refuses an issue that says nothing.
func (r *run) checkTask() error {
	if r.task.EditedLater {
		r.note("the issue's text was edited after it was labelled; the edit is not used")
	}
	if strings.TrimSpace(r.task.Body) == "" && len(r.task.Comments) == 0 {
		return &Failure{Class: ConfigurationClass, Reason: fmt.Sprintf(
			"the issue has a title but no text: describe what is wrong and what should happen, then put the label %s on it again", r.Config.Queued)}
	}
	return nil
}

// stillWanted looks again whether the issue asks for this run: a person may have closed it or
// taken the label away.
func (r *run) stillWanted(ctx context.Context) error {
	issue, err := r.Forge.Issue(ctx, r.Issue)
	if errors.Is(err, forge.ErrNotFound) {
		return &unwanted{why: fmt.Sprintf("issue #%d was deleted while the run was working", r.Issue), gone: true}
	}
	if err != nil {
		return infrastructure("looking at the issue again", err)
	}
	r.issue = issue
	switch {
	case !issue.Open:
		return &unwanted{why: "the issue was closed while the run was working; nothing was published"}
	case !issue.HasLabel(r.Config.Running):
		return &unwanted{why: fmt.Sprintf("the label %s was taken away while the run was working; nothing was published", r.Config.Running)}
	}
	return nil
}

// runID is what the commit's trailer and the transcript call this run.
func (r *run) runID() string { return fmt.Sprintf("%s.%d", r.Claim.Run, r.Claim.Attempt) }

// finishLimit is what the last writes of a run (labels, comment, claim) may take.
const finishLimit = 2 * time.Minute

// leftComment is the progress comment of the run that was taken over: it is edited on, so that
// none says "is working" for ever.
func (r *run) leftComment() int64 {
	if r.held.Over == nil {
		return 0
	}
	mark := commentMark(fmt.Sprintf("%s.%d", r.held.Over.Run, r.held.Over.Attempt))
	for _, c := range r.issue.Comments {
		if c.Progress() && strings.HasPrefix(c.Body, mark) {
			return c.ID
		}
	}
	return 0
}
