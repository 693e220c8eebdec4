package gitea

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"issuesmith/internal/forge"
	"issuesmith/internal/worktree"
)

// A remote says of git's refusals what they mean on this forge.
type remote struct {
	worktree.Remote
	f *Forge
}

// Refs implements worktree.Remote.
func (r *remote) Refs(ctx context.Context) (map[string]string, error) {
	refs, err := r.Remote.Refs(ctx)
	return refs, r.explain("listing the branches", err)
}

// Fetch implements worktree.Remote.
func (r *remote) Fetch(ctx context.Context, into *worktree.Repository, ref, commit string) error {
	return r.explain("fetching "+ref, r.Remote.Fetch(ctx, into, ref, commit))
}

// Push implements worktree.Remote.
func (r *remote) Push(ctx context.Context, from *worktree.Repository, updates ...worktree.Update) error {
	doing := "pushing"
	if len(updates) > 0 {
		doing += " " + updates[0].Ref
	}
	return r.explain(doing, r.Remote.Push(ctx, from, updates...))
}

func (r *remote) explain(doing string, err error) error {
	var access *worktree.AccessError
	switch {
	case err == nil || errors.Is(err, worktree.ErrMoved):
		return err
	case errors.As(err, &access) && access.Status == http.StatusUnauthorized:
		return forge.ErrToken
	case errors.As(err, &access), strings.Contains(err.Error(), deniedWords):
		return &forge.PermissionError{Doing: doing, Permission: contents, Detail: r.f.clean(err.Error())}
	}
	return r.f.cleanError(err)
}

// deniedWords are Gitea's when a token that may read pushes: git itself is let in, its hook refuses.
const deniedWords = "User permission denied for writing"
