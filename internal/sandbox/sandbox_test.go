package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// open makes a sandbox over a folder that the commands' user can reach.
func open(t testing.TB, env ...string) *Sandbox {
	t.Helper()
	return openWith(t, Options{Env: env})
}

// openWith fills in the folders.
func openWith(t testing.TB, o Options) *Sandbox {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = RemoveAll(base) })
	dir := filepath.Join(base, "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if o := DropOwner(); o.Drop {
		if err := os.Chown(dir, o.UID, o.GID); err != nil {
			t.Fatal(err)
		}
	}
	o.Dir, o.Home, o.Tmp, o.Path = dir, filepath.Join(base, "home"), filepath.Join(base, "tmp"), os.Getenv("PATH")
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func run(t testing.TB, s *Sandbox, c Command) *Result {
	t.Helper()
	r, err := s.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("running %q: %v", c.Script, err)
	}
	return r
}

func TestRunReportsTheEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, c := range []struct {
		script, output, signal string
		exit                   int
	}{
		{"echo out; echo err >&2", "out\nerr\n", "", 0},
		{"exit 7", "", "", 7},
		{"kill -TERM $$", "", "SIGTERM", 143},
		{"printf 'a\\0b'", "a\x00b", "", 0},
		{"cat", "", "", 0}, // standard input is empty
		{"no-such-program-here 2>/dev/null", "", "", 127},
	} {
		r := run(t, s, Command{Script: c.script})
		if r.Exit != c.exit || r.Signal != c.signal || r.Output() != c.output {
			t.Errorf("%q: exit %d signal %q output %q, want %d %q %q", c.script, r.Exit, r.Signal, r.Output(), c.exit, c.signal, c.output)
		}
	}
}

func TestEnvironmentIsTheBaseAlone(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "canary-token")
	t.Setenv("ACTIONS_RUNTIME_TOKEN", "canary-token")
	t.Setenv("HTTPS_PROXY", "http://user:canary-token@proxy:3128")
	t.Setenv("GOROOT", "/usr/local/go")
	s := open(t, "DB_HOST=db")
	out := run(t, s, Command{Script: "env; cat /proc/self/environ | tr '\\0' '\\n'; tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/$PPID/cmdline"}).Output()
	if strings.Contains(out, "canary") {
		t.Fatalf("a secret of the caller is visible:\n%s", out)
	}
	for _, want := range []string{"HOME=" + s.options.Home, "TMPDIR=" + s.options.Tmp, "DB_HOST=db", "GOROOT=/usr/local/go", "LC_ALL=C.UTF-8", "CI=true"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
}

func TestSearchPathDropsWhatCouldMislead(t *testing.T) {
	t.Parallel()
	closed := t.TempDir()
	o := Owner{UID: commandUser, GID: commandUser, Drop: true}
	if got := o.searchPath(".:bin:/usr/bin::/no/such:/usr/bin:/bin"); got != "/usr/bin:/bin" {
		t.Errorf("got %q", got)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := o.searchPath(closed + ":/usr/bin"); got != "/usr/bin" {
		t.Errorf("a folder closed to the commands' user stayed: %q", got)
	}
}

func TestOnlyThreeDescriptors(t *testing.T) {
	t.Parallel()
	s := open(t)
	out := run(t, s, Command{Script: "for f in /proc/self/fd/*; do echo ${f##*/}; done"}).Output()
	for _, line := range strings.Fields(out) {
		if fd, err := strconv.Atoi(line); err != nil || fd > 3 { // 3 is the glob's own folder
			t.Errorf("descriptor %q is open in the command", line)
		}
	}
}

func TestRootGivesItsRightsAway(t *testing.T) {
	t.Parallel()
	s := open(t)
	out := run(t, s, Command{Script: "id -u; id -G; grep -E '^(CapEff|NoNewPrivs)' /proc/self/status"}).Output()
	if !strings.Contains(out, "NoNewPrivs:\t1") {
		t.Errorf("new privileges are possible:\n%s", out)
	}
	if !s.owner.Drop {
		return
	}
	if !strings.HasPrefix(out, fmt.Sprintf("%d\n%d\n", commandUser, commandUser)) || !strings.Contains(out, "CapEff:\t0000000000000000") {
		t.Errorf("commands keep rights of root:\n%s", out)
	}
}

// alive counts processes whose command line holds the tag.
func alive(tag string) (n int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && bytes.Contains(line, []byte(tag)) {
			n++
		}
	}
	return n
}

