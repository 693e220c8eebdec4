package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"issuesmith/internal/forge"
	"issuesmith/internal/transcript"
)

// admit looks at everything that could refuse the run before anything is touched.
func (r *run) admit(ctx context.Context) error {
	r.Log.Stage("Look at the issue", r.state)
	if err := os.MkdirAll(r.Folder, 0o700); err != nil {
		return infrastructure("making the run's folder", err)
	}
	record, err := transcript.Create(filepath.Join(r.Folder, "transcript.jsonl"), r.Redact)
	if err != nil {
		return infrastructure("starting the transcript", err)
	}
	r.record = record
	issue, err := r.Forge.Issue(ctx, r.Issue)
	if errors.Is(err, forge.ErrNotFound) {
		return &unwanted{why: fmt.Sprintf("issue #%d does not exist (any more)", r.Issue), gone: true}
	}
	if err != nil {
		return infrastructure(fmt.Sprintf("reading issue #%d", r.Issue), err)
	}
	r.issue = issue
	if issue.IsPull {
		return &Failure{Class: ConfigurationClass, Reason: fmt.Sprintf("#%d is a pull request, not an issue: give the number of an issue", r.Issue)}
	}
	if err := r.wanted(issue, r.NeedLabel); err != nil {
		return err
	}
	return r.checkBase(ctx)
}

// wanted says why an issue is not to be worked on now.
func (r *run) wanted(issue *forge.Issue, needLabel bool) error {
	c := r.Config
	switch {
	case !issue.Open:
		return &unwanted{why: fmt.Sprintf("issue #%d is closed", issue.Number)}
	case needLabel && !issue.HasLabel(c.Queued) && !issue.HasLabel(c.Running):
		return &unwanted{why: fmt.Sprintf("issue #%d does not bear the label %s any more", issue.Number, c.Queued)}
	}
	return nil
}

// checkBase refuses to start from commits that the base branch lacks: their changes would
// ride along in the pull request.
func (r *run) checkBase(ctx context.Context) error {
	held, err := r.Forge.Contains(ctx, r.BaseBranch, r.Base)
	if errors.Is(err, forge.ErrNotFound) {
		return &Failure{Class: ConfigurationClass, Reason: fmt.Sprintf(
			"the base branch %q or the checked-out commit %s is not on the server: push it first, or set base-branch", r.BaseBranch, short(r.Base))}
	}
	if err != nil {
		return infrastructure("comparing the checkout with the base branch", err)
	}
	if !held {
		return &Failure{Class: ConfigurationClass, Reason: fmt.Sprintf(
			"the checked-out commit %s has commits that the base branch %q lacks, and they would become part of the pull request: check out %s, or set base-branch to the branch that holds them",
			short(r.Base), r.BaseBranch, r.BaseBranch)}
	}
	return nil
}

func short(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}

// oneLine is text in one line of at most limit runes.
func oneLine(text string, limit int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= limit {
		return string(runes)
	}
	return string(runes[:limit-1]) + "…"
}
