package worktree

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// A Remote is a repository that refs can be listed on, fetched from and pushed to.
type Remote interface {
	// Refs lists all refs with their hashes (peeled entries left out).
	Refs(ctx context.Context) (map[string]string, error)
	// Fetch brings one commit with its whole tree, without parents, into the repository.
	// ref is a full ref name that points at it; ErrMoved (wrapped) when it does not any more.
	Fetch(ctx context.Context, into *Repository, ref, commit string) error
	// Push updates refs; each only if it is Old now. The objects of this run go along. A lost
	// race is ErrMoved (wrapped), whatever words the server uses.
	Push(ctx context.Context, from *Repository, updates ...Update) error
}

// An Update moves a ref. An empty Old creates, an empty New deletes.
type Update struct{ Ref, Old, New string }

// An AccessError says that the server does not let the token do what was asked. Status
// is the HTTP status: 401 (token unknown or dead), 403 (not allowed) or 404 (what servers
// say of private repositories). Op is "read" or "push".
type AccessError struct {
	Status int
	Op     string
}

func (e *AccessError) Error() string {
	switch e.Status {
	case 401:
		return fmt.Sprintf("the server does not accept the token (401) for a %s: it is wrong, or its job has ended", e.Op)
	case 404:
		return fmt.Sprintf("the server knows no such repository (404) for a %s: the address is wrong, or the token lacks the permission to see it", e.Op)
	default:
		return fmt.Sprintf("the server refuses a %s with this token (%d)", e.Op, e.Status)
	}
}

// check refuses updates that mean nothing, before anything is sent.
func check(updates []Update) error {
	if len(updates) == 0 {
		return fmt.Errorf("push: no updates given")
	}
	for _, u := range updates {
		name := plumbing.ReferenceName(u.Ref)
		if err := name.Validate(); err != nil || !strings.HasPrefix(u.Ref, "refs/") {
			return fmt.Errorf("push: %q is not a full ref name", u.Ref)
		}
		for _, hash := range []string{u.Old, u.New} {
			if hash != "" && !plumbing.IsHash(hash) {
				return fmt.Errorf("push %s: %q is not a hash", u.Ref, hash)
			}
		}
		if u.Old == u.New {
			return fmt.Errorf("push %s: nothing to update", u.Ref)
		}
	}
	return nil
}

// moved is ErrMoved with the ref in question.
func moved(u Update, now string) error {
	said := func(hash string) string {
		if hash == "" {
			return "nothing"
		}
		return hash
	}
	return fmt.Errorf("push %s: it is at %s, expected %s: %w", u.Ref, said(now), said(u.Old), ErrMoved)
}

// ours lists the objects of this run that are reachable from the new commits, in the
// order of their reading. Everything else is in the base commit or was fetched, so the
// remote has it.
func (r *Repository) ours(updates []Update) ([]plumbing.EncodedObject, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []plumbing.EncodedObject
	seen := map[plumbing.Hash]bool{}
	var add func(hash plumbing.Hash) error
	add = func(hash plumbing.Hash) error {
		made, ok := r.created[hash]
		if !ok || seen[hash] {
			return nil
		}
		seen[hash] = true
		list = append(list, made)
		switch made.Type() {
		case plumbing.CommitObject:
			c, err := object.DecodeCommit(nil, made)
			if err != nil {
				return err
			}
			for _, next := range append([]plumbing.Hash{c.TreeHash}, c.ParentHashes...) {
				if err := add(next); err != nil {
					return err
				}
			}
		case plumbing.TreeObject:
			t, err := object.DecodeTree(nil, made)
			if err != nil {
				return err
			}
			for _, e := range t.Entries {
				if e.Mode == filemode.Submodule {
					continue
				}
				if err := add(e.Hash); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, u := range updates {
		if u.New == "" {
			continue
		}
		if err := add(plumbing.NewHash(u.New)); err != nil {
			return nil, fmt.Errorf("collect the objects of %s: %w", u.New, err)
		}
	}
	return list, nil
}

// pack writes objects as a pack without deltas.
func packOf(objects []plumbing.EncodedObject) (*bytes.Buffer, error) {
	source := memory.NewStorage()
	hashes := make([]plumbing.Hash, 0, len(objects))
	for _, o := range objects {
		hash, err := source.SetEncodedObject(o)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hash)
	}
	var b bytes.Buffer
	if _, err := packfile.NewEncoder(&b, source, false).Encode(hashes, 0); err != nil {
		return nil, fmt.Errorf("pack the objects: %w", err)
	}
	return &b, nil
}

// complete checks that a commit's tree is there whole.
func (r *Repository) complete(commit plumbing.Hash) error {
	c, err := r.commit(commit.String())
	if err != nil {
		return err
	}
	var walk func(hash plumbing.Hash) error
	seen := map[plumbing.Hash]bool{}
	walk = func(hash plumbing.Hash) error {
		if seen[hash] {
			return nil
		}
		seen[hash] = true
		entries, err := r.tree(hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch {
			case e.Mode == filemode.Submodule:
			case e.Mode == filemode.Dir:
				if err := walk(e.Hash); err != nil {
					return err
				}
			case !r.has(e.Hash):
				return fmt.Errorf("%q: %w", e.Name, r.missing(plumbing.BlobObject, e.Hash))
			}
		}
		return nil
	}
	return walk(c.TreeHash)
}