func TestDescendantsDieWithTheirCommand(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"background":                  "sleep 6001.TAG & echo started",
		"own session":                 "setsid sleep 6001.TAG & sleep 0.1; echo started",
		"double fork, holds stdout":   "(setsid sh -c 'sleep 6001.TAG & sleep 6001.TAG' &) ; sleep 0.1; echo started",
		"ignores signals":             "setsid sh -c 'trap \"\" TERM HUP INT; sleep 6001.TAG' & sleep 0.1; echo started",
		"chain of forks":              "f() { (sleep 0.01; f TAG) & }; f; sleep 0.1; echo started; sleep 6001.TAG & true",
		"stopped":                     "sleep 6001.TAG & kill -STOP $!; echo started",
		"daemon that keeps a pipe":    "nohup sleep 6001.TAG >/dev/null 2>&1 & echo started",
		"many":                        "for i in $(seq 50); do sleep 6001.TAG & done; echo started",
		"child of a killed parent":    "sh -c 'sleep 6001.TAG & kill -9 $$'; echo started",
		"command killed by its child": "echo started; (kill -9 $$; sleep 6001.TAG) & wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			tag := fmt.Sprint(time.Now().UnixNano())
			started := time.Now()
			r := run(t, s, Command{Script: strings.ReplaceAll(script, "TAG", tag), Timeout: time.Minute})
			if !strings.Contains(r.Output(), "started") {
				t.Errorf("output %q", r.Output())
			}
			if n := alive(tag); n != 0 {
				t.Errorf("%d processes outlived their command", n)
			}
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("returned after %v", took)
			}
		})
	}
}

func TestTimeoutKillsEverything(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := run(t, s, Command{Script: "echo before; setsid sleep 6002.31 & sleep 6002.31", Timeout: 300 * time.Millisecond})
	if !r.TimedOut || r.Exit == 0 || r.Output() != "before\n" {
		t.Errorf("got %+v %q", r, r.Output())
	}
	if n := alive("6002.31"); n != 0 {
		t.Errorf("%d processes outlived the time limit", n)
	}
}

func TestCancelKillsEverything(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Run(ctx, Command{Script: "setsid sleep 6003.41 & sleep 6003.41"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if n := alive("6003.41"); n != 0 {
		t.Errorf("%d processes outlived the cancel", n)
	}
}

// TestKilledCallerTakesItsCommandsAlong starts this test binary as a caller and kills it.
func TestKilledCallerTakesItsCommandsAlong(t *testing.T) {
	if os.Getenv("SANDBOX_TEST_CALLER") == "1" {
		run(t, open(t), Command{Script: "setsid sleep 6004.51 & sleep 6004.51"})
		return
	}
	t.Parallel()
	caller := exec.Command("/proc/self/exe", "-test.run=^TestKilledCallerTakesItsCommandsAlong$")
	caller.Env = append(os.Environ(), "SANDBOX_TEST_CALLER=1")
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); alive("sleep\x006004.51") < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the command did not start")
		}
	}
	if err := caller.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = caller.Wait()
	for deadline := time.Now().Add(time.Second); alive("6004.51") > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes alive a second after the caller's SIGKILL", alive("6004.51"))
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	s := open(t)
	spill := filepath.Join(t.TempDir(), "out")
	r := run(t, s, Command{Script: "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last", Keep: 1000, Spill: spill})
	if len(r.Head) != 1000 || len(r.Tail) != 1000 || r.Size != 20000000+6+1+5 {
		t.Errorf("head %d tail %d size %d", len(r.Head), len(r.Tail), r.Size)
	}
	if !bytes.HasPrefix(r.Head, []byte("first\n")) || !bytes.HasSuffix(r.Tail, []byte("\nlast\n")) {
		t.Error("the ends are wrong")
	}
	if info, err := os.Stat(spill); err != nil || info.Size() != spillLimit {
		t.Errorf("spill file: %v %v", info, err)
	}
}

