package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// large makes a repository of 50,000 files in 1,011 folders without running git add, which
// would take longer than what is measured.
func large(b testing.TB) string {
	b.Helper()
	dir := b.TempDir()
	git(b, dir, "init", "-q", "-b", "main")
	var in strings.Builder
	in.WriteString("commit refs/heads/main\ncommitter a <a@example.org> 1700000000 +0000\ndata 5\nbase\n\n")
	for i := range 50_000 {
		text := fmt.Sprintf("package p%d\n\n// File %d of the benchmark.\nfunc f%d() int { return %d }\n", i/50, i, i, i*i)
		fmt.Fprintf(&in, "M 644 inline src/part%d/package%d/source_file_%d.go\ndata %d\n%s\n", i/5000, i/50, i, len(text), text)
	}
	in.WriteString("M 644 inline .gitignore\ndata 22\n*.log\nbuild/\nnode_mod\n\n\ndone\n")
	gitIn(b, dir, in.String(), "fast-import", "--quiet", "--done")
	return dir
}

func largeTree(b *testing.B) *Tree {
	b.Helper()
	tree := checkedOut(b, large(b))
	time.Sleep(20 * time.Millisecond)
	begin(b, tree)
	return tree
}

func BenchmarkCheckout50k(b *testing.B) {
	repo := large(b)
	for b.Loop() {
		r, err := Open(repo)
		if err != nil {
			b.Fatal(err)
		}
		tree, err := r.Checkout(b.Context(), head(b, repo), filepath.Join(b.TempDir(), "tree"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := tree.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkFirstSnapshot50k(b *testing.B) {
	tree := largeTree(b)
	for b.Loop() {
		begin(b, tree)
	}
}

func BenchmarkSecondSnapshot50k(b *testing.B) {
	tree := largeTree(b)
	b.ReportAllocs()
	for b.Loop() {
		if c, err := tree.Change(b.Context()); err != nil || len(c.Files) != 0 {
			b.Fatal(c, err)
		}
	}
}

// status gives the worktree an index of git's own and returns git status on it.
func status(b *testing.B, tree *Tree) func() {
	b.Helper()
	gitDir := filepath.Join(b.TempDir(), "copy.git")
	git(b, tree.dir, "clone", "-q", "--bare", tree.repo.layout.gitDir, gitDir)
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_DIR="+gitDir, "GIT_WORK_TREE="+tree.dir)
	run := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = tree.dir, env
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			b.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	run("config", "core.bare", "false")
	run("read-tree", "HEAD")
	run("update-index", "-q", "--refresh")
	return func() { run("status", "--porcelain") }
}

func BenchmarkGitStatus50k(b *testing.B) {
	run := status(b, largeTree(b))
	for b.Loop() {
		run()
	}
}

// BenchmarkSnapshotAgainstGitStatus reports the ratio of the medians, taken in turns so
// that both see the same machine.
func BenchmarkSnapshotAgainstGitStatus(b *testing.B) {
	tree := largeTree(b)
	run := status(b, tree)
	inTurns(b, func() {
		if _, err := tree.Change(b.Context()); err != nil {
			b.Fatal(err)
		}
	}, run)
}

// inTurns reports the ratio of the medians of ours and git's, taken in turns so that both see the same machine.
func inTurns(b *testing.B, ours, git func()) {
	b.Helper()
	var us, them []time.Duration
	for b.Loop() {
		start := time.Now()
		ours()
		middle := time.Now()
		git()
		us, them = append(us, middle.Sub(start)), append(them, time.Since(middle))
	}
	slices.Sort(us)
	slices.Sort(them)
	a, c := us[len(us)/2], them[len(them)/2]
	b.ReportMetric(float64(a)/float64(c), "ratio")
	b.ReportMetric(float64(a.Microseconds())/1000, "ours-ms")
	b.ReportMetric(float64(c.Microseconds())/1000, "git-ms")
}

func BenchmarkCommit5Of50k(b *testing.B) {
	tree := largeTree(b)
	for i := range 5 {
		write(b, tree.Dir(), map[string]string{fmt.Sprintf("src/part%d/package%d/source_file_%d.go", i, i*100, i*5000): "package changed\n"})
	}
	c, err := tree.Change(b.Context())
	if err != nil || len(c.Files) != 5 {
		b.Fatal(c, err)
	}
	for b.Loop() {
		if _, err := tree.CommitChange(c, someone, "Fix"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiff10k(b *testing.B) {
	var before, after strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&before, "line %d\n", i)
		fmt.Fprintf(&after, "line %d\n", i*7%10_000)
	}
	for b.Loop() {
		diffLines([]byte(before.String()), []byte(after.String()))
	}
}
