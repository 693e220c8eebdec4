package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIndexSparesReading: a file with the size and the second of the checkout is not read; one that was written since is, even
// at once and with the same size.
func TestIndexSparesReading(t *testing.T) {
	t.Parallel()
	tree := checkedOut(t, repoWith(t, map[string]string{"same": "aaaa\n", "edited": "aaaa\n", "link": "-> aaaa"}))
	git := reader{top: tree.Dir(), dir: tree.Dir(), history: history(t, tree, "main", always)}
	write(t, git.top, map[string]string{"same": "bbbb\n", "edited": "bbbb\n", "link": "-> bbbb"})
	if err := os.Chtimes(filepath.Join(git.top, "same"), tree.written, tree.written); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(git.git(t, "status", "--porcelain"), "\n")
	if want := []string{" M edited", " M link"}; !slices.Equal(got, want) {
		t.Errorf("git status says %q, want %q", got, want)
	}
}

// TestIndexWithoutTrees: what an index cannot say of a commit is left out, and git finds out by itself.
func TestIndexWithoutTrees(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, map[string]string{"a": "a\n"})
	blob := head2(t, repo, "HEAD:a")
	inner := gitIn(t, repo, "040000 tree "+emptyTree.String()+"\tnothing\n100664 blob "+blob+"\told\n", "mktree", "--missing")
	root := gitIn(t, repo, "040000 tree "+inner+"\td\n", "mktree")
	commit := git(t, repo, "commit-tree", "-m", "odd", root)
	gitIn(t, repo, "", "hash-object", "-w", "-t", "tree", "--stdin")
	tree, err := opened(t, repo).Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "tree"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	git := reader{top: tree.Dir(), dir: tree.Dir(), history: history(t, tree, "main", always)}
	if out := git.git(t, "status", "--porcelain"); out != "" {
		t.Errorf("git status: %s", out)
	}
	write(t, git.top, map[string]string{"d/old": "b\n"})
	if out := git.git(t, "status", "--porcelain"); out != " M d/old" {
		t.Errorf("git status: %q", out)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}
