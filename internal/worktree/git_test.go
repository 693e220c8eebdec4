package worktree

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// git runs the real git, free of the machine's configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, nil, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(out, "\n")
}

func gitIn(t testing.TB, dir, input string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, []byte(input), args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(out, "\n")
}

func tryGit(dir string, input []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// files writes files into dir; "-> x" as content makes a link, "+x " an executable.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(path)
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, path)
		} else if script, ok := strings.CutPrefix(content, "+x "); ok {
			if err = os.WriteFile(path, []byte(script), 0o755); err == nil {
				err = os.Chmod(path, 0o755)
			}
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// repoWith makes a repository with one commit of files on branch main.
func repoWith(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	write(t, dir, files)
	git(t, dir, "add", "-Af")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "base")
	return dir
}

func head(t testing.TB, dir string) string { t.Helper(); return git(t, dir, "rev-parse", "HEAD") }

// open opens a repository and checks its head out.
func checkedOut(t testing.TB, repo string) *Tree {
	t.Helper()
	r, err := Open(repo)
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Checkout(t.Context(), h.Commit, filepath.Join(t.TempDir(), "tree"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// begun is a worktree of files with its first snapshot taken.
func begun(t testing.TB, files map[string]string) *Tree {
	t.Helper()
	tree := checkedOut(t, repoWith(t, files))
	begin(t, tree)
	return tree
}

func begin(t testing.TB, tree *Tree) {
	t.Helper()
	if err := tree.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func change(t testing.TB, tree *Tree) *Change {
	t.Helper()
	c, err := tree.Change(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// summary is a change as text: "added a +1-0".
func summary(c *Change) []string {
	var lines []string
	for _, f := range c.Files {
		kind := f.New.Kind
		if f.Op == Deleted {
			kind = f.Old.Kind
		}
		lines = append(lines, string(f.Op)+" "+string(kind)+" "+f.Path)
	}
	return lines
}

// gitTree is the tree hash git computes for a worktree on top of the repository's base.
func gitTree(t testing.TB, tree *Tree) string {
	t.Helper()
	index, objects := filepath.Join(t.TempDir(), "index"), t.TempDir() // the checkout stays as it is
	run := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"--git-dir=" + tree.repo.layout.gitDir, "--work-tree=" + tree.dir}, args...)...)
		cmd.Dir = tree.dir
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(tree.repo.layout.commonDir, "objects"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("read-tree", tree.commit)
	run("add", "-A", ".")
	return run("write-tree")
}

var someone = Person{Name: "issuesmith", Email: "issuesmith@localhost", When: time.Unix(1700000000, 0).UTC()}
