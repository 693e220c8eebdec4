package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"issuesmith/internal/sandbox"
)

// Git answers in the worktree as people and models expect, and nothing can be committed.
func TestGitReadsTheHistory(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{"a.txt": "one\n", "sub/b.txt": "two\n", "run.sh": "#!/bin/sh\n"})
	run := func(script string) (int, string) {
		t.Helper()
		r, err := s.bench.Sandbox.Run(t.Context(), sandbox.Command{Script: script})
		must(t, err)
		return r.Exit, r.Output()
	}
	for _, c := range []struct {
		script string
		exit   int
		want   []string // all in the output; "" is an empty output
	}{
		{"git status --short", 0, []string{""}},
		{"git status", 0, []string{"On branch main", "clean"}},
		{"git log --format=%s", 0, []string{"base\n"}},
		{"git branch --show-current; git rev-parse --show-toplevel", 0, []string{"main\n", s.bench.Tree.Dir() + "\n"}},
		{"git ls-files; git show HEAD:sub/b.txt; git blame a.txt", 0, []string{"run.sh\n", "two\n", "1) one"}},
		{"echo three >> a.txt; echo new > n.txt; rm run.sh; git status --short", 0, []string{" M a.txt\n", "?? n.txt\n", " D run.sh\n"}},
		{"git diff --stat", 0, []string{"a.txt", "run.sh", "2 files changed"}},
		{"cd sub && git diff --relative=sub && git diff ..", 0, []string{"+three"}},
		{"git diff --exit-code >/dev/null", 1, []string{""}},
		{"git grep -n three", 0, []string{"a.txt:2:three"}},
		{"git add -A && git status --short", 0, []string{"nothing to stage", " M a.txt\n"}},
		{"git commit -am x", 1, []string{"read-only"}},
		{"git stash", 1, []string{"read-only"}},
		{"git stash list; git branch; git tag -l", 0, []string{"* main"}},
		{"git branch other", 1, []string{"read-only"}},
		{"git restore a.txt && git checkout -- run.sh && git status --short && ls $TMPDIR/.issuesmith* 2>/dev/null", 2, []string{"?? n.txt\n"}},
		{"git -C sub status --short", 0, []string{"?? ../n.txt"}},
		{"cd $(mktemp -d) && git init -q && echo x > f && git add f && git commit -qm mine && git log --format=%s-%an", 0, []string{"mine-issuesmith\n"}},
		{"mkdir 'own $repo' && cd 'own $repo' && git init -q && git commit -q --allow-empty -m inner && git log --format=%s; cd .. && rm -rf 'own $repo'", 0, []string{"inner\n"}},
		{"cd $(mktemp -d) && git status", 128, []string{"not a git repository"}},
		{"git init -q clone && git clone -q clone other 2>&1; rm -rf clone other", 0, []string{"empty repository"}},
	} {
		exit, out := run(c.script)
		if exit != c.exit {
			t.Errorf("%s: exit %d, want %d:\n%s", c.script, exit, c.exit, out)
		}
		for _, want := range c.want {
			if want == "" && out != "" || !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", c.script, want, out)
			}
		}
	}
}

// What the checkout's own configuration and attributes name never runs.
func TestGitRunsNothingOfTheCheckout(t *testing.T) {
	t.Parallel()
	marker := "touch \"$HOME/marker\""
	s := newSet(t, map[string]string{
		"a.txt": "one\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n",
		".gitconfig": "[core]\n\tfsmonitor = " + marker + "\n\tpager = " + marker + "\n",
	})
	repo := filepath.Join(filepath.Dir(s.bench.Tree.Dir()), "repo", ".git")
	config := "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"" + strings.ReplaceAll(marker, `"`, `\"`) + "\"\n\tpager = touch marker\n" +
		"[filter \"evil\"]\n\tclean = touch marker; cat\n\tsmudge = touch marker; cat\n[diff \"evil\"]\n\ttextconv = touch marker; cat\n\tcommand = touch marker\n[alias]\n\tlog = !touch marker\n"
	must(t, os.WriteFile(filepath.Join(repo, "config"), []byte(config), 0o600))
	must(t, os.MkdirAll(filepath.Join(repo, "hooks"), 0o700))
	for _, hook := range []string{"post-checkout", "pre-commit", "post-index-change"} {
		must(t, os.WriteFile(filepath.Join(repo, "hooks", hook), []byte("#!/bin/sh\ntouch marker\n"), 0o700)) // #nosec G306 -- a hook
	}
	r, err := s.bench.Sandbox.Run(t.Context(), sandbox.Command{Script: "echo x >> a.txt; git status; git log; git diff; git checkout -- a.txt; git show; ls -a . $HOME"})
	must(t, err)
	if out := r.Output(); strings.Contains(out, "\nmarker\n") || !strings.Contains(out, "+x") {
		t.Errorf("output:\n%s", out)
	}
}