func TestOutputKeepsBothEnds(t *testing.T) {
	t.Parallel()
	var text []byte
	for i := range 500 {
		text = append(text, byte('a'+i%26))
	}
	for _, size := range []int{0, 1, 9, 10, 11, 19, 20, 21, 29, 30, 31, 500} {
		for _, chunk := range []int{1, 3, 10, 11, 500} {
			o := &output{keep: 10}
			for p := text[:size]; len(p) > 0; p = p[min(chunk, len(p)):] {
				if err := o.add(p[:min(chunk, len(p))]); err != nil {
					t.Fatal(err)
				}
			}
			r := o.result()
			wantHead, wantTail := text[:min(size, 10)], text[max(size-10, min(size, 10)):size]
			if !bytes.Equal(r.Head, wantHead) || !bytes.Equal(r.Tail, wantTail) || r.Size != int64(size) {
				t.Errorf("size %d chunk %d: head %q tail %q, want %q %q", size, chunk, r.Head, r.Tail, wantHead, wantTail)
			}
		}
	}
}

func TestFullDiskIsAnError(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, err := s.Run(t.Context(), Command{Script: "echo hello", Spill: "/dev/full"})
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
}

func TestWorkingDirStaysInside(t *testing.T) {
	t.Parallel()
	s := open(t)
	run(t, s, Command{Script: "mkdir sub && ln -s / out"})
	if got := run(t, s, Command{Script: "pwd", Dir: "sub"}).Output(); got != s.options.Dir+"/sub\n" {
		t.Errorf("got %q", got)
	}
	for _, dir := range []string{"..", "out", "out/tmp", "sub/../.."} {
		if _, err := s.Run(t.Context(), Command{Script: "pwd", Dir: dir}); err == nil {
			t.Errorf("%q was accepted", dir)
		}
	}
}

func TestClosedWorktreeIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	run(t, s, Command{Script: "touch a && chmod 000 ."})
	if got := run(t, s, Command{Script: "ls"}).Output(); got != "a\n" {
		t.Errorf("got %q", got)
	}
}

func TestReplacedWorktreeIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	dir := s.options.Dir
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), Command{Script: "pwd"}); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("gone: %v", err)
	}
	for name, place := range map[string]func() error{
		"link":   func() error { return os.Symlink("/tmp", dir) },
		"folder": func() error { return os.Mkdir(dir, 0o755) },
	} {
		if err := place(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), Command{Script: "pwd"}); err == nil || !strings.Contains(err.Error(), "in the place of") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRemoveAllOpensClosedFolders(t *testing.T) {
	t.Parallel()
	s := open(t)
	run(t, s, Command{Script: "mkdir -p $HOME/go/mod && touch $HOME/go/mod/x && chmod 555 $HOME/go/mod $HOME/go"})
	if err := RemoveAll(s.options.Home); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.options.Home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("HOME is still there: %v", err)
	}
}

func BenchmarkTrue(b *testing.B) {
	s := open(b)
	for b.Loop() {
		run(b, s, Command{Script: "true"})
	}
}

type liveOutput struct {
	bytes.Buffer
	closed bool
}

func (l *liveOutput) Close() error { l.closed = true; return nil }

func TestOutputIsShownLive(t *testing.T) {
	t.Parallel()
	s := open(t)
	var shown liveOutput
	s.options.Live = func() io.WriteCloser { return &shown }
	run(t, s, Command{Script: "echo one; echo two >&2"})
	if shown.String() != "one\ntwo\n" || !shown.closed {
		t.Errorf("got %q, closed %v", shown.String(), shown.closed)
	}
}

// Where nothing isolates it a command can kill its executor; what it left behind dies all the same. Not parallel: the sweep
// takes every child that is no executor for an orphan, as is right outside of tests.
func TestKilledExecutorLeavesNothing(t *testing.T) {
	s := openWith(t, Options{Mode: Off})
	r := run(t, s, Command{Script: "setsid sleep 6005.61 & setsid sh -c 'setsid sleep 6005.61 & sleep 6005.61' & sleep 0.2; kill -9 $PPID; sleep 6005.61", Timeout: time.Minute})
	if r.Exit != 137 || r.Signal != "SIGKILL" {
		t.Errorf("got %+v", r)
	}
	if n := alive("6005.61"); n != 0 {
		t.Errorf("%d processes outlived their killed executor", n)
	}
	if r := run(t, s, Command{Script: "echo still here"}); r.Output() != "still here\n" {
		t.Errorf("got %q", r.Output())
	}
}
