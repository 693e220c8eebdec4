package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"issuesmith/internal/sandbox"
)

func TestBashTellsTheEnd(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{"dir/a.txt": "one\n"})
	for _, c := range []struct {
		command string
		fails   bool
		text    string
	}{
		{"cat dir/a.txt", false, "exit 0\none\n"},
		{"echo out; echo err >&2; exit 3", true, "exit 3\nout\nerr\n"},
		{"true", false, "exit 0\n(no output)"},
		{"kill -TERM $$", true, "exit 143 (killed by signal SIGTERM)\n(no output)"},
		{"cd dir && pwd | sed 's|.*/||'", false, "exit 0\ndir\n"},
		{"ls", false, "exit 0\ndir\n"}, // every call starts at the top
		{"printf 'a\\0b\\377c'", false, "exit 0\nab\uFFFDc"},
		{"echo " + canary[:8] + "''" + canary[8:], false, "exit 0\n***\n"},
	} {
		r := call(t, s, "bash", args("command", c.command))
		text := strings.ReplaceAll(r.Text, "[redacted]", "***")
		if r.Failed != c.fails || text != c.text || r.Kept != "" {
			t.Errorf("%q: %+v, want %t %q", c.command, r, c.fails, c.text)
		}
	}
	want(t, call(t, s, "bash", args("command", "echo a\x00b")), true, "NUL")
	want(t, call(t, s, "bash", args("command", "echo "+strings.Repeat("x", maxCommand))), true, "write_file")
}

