package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRatio compares commands in the sandbox with the same commands started plainly: by the same user, with the same
// environment and folder, their output read through a pipe. Both take turns, and medians are compared, so that a busy machine
// disturbs both. A case fails when it is slower than what the sandbox is to keep.
func BenchmarkRatio(b *testing.B) {
	for _, program := range []string{"git", "grep", "go", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			b.Fatalf("%s is needed to measure: %v", program, err)
		}
	}
	c := newContest(b)
	b.Run("true", func(b *testing.B) {
		c.take(b, 100, job{script: "/bin/true"}).over(b, 1.5)
	})
	b.Run("git", func(b *testing.B) {
		c.take(b, 100, gitLog).over(b, 2)
	})
	b.Run("history", func(b *testing.B) {
		// The worktree itself has no repository: the small git answers, where plain git has a clone.
		c.duel(b, 100, func() { c.sandboxed(b, job{script: gitLog.script}) }, func() { c.plain(b, gitLog) }).over(b, 2)
	})
	b.Run("grep", func(b *testing.B) {
		c.take(b, 30, grepFiles).ratio(b, 1.4)
	})
	b.Run("mixed", func(b *testing.B) {
		var ours, plain time.Duration
		rounds := 0
		for b.Loop() {
			rounds++
			for _, part := range []struct {
				times int
				job   job
			}{{100, gitLog}, {60, grepFiles}, {20, goVet}, {20, nodeTest}} {
				for n := range part.times {
					t := turns(n, func() { c.sandboxed(b, part.job) }, func() { c.plain(b, part.job) })
					ours, plain = ours+t[0], plain+t[1]
				}
			}
		}
		times{ours / time.Duration(rounds), plain / time.Duration(rounds)}.ratio(b, 1.10)
	})
	b.Run("start", func(b *testing.B) {
		var all []time.Duration
		repeat(b, 30, func(int) {
			started := time.Now()
			s, err := New(c.box.options)
			if err != nil {
				b.Fatal(err)
			}
			run(b, s, Command{Script: "/bin/true"})
			all = append(all, time.Since(started))
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
		b.ReportMetric(0, "ns/op")
		start := milliseconds(median(all))
		b.ReportMetric(start, "start-ms")
		if start > 40 {
			b.Errorf("the start and the first command take %.2f ms, which must not be more than 40", start)
		}
	})
	b.Run("bubblewrap", func(b *testing.B) { c.bubblewrap(b) })
}

// A job is a command below the worktree.
type job struct{ dir, script string }

var (
	gitLog    = job{"clone", "git log -1"}
	grepFiles = job{"", "grep -r needle files"}
	goVet     = job{"module", "go vet ./..."}
	nodeTest  = job{"", "node --test some.test.js"}
)

// A contest is a sandbox and what both sides need.
type contest struct {
	box  *Sandbox
	user *syscall.Credential
}

func newContest(b *testing.B) *contest {
	b.Helper()
	history := filepath.Join(b.TempDir(), "history", "history.git")
	for dir := filepath.Dir(history); strings.Contains(dir, b.Name()); dir = filepath.Dir(dir) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	source := b.TempDir()
	for _, args := range [][]string{
		{"init", "-q", source},
		{"-C", source, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "--allow-empty", "-m", "first"},
		{"clone", "-q", "--bare", source, history},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	c := &contest{box: openWith(b, Options{History: history, Env: []string{"GOTOOLCHAIN=local", "GOFLAGS="}})}
	if o := c.box.Owner(); o.Drop {
		c.user = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.GID)}
	}
	r := run(b, c.box, Command{Script: `set -e
mkdir files module
for folder in $(seq 50); do
	mkdir files/$folder
	for file in $(seq 100); do
		printf 'line %s of file\n' $folder $file {1..60} > files/$folder/$file.txt
	done
	echo needle >> files/$folder/100.txt
done
git init -q clone
git -C clone -c user.name=a -c user.email=a@localhost commit -q --allow-empty -m first
printf 'module example.org/small\n\ngo 1.21\n' > module/go.mod
printf 'package small\n\nimport "fmt"\n\n// Greet greets.\nfunc Greet(name string) string { return fmt.Sprintf("hello %%s", name) }\n' > module/small.go
printf 'const test = require("node:test"); const assert = require("node:assert");\ntest("sum", () => assert.equal(1 + 1, 2));\n' > some.test.js
`})
	if r.Exit != 0 {
		b.Fatalf("preparing the worktree: exit %d: %s", r.Exit, r.Output())
	}
	for _, j := range []job{gitLog, grepFiles, goVet, nodeTest} { // also fills caches
		c.sandboxed(b, j)
		c.plain(b, j)
	}
	return c
}

func (c *contest) sandboxed(b *testing.B, j job) {
	b.Helper()
	if r := run(b, c.box, Command{Script: j.script, Dir: j.dir}); r.Exit != 0 {
		b.Fatalf("%s in the sandbox: exit %d: %s", j.script, r.Exit, r.Output())
	}
}

