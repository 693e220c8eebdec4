package gate

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestJudgeRunsTheTests(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	withSandbox(t, g, "grep -q repaired app/Invoice.php", "echo out; echo err >&2")
	g.Progress = nil
	var told []string
	g.Progress = func(s string) { told = append(told, s) }
	work(t, g, "fix")
	v := judge(t, g)
	if !v.Passed || len(v.Commands) != 2 || len(v.Findings) > 0 {
		t.Fatalf("verdict: %+v", v)
	}
	if out := v.Commands[1].Output; out != "out\nerr\n" {
		t.Errorf("output: %q", out)
	}
	if want := []string{"test command `grep -q repaired app/Invoice.php`", "test command `echo out; echo err >&2`"}; !slices.Equal(told, want) {
		t.Errorf("progress: %q", told)
	}
	if Feedback(v, g.Redact) != "" || v.Reason() != "" {
		t.Error("a passed verdict has a feedback or a reason")
	}
}

func TestJudgeRunsAllTestsThoughOneFails(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	withSandbox(t, g, "echo first is wrong; exit 3", "echo second is right", "echo third is wrong; exit 1")
	work(t, g, "fix")
	v := judge(t, g)
	if v.Passed || len(v.Commands) != 3 || v.Commands[0].Exit != 3 || !v.Commands[1].OK() || v.Commands[2].Exit != 1 {
		t.Fatalf("commands: %+v", v.Commands)
	}
	text := Feedback(v, g.Redact)
	for _, want := range []string{"2 of 3 test commands failed", "exit 3", "first is wrong", "third is wrong"} {
		if !strings.Contains(text, want) {
			t.Errorf("feedback lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "second is right\n```") {
		t.Errorf("feedback holds the output of a command that succeeded:\n%s", text)
	}
	if r := v.Reason(); !strings.Contains(r, "first is wrong") || !strings.Contains(r, "1 other command failed as well") {
		t.Errorf("reason: %s", r)
	}
}

func TestJudgeStopsAfterATimeout(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	withSandbox(t, g, "echo begun; sleep 60", "echo never")
	g.Timeout = 500 * time.Millisecond
	work(t, g, "fix")
	v := judge(t, g)
	if v.Passed || len(v.Commands) != 1 || !v.Commands[0].TimedOut || v.Commands[0].OK() {
		t.Fatalf("commands: %+v", v.Commands)
	}
	if len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "1 further test command") {
		t.Errorf("notes: %q", v.Notes)
	}
	if text := Feedback(v, g.Redact); !strings.Contains(text, "time limit") || !strings.Contains(text, "begun") {
		t.Errorf("feedback: %s", text)
	}
}

func TestTestsThatAlterTheTree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, test, want string
		note             string
	}{
		{name: "judged file rewritten", test: "echo '// more' >> app/Invoice.php", want: "judged-tree app/Invoice.php"},
		{name: "judged file removed", test: "rm app/Invoice.php", want: "judged-tree app/Invoice.php"},
		{name: "judged file swapped for a link", test: "rm app/Invoice.php; ln -s /etc/passwd app/Invoice.php", want: "judged-tree app/Invoice.php"},
		{name: "judged file made a program", test: "chmod +x app/Invoice.php", want: "judged-tree app/Invoice.php"},
		{name: "folder of a judged file swapped for a link", test: "mv app elsewhere; ln -s elsewhere app", want: "judged-tree app/Invoice.php", note: "app/total.go"},
		{name: "another tracked file rewritten", test: "echo x > storage/data.txt", note: "storage/data.txt"},
		{name: "another tracked file removed", test: "rm README.md", note: "README.md"},
		{name: "new files", test: "mkdir out; echo x > out/report.xml", note: "out/report.xml"},
		{name: "ignored files", test: "mkdir ignored; echo x > ignored/a; echo x > test.log"},
		{name: "a repository", test: "mkdir .git; echo x > .git/config", note: ".git"},
		{name: "a protected file", test: "echo x >> .env", note: ".env"},
		{name: "nothing", test: "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			withSandbox(t, g, c.test)
			work(t, g, "fix")
			if s := g.Sandbox.Owner(); s.Drop {
				chown(t, g, s.UID, s.GID)
			}
			v := judge(t, g)
			if got := brief(v.Findings); got != c.want {
				t.Errorf("findings %q, want %q", got, c.want)
			}
			if v.Passed != (c.want == "") {
				t.Errorf("Passed is %t; %+v", v.Passed, v.Commands)
			}
			if all := strings.Join(v.Notes, "\n"); c.note == "" && all != "" || !strings.Contains(all, c.note) {
				t.Errorf("notes %q, want %q", all, c.note)
			}
			runtime.GC() // what was judged must be there for the commit however long that takes
			if patch, err := g.Tree.Patch(v.Change); err != nil || !strings.Contains(patch, "+// repaired") {
				t.Errorf("the judged change is gone: %v, %s", err, patch)
			}
			change, err := g.Tree.Change(t.Context())
			if err != nil || change.Tree != v.Change.Tree {
				t.Errorf("what stands is not what was judged: %v", err)
			}
			content, err := g.Tree.ReadFile("app/Invoice.php")
			if err != nil || !strings.HasSuffix(string(content), "}\n// repaired\n") {
				t.Errorf("app/Invoice.php is %q, %v", content, err)
			}
			if c.want != "" && !strings.Contains(Feedback(v, g.Redact), "app/Invoice.php: a test command altered") {
				t.Errorf("feedback: %s", Feedback(v, g.Redact))
			}
		})
	}
}

// chown gives the whole worktree to the commands' user, as the agent's own work would have.
func chown(t *testing.T, g *Gate, uid, gid int) {
	t.Helper()
	err := filepath.Walk(g.Tree.Dir(), func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFullDiskIsInfrastructure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, test string
		full       bool
		infra      bool
	}{
		{"said and so", "echo 'write /tmp/x: No space left on device'; exit 1", true, true},
		{"said by SQLite", "echo 'General error: 13 database or disk is full'; exit 1", true, true},
		{"said only", "echo 'no space left on device'; exit 1", false, false},
		{"so but not said", "echo wrong; exit 1", true, false},
		{"said by a command that succeeds", "echo 'no space left on device'", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			withSandbox(t, g, c.test)
			g.full = func(string) (bool, error) { return c.full, nil }
			work(t, g, "fix")
			_, err := g.Judge(t.Context())
			var infra *InfraError
			if errors.As(err, &infra) != c.infra {
				t.Fatalf("Judge: %v", err)
			}
			if c.infra && (infra.Remedy == "" || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "test command `echo")) {
				t.Errorf("the error does not help: %v", err)
			}
		})
	}
	if full, err := diskFull(t.TempDir()); err != nil || full {
		t.Errorf("diskFull says %t, %v here", full, err)
	}
	if !noRoom(255, 4096, 0, 0) || noRoom(256, 4096, 0, 0) || !noRoom(1000, 4096, 10, 0) || noRoom(1000, 4096, 10, 1) {
		t.Error("noRoom is wrong at its edges")
	}
	if err := ours("write", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}); !errors.As(err, new(*InfraError)) {
		t.Errorf("our own full disk is %v", err)
	}
	if err := ours("write", os.ErrPermission); errors.As(err, new(*InfraError)) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("another error is %v", err)
	}
}

