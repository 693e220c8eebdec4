package app

import (
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"issuesmith": func() { os.Exit(int(Main())) }})
}

// TestScripts are the commands as a person types them; each file is a story.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
			for _, name := range []string{"AUTHOR", "COMMITTER"} {
				e.Setenv("GIT_"+name+"_NAME", "A person")
				e.Setenv("GIT_"+name+"_EMAIL", "person@example.test")
			}
			// The commands' user must be able to enter the worktree.
			return os.Chmod(e.WorkDir, 0o711)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE COMMAND… runs a command that must end with this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = err.Error()
		if c, ok := err.(interface{ ExitCode() int }); ok {
			code = strconv.Itoa(c.ExitCode())
		}
	}
	if code != args[0] {
		ts.Fatalf("ended with %s, not %s", code, args[0])
	}
}