func (c *contest) plain(b *testing.B, j job) {
	b.Helper()
	c.exec(b, j, nil, nil)
}

// exec runs the job plainly, behind the words of prefix.
func (c *contest) exec(b *testing.B, j job, prefix []string, extra []*os.File) {
	b.Helper()
	args := slices.Concat(prefix, []string{c.box.order.Shell, "-c", j.script})
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = filepath.Join(c.box.options.Dir, j.dir), c.box.order.Env, extra
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.user}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %v: %s", args, err, out.Bytes())
	}
}

// take lets the sandbox and the plain start of one job take turns.
func (c *contest) take(b *testing.B, atLeast int, j job) times {
	b.Helper()
	return c.duel(b, atLeast, func() { c.sandboxed(b, j) }, func() { c.plain(b, j) })
}

// times are the medians of ours and of the other.
type times struct{ ours, other time.Duration }

// over reports and judges how many milliseconds ours takes longer.
func (t times) over(b *testing.B, limit float64) {
	b.Helper()
	t.judge(b, "over-ms", milliseconds(t.ours-t.other), limit)
}

// ratio reports and judges how many times as long ours takes.
func (t times) ratio(b *testing.B, limit float64) {
	b.Helper()
	t.judge(b, "ratio", t.ours.Seconds()/t.other.Seconds(), limit)
}

func (t times) judge(b *testing.B, unit string, got, limit float64) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // of both, which says nothing
	b.ReportMetric(milliseconds(t.ours), "ours-ms")
	b.ReportMetric(milliseconds(t.other), "plain-ms")
	b.ReportMetric(got, unit)
	if got > limit {
		b.Errorf("%.2f ms in the sandbox, %.2f ms plain: %s is %.2f and must not be more than %.2f",
			milliseconds(t.ours), milliseconds(t.other), unit, got, limit)
	}
}

func (c *contest) duel(b *testing.B, atLeast int, ours, other func()) times {
	b.Helper()
	var all [2][]time.Duration
	repeat(b, atLeast, func(n int) {
		for i, d := range turns(n, ours, other) {
			all[i] = append(all[i], d)
		}
	})
	return times{median(all[0]), median(all[1])}
}

// repeat goes on for the time of a benchmark, and until there are enough turns for a median.
func repeat(b *testing.B, atLeast int, turn func(n int)) {
	b.Helper()
	n := 0
	for b.Loop() {
		turn(n)
		n++
	}
	for ; n < atLeast; n++ {
		turn(n)
	}
}

// turns times each once; who begins alternates.
func turns(n int, contenders ...func()) []time.Duration {
	spent := make([]time.Duration, len(contenders))
	for i := range contenders {
		i = (i + n) % len(contenders)
		started := time.Now()
		contenders[i]()
		spent[i] = time.Since(started)
	}
	return spent
}

// bubblewrap compares what a command costs above its plain start with what it costs in bubblewrap, restricted as far as that goes:
// namespaces, the system and the own folders, the same filter but for the broker.
func (c *contest) bubblewrap(b *testing.B) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		b.Skip("bubblewrap is not installed: nothing to compare with")
	}
	program, err := filter(nativeArch(), filterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var raw bytes.Buffer
	if err := binary.Write(&raw, binary.NativeEndian, program); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "filter")
	if err := os.WriteFile(path, raw.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	const seccompFD = 3
	o := c.box.options
	prefix := []string{
		"bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--seccomp", fmt.Sprint(seccompFD),
		"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--ro-bind-try", "/bin", "/bin", "--ro-bind-try", "/lib", "/lib",
		"--ro-bind-try", "/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", o.Dir, o.Dir, "--bind", o.Home, o.Home, "--bind", o.Tmp, o.Tmp,
		"--chdir", o.Dir,
	}
	trivial := job{script: "/bin/true"}
	wrapped := func() {
		compiled, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = compiled.Close() }()
		c.exec(b, trivial, prefix, []*os.File{compiled})
	}
	probe := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "/bin/true")
	probe.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	if out, err := probe.CombinedOutput(); err != nil {
		b.Skipf("bubblewrap does not work in this place: %v: %s", err, out)
	}
	var all [3][]time.Duration
	repeat(b, 100, func(n int) {
		for i, d := range turns(n, func() { c.sandboxed(b, trivial) }, func() { c.plain(b, trivial) }, wrapped) {
			all[i] = append(all[i], d)
		}
	})
	ours, plain, bwrap := median(all[0]), median(all[1]), median(all[2])
	over, theirs := milliseconds(ours-plain), milliseconds(bwrap-plain)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(over, "ours-over-ms")
	b.ReportMetric(theirs, "bwrap-over-ms")
	less := theirs / max(over, 0.01)
	b.ReportMetric(less, "times-less")
	if less < 3 {
		b.Errorf("a command costs %.2f ms more than plain, in bubblewrap %.2f ms: less than 3 times as much", over, theirs)
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