func TestCommandThatCannotStartIsInfrastructure(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	withSandbox(t, g, "echo \x00")
	work(t, g, "fix")
	_, err := g.Judge(t.Context())
	var infra *InfraError
	if !errors.As(err, &infra) || !strings.Contains(infra.Error(), "could not be run") {
		t.Errorf("Judge: %v", err)
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	withSandbox(t, g)
	var told []string
	progress := func(s string) { told = append(told, s) }
	done, err := Setup(t.Context(), g.Sandbox, []string{"echo one", "echo two"}, time.Minute, progress)
	if err != nil || len(done) != 2 || done[1].Output != "two\n" || len(told) != 2 {
		t.Fatalf("Setup: %+v, %v, %q", done, err, told)
	}
	done, err = Setup(t.Context(), g.Sandbox, []string{"echo one", "echo cannot; exit 7", "echo never"}, time.Minute, nil)
	var infra *InfraError
	if !errors.As(err, &infra) || len(done) != 2 {
		t.Fatalf("Setup: %+v, %v", done, err)
	}
	for _, want := range []string{"setup command `echo cannot; exit 7`", "exit 7", "cannot\n", "setup-commands"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if _, err = Setup(t.Context(), g.Sandbox, []string{"sleep 60"}, 300*time.Millisecond, nil); err == nil || !strings.Contains(err.Error(), "time limit") {
		t.Errorf("Setup: %v", err)
	}
}
