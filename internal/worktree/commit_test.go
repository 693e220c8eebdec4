package worktree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestRandomChanges does random things to a worktree and compares with what git makes of
// them: the tree, the patch applied, the commit.
func TestRandomChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	files := map[string]string{}
	name := func() string {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = []string{"a", "a.b", "a-b", "a0", "b", "B", "z", "ab"}[random.IntN(8)]
		}
		return strings.Join(parts, "/")
	}
	for range 40 {
		n := name()
		if clash := func() bool {
			for have := range files {
				if within(have, n) || within(n, have) {
					return true
				}
			}
			return false
		}; !clash() {
			files[n] = fmt.Sprintf("%d\n", random.IntN(1000))
		}
	}
	repo := repoWith(t, files)
	tree := checkedOut(t, repo)
	begin(t, tree)
	for round := range 25 {
		for range 1 + random.IntN(6) {
			n := name()
			path := filepath.Join(tree.Dir(), n)
			switch random.IntN(4) {
			case 0:
				_ = os.RemoveAll(path)
			case 1:
				_ = os.Chmod(path, 0o755)
			default:
				for at := filepath.Dir(path); at != tree.Dir(); at = filepath.Dir(at) {
					if info, err := os.Lstat(at); err == nil && !info.IsDir() {
						_ = os.Remove(at)
					}
				}
				_ = os.RemoveAll(path)
				write(t, tree.Dir(), map[string]string{n: []string{"-> ", "+x ", ""}[random.IntN(3)] + fmt.Sprintf("%d\nx\n", random.IntN(1000))})
			}
		}
		c := change(t, tree)
		if want := gitTree(t, tree); c.Tree != want {
			t.Fatalf("round %d: tree %s, git says %s: %q", round, c.Tree, want, summary(c))
		}
		hash, err := tree.CommitChange(c, someone, "m")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := tree.repo.Commit(hash); err != nil || info.Tree != c.Tree {
			t.Fatalf("round %d: commit has tree %+v %v", round, info, err)
		}
		want := picture(t, tree.Dir())
		_ = os.RemoveAll(filepath.Join(tree.Dir(), "a"))
		if _, err := tree.Restore(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for path, state := range want { // chmod a folder is not in a change
			if strings.HasPrefix(state, "d") {
				delete(want, path)
			}
		}
		got := picture(t, tree.Dir())
		for path, state := range got {
			if strings.HasPrefix(state, "d") {
				delete(got, path)
			}
		}
		samePicture(t, got, want)
	}
}

func TestCommitText(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, project)
	r := opened(t, repo)
	evil := Person{Name: "a <b>\nparent x", Email: "x>\ny", When: someone.When}
	hash, err := r.EmptyCommit(evil, "no newline\x00 at end")
	if err != nil {
		t.Fatal(err)
	}
	info, err := r.Commit(hash)
	if err != nil || info.Message != "no newline at end\n" || info.Author.Name != "a bparent x" || info.Author.Email != "xy" || len(info.Parents) != 0 {
		t.Errorf("%+v %v", info, err)
	}
	if info.Tree != emptyTree.String() {
		t.Errorf("tree %s", info.Tree)
	}
	if again, _ := r.EmptyCommit(evil, "no newline\x00 at end"); again != hash {
		t.Error("not deterministic")
	}
	if _, err := r.Commit(strings.Repeat("0", 39) + "1"); !errors.Is(err, plumbing.ErrObjectNotFound) {
		t.Errorf("missing commit: %v", err)
	}
}

// TestEverythingDeleted leaves the empty tree.
func TestEverythingDeleted(t *testing.T) {
	t.Parallel()
	tree := begun(t, map[string]string{"a": "a", "b/c/d": "d"})
	steps(t, tree.Dir(), []step{remove("a"), remove("b")})
	if c := change(t, tree); c.Tree != emptyTree.String() || len(c.Files) != 2 {
		t.Errorf("%s %q", c.Tree, summary(c))
	}
}
