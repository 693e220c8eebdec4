package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"issuesmith/internal/forge"
	"issuesmith/internal/gate"
	"issuesmith/internal/transcript"
	"issuesmith/internal/worktree"
)

// publish turns the judged change into a commit, a branch and a pull request.
func (r *run) publish(ctx context.Context, verdict *gate.Verdict) error {
	r.Log.Stage("Publish", r.state)
	r.tell(ctx)
	if err := r.writePatch(verdict); err != nil {
		return infrastructure("writing the patch", err)
	}
	if err := r.stillWanted(ctx); err != nil {
		return err
	}
	if r.Config.Mode == "dry-run" {
		r.result.Status = DryRun
		return nil
	}
	page := r.page(verdict)
	commit, err := r.tree.CommitChange(verdict.Change, worktree.Person{
		Name: r.Config.CommitName, Email: r.Config.CommitEmail, When: time.Now(),
	}, r.Redact.Text(r.commitMessage(page)))
	if err != nil {
		return infrastructure("making the commit", err)
	}
	page.Commit, r.result.Commit = commit, commit
	if r.Config.Mode == "direct" {
		return r.pushDirect(ctx, commit)
	}
	if err := r.push(ctx, commit, &page); err != nil {
		return err
	}
	if err := r.noteMovedBase(ctx, &page); err != nil {
		return err
	}
	return r.openOrUpdate(ctx, page)
}

// noteMovedBase says in the pull request when the base branch is not where it was checked out.
func (r *run) noteMovedBase(ctx context.Context, page *pullPage) error {
	if r.start.commit != r.Base {
		return nil // it goes on from the pull request's head, not from the base branch
	}
	refs, err := r.Remote.Refs(ctx)
	if err != nil {
		return infrastructure("looking whether the base branch moved", err)
	}
	if now := refs["refs/heads/"+r.BaseBranch]; now != "" && now != r.Base {
		page.Remarks = append(page.Remarks, fmt.Sprintf("The branch `%s` moved from %s to %s while this change was made; it was tested on the former.", r.BaseBranch, r.Base, now))
	}
	return nil
}

// pushDirect moves the base branch forward, and only forward.
func (r *run) pushDirect(ctx context.Context, commit string) error {
	err := r.Remote.Push(ctx, r.Repository, worktree.Update{Ref: "refs/heads/" + r.BaseBranch, Old: r.Base, New: commit})
	if errors.Is(err, worktree.ErrMoved) {
		return &Failure{Class: InfrastructureClass, Reason: fmt.Sprintf(
			"the branch %s moved while the run was working, so the commit could not be pushed; queue the issue again", r.BaseBranch), Err: err}
	}
	if err != nil {
		return infrastructure("pushing to "+r.BaseBranch, err)
	}
	r.result.Status, r.result.Branch = Pushed, r.BaseBranch
	return nil
}

// push puts the commit on the branch; when somebody was faster it goes to the next free
// number, and its pull request links the first.
func (r *run) push(ctx context.Context, commit string, page *pullPage) error {
	const tries = 20 // of branch names that others take at the same moment
	for try := range tries {
		err := r.Remote.Push(ctx, r.Repository, worktree.Update{Ref: "refs/heads/" + r.start.branch, Old: r.start.old, New: commit})
		if err == nil {
			r.result.Branch = r.start.branch
			r.Log.Infof("pushed %s to %s", short(commit), r.start.branch)
			_ = r.record.Write(transcript.KindPublish, r.attempt, 0, map[string]string{"branch": r.start.branch, "commit": commit})
			return nil
		}
		if !errors.Is(err, worktree.ErrMoved) {
			return infrastructure("pushing the branch "+r.start.branch, err)
		}
		refs, err := r.Remote.Refs(ctx)
		if err != nil {
			return infrastructure("listing the branches", err)
		}
		if try == 0 {
			note := fmt.Sprintf("Somebody pushed to `%s` while this run was working; nothing there was overwritten.", r.start.branch)
			if r.start.pull != nil {
				note += fmt.Sprintf(" See also %s.", r.start.pull.URL)
			}
			page.Remarks = append(page.Remarks, note)
			r.note(note)
		}
		r.start.pull, r.start.old = nil, ""
		for n := 2; ; n++ {
			if name := r.branchName(n); refs["refs/heads/"+name] == "" {
				r.start.branch = name
				break
			}
		}
	}
	return infrastructure("pushing the branch", fmt.Errorf("%d branch names in a row were taken by others", tries))
}

// openOrUpdate opens the pull request or brings the open one up to date.
func (r *run) openOrUpdate(ctx context.Context, page pullPage) error {
	title, body := page.title(), r.Redact.Text(page.body())
	pull, status := r.start.pull, Updated
	var err error
	if pull == nil {
		status = Opened
		pull, err = r.Forge.OpenPull(ctx, forge.NewPull{Title: r.Redact.Text(title), Body: body, Head: r.start.branch, Base: r.BaseBranch})
		if err != nil {
			return infrastructure("opening the pull request", err)
		}
	} else if err = r.Forge.EditPull(ctx, pull.Number, r.Redact.Text(title), body); err != nil {
		return infrastructure("updating the pull request", err)
	}
	r.result.Status, r.result.PullNumber, r.result.PullURL = status, pull.Number, pull.URL
	r.result.PullTitle, r.result.PullBody = r.Redact.Text(title), body
	r.Log.Infof("%s pull request: %s", status, pull.URL)
	_ = r.record.Write(transcript.KindPublish, r.attempt, 0, map[string]any{"status": status, "pull_request": pull.Number, "url": pull.URL})
	if r.Config.CIWorkflow != "" {
		if err := r.Forge.Dispatch(ctx, r.Config.CIWorkflow, r.start.branch); err != nil {
			return infrastructure("starting the workflow "+r.Config.CIWorkflow+" on the new branch (the pull request is open)", err)
		}
		r.Log.Infof("started the workflow %s on %s", r.Config.CIWorkflow, r.start.branch)
	}
	return nil
}
