package worktree

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	remote, bare, checkout, _ := served(t, project)
	work := filepath.Join(t.TempDir(), "work")
	git(t, filepath.Dir(bare), "clone", "-q", bare, work)
	large := strings.Repeat("a large file that is compressed well\n", 300_000)
	write(t, work, map[string]string{"person.txt": "by a person\n", "large": large})
	git(t, work, "checkout", "-q", "-b", "ai/issue-1")
	git(t, work, "add", "-A")
	git(t, work, "commit", "-q", "-m", "person")
	git(t, work, "push", "-q", "origin", "ai/issue-1")
	commit := head(t, work)

	r := opened(t, checkout)
	if _, err := r.Commit(commit); err == nil {
		t.Fatal("it is here already")
	}
	if err := remote.Fetch(t.Context(), r, "refs/heads/main", commit); !errors.Is(err, ErrMoved) {
		t.Errorf("wrong ref: %v", err)
	}
	if err := remote.Fetch(t.Context(), r, "refs/heads/ai/issue-1", commit); err != nil {
		t.Fatal(err)
	}
	tree, err := r.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "tree"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	if data, err := tree.ReadFile("large"); err != nil || string(data) != large {
		t.Errorf("large file: %d bytes, %v", len(data), err)
	}
	begin(t, tree)
	write(t, tree.Dir(), map[string]string{"person.txt": "by a person\nand us\n"})
	hash, err := tree.CommitChange(change(t, tree), someone, "Second")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := r.ours([]Update{{New: hash}})
	if err != nil || len(objects) != 3 { // commit, tree, blob: nothing that was fetched
		t.Errorf("%d objects to send, %v", len(objects), err)
	}
	if err := remote.Push(t.Context(), r, Update{"refs/heads/ai/issue-1", commit, hash}); err != nil {
		t.Fatal(err)
	}
	git(t, bare, "fsck", "--strict")
	if got := git(t, bare, "show", "ai/issue-1:person.txt"); got != "by a person\nand us" {
		t.Errorf("%q", got)
	}
	if got := picture(t, filepath.Join(checkout, ".git", "refs")); strings.Contains(fmt.Sprint(got), "issue-1") {
		t.Error("the checkout has got a ref")
	}
}

func TestLocalRemote(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"full", "shallow", "shared"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			_, bare, checkout, _ := served(t, project)
			switch form {
			case "full":
				checkout = filepath.Join(t.TempDir(), "c")
				git(t, bare, "clone", "-q", bare, checkout)
			case "shared":
				checkout = filepath.Join(t.TempDir(), "c")
				git(t, bare, "clone", "-q", "--shared", bare, checkout)
			}
			tree := checkedOut(t, checkout)
			begin(t, tree)
			write(t, tree.Dir(), map[string]string{"a/b/c.txt": "fixed\n"})
			hash, err := tree.CommitChange(change(t, tree), someone, "Fix")
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "out", "local.git")
			remote, err := NewLocalRemote(dir, tree.repo)
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Push(t.Context(), tree.repo, Update{Ref: "refs/heads/ai/issue-1", New: hash}); err != nil {
				t.Fatal(err)
			}
			git(t, dir, "fsck", "--strict")
			if got := git(t, checkout, "-C", dir, "show", "ai/issue-1:a/b/c.txt"); got != "fixed" {
				t.Errorf("show: %q", got)
			}
			git(t, checkout, "fetch", "-q", dir, "ai/issue-1")
			if got := git(t, checkout, "rev-parse", "FETCH_HEAD"); got != hash {
				t.Errorf("fetched %s", got)
			}
			// The same folder again, from a process that has not made the commit.
			again := opened(t, checkout)
			remote, err = NewLocalRemote(dir, again)
			if err != nil {
				t.Fatal(err)
			}
			fresh := opened(t, bare)
			if err := remote.Fetch(t.Context(), fresh, "refs/heads/ai/issue-1", hash); err != nil {
				t.Fatal(err)
			}
			if data, err := fresh.ReadFile(hash, "a/b/c.txt"); err != nil || string(data) != "fixed\n" {
				t.Errorf("%q %v", data, err)
			}
			git(t, dir, "pack-refs", "--all")
			if refs, err := remote.Refs(t.Context()); err != nil || refs["refs/heads/ai/issue-1"] != hash {
				t.Errorf("packed: %v %v", refs, err)
			}
			if err := remote.Push(t.Context(), fresh, Update{Ref: "refs/heads/ai/issue-1", Old: hash}); err != nil {
				t.Error(err)
			}
			if refs, err := remote.Refs(t.Context()); err != nil || len(refs) != 0 {
				t.Errorf("deleted: %v %v", refs, err)
			}
		})
	}
	if _, err := NewLocalRemote(repoWith(t, project), opened(t, repoWith(t, nil))); err == nil {
		t.Error("a folder with files was taken for a remote")
	}
}