func TestBashTimeout(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	began := time.Now()
	r := call(t, s, "bash", args("command", "echo begun; sleep 60", "timeout_s", 1))
	want(t, r, true, "timed out after 1s", "begun")
	s.bench.Timeout = time.Second
	r = call(t, s, "bash", args("command", "sleep 60", "timeout_s", 1<<40))
	want(t, r, true, "timed out after 1s")
	if d := time.Since(began); d > 15*time.Second {
		t.Errorf("took %s", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := s.Call(ctx, "bash", args("command", "sleep 60")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline of the run: %v", err)
	}
}

// Which limit ended a command and what it may not reach stands before its output: the model cannot know otherwise.
func TestBashNamesLimitsAndRefusals(t *testing.T) {
	t.Parallel()
	s := newLimitedSet(t, nil, sandbox.Limits{Output: 1 << 20}, "127.0.0.1:9")
	want(t, call(t, s, "bash", args("command", "yes")), true, "exit 137 (killed by signal SIGKILL)\nstopped by output-limit: the command printed more than 1 MiB\ny\n")
	want(t, call(t, s, "bash", args("command", "exec 3<>/dev/tcp/192.0.2.1/443")), true,
		"exit 1\nnetwork: may not connect to 192.0.2.1:443; the setting network lists 127.0.0.1:9\n")
	// What was allowed and did not work has no note.
	want(t, call(t, s, "bash", args("command", "exec 3<>/dev/tcp/127.0.0.1/9")), true, "!may not connect")
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("python3 is not installed, and bash cannot connect to a unix socket: .ci/need installs it")
	}
	r := call(t, s, "bash", args("command", `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("\0'`+canary[:6]+`''`+canary[6:]+`'")'`))
	want(t, r, true, "network: may not connect to @", "!"+canary)
}

func TestLongOutputIsCutAndKept(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	call(t, s, "bash", args("command", "true"))
	r := call(t, s, "bash", args("command", "seq 1 20000; echo "+canary[:6]+`""`+canary[6:]))
	want(t, r, false, "exit 0\n1\n2\n", "\n20000\n", "bytes cut of 108", "output/2", "!\n10000\n", "!"+canary)
	if r.Kept != "output/2" || len(r.Text) > 2*shownEnd+300 {
		t.Errorf("kept as %q, %d bytes shown", r.Kept, len(r.Text))
	}
	want(t, call(t, s, "read_file", args("path", "output/2", "start", 10000, "lines", 2)), false, "10000\t10000\n10001\t10001\n", "[lines 10000–10001 of 20001; go on with start=10002]")
	want(t, call(t, s, "read_file", args("path", "output/2", "start", 20000)), false, "20000\t20000\n", "!"+canary)
	want(t, call(t, s, "search", args("path", "output/2", "pattern", "^1234.$")), false, "output/2:12345:12345\n")
	for _, name := range []string{"output/3", "output/02", "output/-1", "output/2.txt", "output/../2", "./output/2", "output/"} {
		if r := call(t, s, "read_file", args("path", name)); !r.Failed {
			t.Errorf("%s could be read: %.100s", name, r.Text)
		}
	}
	data, err := os.ReadFile(s.outputFile(2))
	if err != nil || strings.Contains(string(data), canary) {
		t.Errorf("the kept file: %v, canary in it", err)
	}
}

func TestOutputFloodIsBounded(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	r := call(t, s, "bash", args("command", "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last"))
	want(t, r, false, "xxx", "last", "bytes cut of 20000006", "the first 8 MiB")
	want(t, call(t, s, "read_file", args("path", r.Kept)), false, "line of 8388608 bytes", "!last")
	info, err := os.Stat(s.outputFile(1))
	if err != nil || info.Size() > maxKept {
		t.Errorf("kept: %v, %v", info, err)
	}
	// A value must not come through because a cut splits it, wherever the cut lies.
	for pad := shownEnd - 30; pad < shownEnd+5; pad += 10 {
		r := call(t, s, "bash", args("command", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' y; printf %s''%s; head -c 300000 /dev/zero | tr '\\0' z", pad, canary[:5], canary[5:])))
		for n := 8; n < len(canary); n++ {
			if strings.Contains(r.Text, canary[:n]) {
				t.Fatalf("with %d bytes before it, %q came through", pad, canary[:n])
			}
		}
	}
}

func TestDestroyedWorktreeIsTold(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{"a.txt": "one\n"})
	must(t, os.Rename(s.bench.Tree.Dir(), s.bench.Tree.Dir()+".gone"))
	defer func() { must(t, os.Rename(s.bench.Tree.Dir()+".gone", s.bench.Tree.Dir())) }()
	for name, arguments := range map[string]string{
		"bash":       args("command", "true"),
		"read_file":  args("path", "a.txt"),
		"search":     args("pattern", "one"),
		"edit_file":  args("path", "a.txt", "old", "one", "new", "two"),
		"write_file": args("path", "b.txt", "content", "x"),
	} {
		want(t, call(t, s, name, arguments), true, "top folder cannot be opened")
	}
}

func TestOutputsOfEarlierAttemptsStay(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	call(t, s, "bash", args("command", "echo first"))
	again := NewSet(s.bench)
	call(t, again, "bash", args("command", "echo second"))
	want(t, call(t, again, "read_file", args("path", "output/1")), false, "1\tfirst\n")
	want(t, call(t, again, "read_file", args("path", "output/2")), false, "1\tsecond\n")
}

func TestNamedPipeInPlaceOfAnOutputHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	call(t, s, "bash", args("command", "echo first"))
	file := s.outputFile(1)
	must(t, os.Remove(file))
	must(t, syscall.Mkfifo(file, 0o600))
	for name, arguments := range map[string]string{"read_file": args("path", "output/1"), "search": args("path", "output/1", "pattern", "x")} {
		if _, _, err := s.Call(t.Context(), name, arguments); err == nil || !strings.Contains(err.Error(), "in the place of") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.cleanKept(file); err == nil {
		t.Error("the pipe went unnoticed")
	}
}

func TestOutputsThatCannotBeKeptEndTheRun(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	must(t, os.WriteFile(s.bench.Outputs, nil, 0o600)) // a file where the folder should be
	if _, _, err := s.Call(t.Context(), "bash", args("command", "echo hello")); err == nil {
		t.Error("an output that could not be kept went unnoticed")
	}
}
