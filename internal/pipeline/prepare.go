package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"issuesmith/internal/agent"
	"issuesmith/internal/gate"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/transcript"
	"issuesmith/internal/worktree"
)

// guidance are the files by which a repository tells an agent how to work in it.
var guidance = []string{"AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md"}

// prepare makes the clean worktree and runs the setup commands in it.
func (r *run) prepare(ctx context.Context) error {
	r.Log.Stage("Prepare a clean worktree", r.state)
	r.tell(ctx)
	opened := r.open(ctx, r.start.commit)
	learned := r.learnSecrets(ctx)
	// Not before all secrets are known: the issue may hold one.
	_ = r.record.Write(transcript.KindRun, 0, 0, transcript.Run{
		ID: r.runID(), Version: r.Version, Issue: r.Issue, Title: r.task.Title, Body: r.task.Body, Repository: r.Config.Repository,
		Base: r.start.commit, Branch: r.BaseBranch, Model: r.Client.Name(), Sandbox: r.Config.Sandbox,
		Isolation: isolationRecord(r.sandbox, opened), Config: r.Config.Effective(),
	})
	if opened != nil {
		return infrastructure("preparing the worktree", opened)
	}
	if learned != nil {
		return infrastructure("looking for secrets that stand in the repository", learned)
	}
	if err := r.setup(ctx); err != nil {
		return infrastructure("setting up", err)
	}
	if err := r.tree.Begin(ctx); err != nil {
		return infrastructure("taking the first snapshot", err)
	}
	_ = r.record.Write(transcript.KindSnapshot, 0, 0, transcript.Snapshot{At: "start"})
	return nil
}

// open makes worktree and sandbox.
func (r *run) open(ctx context.Context, commit string) error {
	if err := os.MkdirAll(r.Work, 0o711); err != nil { // #nosec G301 -- the commands' user must pass through
		return err
	}
	owner := sandbox.DropOwner()
	dir := filepath.Join(r.Work, "tree")
	tree, err := r.Repository.Checkout(ctx, commit, dir, worktree.Options{UID: owner.UID, GID: owner.GID, Chown: owner.Drop})
	var unsupported *worktree.UnsupportedError
	if errors.As(err, &unsupported) {
		return &Failure{Class: ConfigurationClass, Reason: unsupported.Error(), Err: err}
	}
	if err != nil {
		return err
	}
	r.tree = tree
	if err := tree.WriteHistory(ctx, r.history(), r.BaseBranch, sandbox.Reachable); err != nil {
		// Commands then find no repository, as they do where git is not installed.
		r.Log.Warnf("git in commands: %v", err)
		_ = sandbox.RemoveAll(r.history())
	}
	if r.sandbox, err = sandbox.New(r.sandboxOptions()); err != nil { //nolint:contextcheck // names are looked up within a limit of its own
		return err
	}
	r.Log.Infof("worktree of %s", short(commit))
	r.tellIsolation(r.sandbox.Report())
	return nil
}

// setup runs the setup commands, which may have another network than those after them. What they leave in HOME stays.
func (r *run) setup(ctx context.Context) error {
	if len(r.Config.SetupCommands) == 0 {
		return nil
	}
	o := r.sandboxOptions()
	o.Network = sandbox.Network{Open: r.Config.SetupOpen, Allow: r.Config.SetupNetwork}
	box, err := sandbox.New(o) //nolint:contextcheck // names are looked up within a limit of its own
	if err != nil {
		return err
	}
	r.tellSetup(box.Report())
	_, err = gate.Setup(ctx, box, r.Config.SetupCommands, r.Config.TestTimeout, r.progress)
	return errors.Join(err, box.Close())
}

// brief is what the model is told in an attempt.
func (r *run) brief(attempt int, feedback string) agent.Brief {
	c := r.Config
	b := agent.Brief{
		Number: r.Issue, Title: r.task.Title, URL: r.task.URL, Body: r.Redact.Text(r.task.Body),
		Playbook: c.Playbook, TestCommands: c.TestCommands, MaxFiles: c.MaxFiles, MaxLines: c.MaxLines,
		Feedback: feedback, Attempt: attempt, Attempts: c.MaxAttempts,
	}
	for _, comment := range r.task.Comments {
		b.Comments = append(b.Comments, agent.Comment{Author: comment.Author, Body: r.Redact.Text(comment.Body)})
	}
	for _, review := range r.start.reviews {
		where := "review of the open pull request"
		if review.Path != "" {
			where = fmt.Sprintf("review of the open pull request, %s:%d", review.Path, review.Line)
		}
		b.Comments = append(b.Comments, agent.Comment{Author: review.Author, Body: r.Redact.Text(review.Body), Where: where})
	}
	for _, path := range guidance {
		text, err := r.Repository.ReadFile(r.start.commit, path)
		if err == nil {
			b.Guidance = append(b.Guidance, agent.Guide{Path: path, Text: string(text)})
		} else if !errors.Is(err, fs.ErrNotExist) {
			r.note(fmt.Sprintf("could not read %s: %v", path, err))
		}
	}
	if r.start.pull != nil {
		b.Notes = append(b.Notes, "An earlier run's work is in the worktree already and its pull request is open: improve it as the review comments ask.")
	}
	if r.tree != nil {
		for _, path := range r.tree.LFS() {
			b.Notes = append(b.Notes, "Git LFS pointer, the real content is not here: "+path)
		}
		for _, path := range r.tree.Submodules() {
			b.Notes = append(b.Notes, "Submodule, its files are not here: "+path)
		}
	}
	return b
}
