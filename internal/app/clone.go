package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/go-git/go-git/v5"

	"issuesmith/internal/config"
	"issuesmith/internal/forge/gitea"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

// A base is a commit to start from, and where it was found.
type base struct {
	repository *worktree.Repository
	commit     string
	branch     string
}

// cloneBase brings the tip of the base branch, and nothing else, for a sweep without a checkout:
// over https, with the token in memory. close removes it.
func (p *program) cloneBase(ctx context.Context, q request) (found *base, closeIt func(), err error) {
	// The repository file is not there yet; it is read when the commit is.
	cfg, err := config.Load(config.Sources{Flags: q.flags, Lookup: p.lookup, Environ: p.environ, NoTests: true})
	if err != nil {
		return nil, nil, err
	}
	f, err := gitea.New(gitea.Options{ServerURL: cfg.ServerURL, Repository: cfg.Repository, Token: cfg.Token})
	if err != nil {
		return nil, nil, config.Problems{{Where: "forge", Key: "server-url", Value: cfg.ServerURL, Message: err.Error()}}
	}
	branch := cfg.BaseBranch
	if branch == "" {
		repository, err := f.Repository(ctx)
		if err != nil {
			return nil, nil, &infraError{err}
		}
		branch = repository.DefaultBranch
	}
	commit, err := tip(ctx, f, branch)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "issuesmith-clone-")
	if err != nil {
		return nil, nil, &infraError{err}
	}
	closeIt = func() { _ = sandbox.RemoveAll(dir) }
	found = &base{commit: commit, branch: branch}
	if _, err = git.PlainInit(dir, true); err == nil {
		found.repository, err = worktree.Open(dir)
	}
	if err == nil {
		err = f.Remote().Fetch(ctx, found.repository, "refs/heads/"+branch, commit)
	}
	if err != nil {
		closeIt()
		return nil, nil, &infraError{fmt.Errorf("fetching %s: %w", branch, err)}
	}
	return found, closeIt, nil
}

func tip(ctx context.Context, f *gitea.Forge, branch string) (string, error) {
	refs, err := f.Remote().Refs(ctx)
	if err != nil {
		return "", &infraError{fmt.Errorf("listing the branches: %w", err)}
	}
	commit := refs["refs/heads/"+branch]
	if commit == "" {
		return "", config.Problems{{Where: "forge", Key: "base-branch", Value: branch, Message: "the repository has no such branch: push a first commit, or set base-branch"}}
	}
	return commit, nil
}

// noCheckout reports whether there is no repository where one was looked for by default.
func (p *program) noCheckout(q request) bool {
	dir := q.dir
	if dir != "" {
		return false // it was named: not finding it is a mistake
	}
	if dir = p.step().Workspace; dir == "" {
		dir = "."
	}
	_, err := worktree.Open(dir)
	return errors.Is(err, worktree.ErrNoRepository) || errors.Is(err, fs.ErrNotExist)
}
