package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"

	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

// canary is a known secret of the tests' runs.
const canary = "canary-4f7c19d2e8"

// newSet makes a repository of the given files, checks it out and lays the tools over it.
func newSet(t testing.TB, files map[string]string) *Set {
	t.Helper()
	return newLimitedSet(t, files, sandbox.Limits{})
}

// newLimitedSet is newSet with limits and addresses that commands may reach.
func newLimitedSet(t testing.TB, files map[string]string, limits sandbox.Limits, network ...string) *Set {
	t.Helper()
	base, err := os.MkdirTemp("", "tool-test-")
	must(t, err)
	must(t, os.Chmod(base, 0o755)) // #nosec G302 -- the commands' user has to get in
	owner := sandbox.DropOwner()
	repo := filepath.Join(base, "repo")
	commit(t, repo, files)
	r, err := worktree.Open(repo)
	must(t, err)
	head, err := r.Head()
	must(t, err)
	tree, err := r.Checkout(t.Context(), head.Commit, filepath.Join(base, "tree"), worktree.Options{UID: owner.UID, GID: owner.GID, Chown: owner.Drop})
	must(t, err)
	history := filepath.Join(base, "history")
	must(t, tree.WriteHistory(t.Context(), history, "main", sandbox.Reachable))
	box, err := sandbox.New(sandbox.Options{
		Dir: tree.Dir(), Home: filepath.Join(base, "home"), Tmp: filepath.Join(base, "tmp"), Path: os.Getenv("PATH"), History: history,
		Limits: limits, Network: sandbox.Network{Allow: network},
	})
	must(t, err)
	t.Cleanup(func() {
		must(t, box.Close())
		must(t, tree.Close())
		must(t, os.RemoveAll(base))
	})
	return NewSet(Bench{Tree: tree, Sandbox: box, Outputs: filepath.Join(base, "outputs"), Timeout: 20 * time.Second, Redact: redact.New(canary)})
}

func commit(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	repo, err := git.PlainInit(dir, false)
	must(t, err)
	w, err := repo.Worktree()
	must(t, err)
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		mode := os.FileMode(0o600)
		if strings.HasPrefix(content, "#!") {
			mode = 0o700
		}
		must(t, os.WriteFile(path, []byte(content), mode))
		_, err := w.Add(name)
		must(t, err)
	}
	_, err = w.Commit("base", &git.CommitOptions{AllowEmptyCommits: true, Author: &object.Signature{Name: "a", Email: "a@example.org", When: time.Unix(1, 0)}})
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// args is a JSON object of names and values.
func args(pairs ...any) string {
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// call makes a call that must be valid and says whether it worked.
func call(t testing.TB, s *Set, name, arguments string) Result {
	t.Helper()
	r, valid, err := s.Call(t.Context(), name, arguments)
	if err != nil || !valid {
		t.Fatalf("%s %.200s: valid %t, error %v, text %.500s", name, arguments, valid, err, r.Text)
	}
	if len(r.Text) > maxResult+300 {
		t.Fatalf("%s %.200s: a result of %d bytes", name, arguments, len(r.Text))
	}
	return r
}

// want checks a result against the parts its text must hold; those with a leading ! must not be there.
func want(t testing.TB, r Result, fails bool, parts ...string) {
	t.Helper()
	if r.Failed != fails {
		t.Errorf("failed is %t, want %t: %.500s", r.Failed, fails, r.Text)
	}
	for _, p := range parts {
		text, absent := strings.CutPrefix(p, "!")
		if strings.Contains(r.Text, text) == absent {
			t.Errorf("%q: there is %t, wanted %t, in: %.600q", text, absent, !absent, r.Text)
		}
	}
}

// read returns a file of the worktree as it lies on disk.
func read(t testing.TB, s *Set, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.bench.Tree.Dir(), name))
	must(t, err)
	return string(data)
}
