package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"issuesmith/e2e/stand"
)

// desk runs issuesmith as a person does at a desk, with nothing in the environment that
// looks like a workflow, and returns what it printed and its exit code.
func desk(t *testing.T, dir string, env []string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), world.binary, args...)
	cmd.Dir = dir
	home := t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + home}, env...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestDemo(t *testing.T) {
	t.Parallel()
	out, code := desk(t, t.TempDir(), nil, "demo")
	if code != 0 || !strings.Contains(out, "Fixes #") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestRunWithoutAnything(t *testing.T) {
	t.Parallel()
	out, code := desk(t, t.TempDir(), nil, "run")
	if code != 2 || !strings.Contains(out, "--repo") || !strings.Contains(out, "--issue-file") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestCheckNamesEveryMistake(t *testing.T) {
	t.Parallel()
	dir, err := stand.CopyTemplate("python", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := "max-atempts: 3\nstep-limit: 0\nagent-timeout: soon\ncost-limit: .nan\nmode: wild\n"
	if err := os.MkdirAll(filepath.Join(dir, ".gitea"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitea/issuesmith.yml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stand.InitRepo(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	out, code := desk(t, dir, nil, "check")
	if code != 2 {
		t.Errorf("exit %d", code)
	}
	for _, name := range []string{"max-atempts", "step-limit", "agent-timeout", "cost-limit", "mode", "soon", "wild"} {
		if !strings.Contains(out, name) {
			t.Errorf("%s is not named", name)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestDeskRun: a folder and a file with the issue are enough, without any forge.
func TestDeskRun(t *testing.T) {
	c := open(t, setup{}, repaired())
	dir, err := stand.CopyTemplate("python", t.TempDir())
	c.must(err)
	c.must(stand.InitRepo(c.ctx, dir))
	issue := filepath.Join(t.TempDir(), "issue.md")
	c.write(issue, pythonTitle+"\n\n"+pythonBody+"\n")
	out, code := desk(t, dir, []string{"ISSUESMITH_MODEL_API_KEY=" + c.key},
		"run", "--repo", dir, "--issue-file", issue, "--model", "custom/scripted", "--model-base-url", c.script.Base, "--test-commands", tests["python"])
	if code != 0 || !strings.Contains(out, summary) || strings.Contains(out, c.key) {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if status, err := stand.Git(c.ctx, dir, "status", "--porcelain"); err != nil || status != "" {
		t.Errorf("the folder was touched: %s %v", status, err)
	}
}
