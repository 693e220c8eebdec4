package actions

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func from(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestFromEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "issues", "GITHUB_EVENT_PATH": "/tmp/event.json", "GITHUB_WORKSPACE": "/w", "RUNNER_TEMP": "/t",
		"GITHUB_RUN_ID": "12", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_SERVER_URL": "https://gitea.example.test/sub/", "GITHUB_REPOSITORY": "owner/demo",
		"GITHUB_REF": "refs/heads/main", "GITHUB_ACTOR": "owner",
	}
	want := Step{
		Active: true, EventName: "issues", EventPath: "/tmp/event.json", Workspace: "/w", Temp: "/t", RunID: "12", RunAttempt: 2,
		ServerURL: "https://gitea.example.test/sub", Repository: "owner/demo", Ref: "refs/heads/main", Actor: "owner",
		RunURL: "https://gitea.example.test/sub/owner/demo/actions/runs/12",
	}
	if got := FromEnv(from(env)); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	env["GITHUB_REPOSITORY"], env["GITHUB_RUN_ATTEMPT"] = "https://host/owner/demo", "x" // act
	if got := FromEnv(from(env)); got.RunURL != "" || got.RunAttempt != 0 {
		t.Errorf("act: %+v", got)
	}
	env["GITHUB_ACTIONS"] = ""
	if got := FromEnv(from(env)); got != (Step{}) {
		t.Errorf("outside a step: %+v", got)
	}
}

// readOutputs reads an output file as a runner does.
func readOutputs(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for lines.Scan() {
		name, end, found := strings.Cut(lines.Text(), "<<")
		if !found {
			t.Fatalf("a line outside a value: %q", lines.Text())
		}
		var value []string
		for lines.Scan() && lines.Text() != end {
			value = append(value, lines.Text())
		}
		out[name] = strings.Join(value, "\n")
	}
	return out
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "output")
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": path}
	values := map[string]string{
		"status": "opened", "branch": "a\nb<<c\nstatus=failed\n_GitHubActionsFileCommandDelimeter_\nissues<<x", "cost": "",
	}
	if err := Outputs(from(env), values); err != nil {
		t.Fatal(err)
	}
	if got := readOutputs(t, path); !reflect.DeepEqual(got, values) {
		t.Errorf("got %q, want %q", got, values)
	}
	if err := Outputs(from(env), map[string]string{"a<<b\nstatus": "x"}); err == nil {
		t.Error("a name that sets another output is taken")
	}
	env["GITHUB_OUTPUT"] = filepath.Join(t.TempDir(), "no", "such")
	if err := Outputs(from(env), values); err == nil || !strings.Contains(err.Error(), "GITHUB_OUTPUT") {
		t.Errorf("a file that cannot be written: %v", err)
	}
	env["GITHUB_ACTIONS"] = ""
	if err := Outputs(from(env), values); err != nil {
		t.Errorf("outside a step: %v", err)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "summary")
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": path}
	for _, text := range []string{"# One", "two"} {
		if err := Summary(from(env), text); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "# One\ntwo\n" {
		t.Errorf("%q, %v", data, err)
	}
	if err := Summary(from(env), strings.Repeat("x", summaryLimit+1)); err == nil {
		t.Error("a summary that the runner would refuse is written")
	}
	if err := Summary(from(nil), "x"); err != nil {
		t.Errorf("outside a step: %v", err)
	}
}

func TestOutputsOfAction(t *testing.T) {
	t.Parallel()
	var action struct {
		Outputs map[string]struct{ Description, Value string }
	}
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &action); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(action.Outputs)), slices.Sorted(slices.Values(OutputNames())); !slices.Equal(got, want) {
		t.Errorf("action.yml has the outputs %q, the program %q", got, want)
	}
	for name, output := range action.Outputs {
		if output.Description == "" || output.Value != "${{ steps.issuesmith.outputs."+name+" }}" {
			t.Errorf("output %s: %+v", name, output)
		}
	}
}

// The test binary itself is the orphan: see TestMain.
func TestWatchParent(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell is the parent; it ends as soon as the child watches it.
	script := `"$0" & while [ ! -e "$ORPHAN_MARK.watching" ]; do sleep 0.05; done`
	cmd := exec.Command("sh", "-c", script, self)
	cmd.Env = append(os.Environ(), "ORPHAN_MARK="+mark)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "the orphan notices", func() bool { _, err := os.Stat(mark); return err == nil })
	data, err := os.ReadFile(mark)
	if err != nil || string(data) != ErrParentGone.Error() {
		t.Errorf("cause %q, %v", data, err)
	}
}

func TestWatchParentStays(t *testing.T) {
	t.Parallel()
	ctx, stop := WatchParent(context.Background())
	time.Sleep(parentPoll + parentPoll/2)
	if ctx.Err() != nil {
		t.Errorf("cancelled though the parent lives: %v", context.Cause(ctx))
	}
	stop()
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("cause: %v", context.Cause(ctx))
	}
}

func TestMain(m *testing.M) {
	mark := os.Getenv("ORPHAN_MARK")
	if mark == "" {
		os.Exit(m.Run())
	}
	ctx, stop := WatchParent(context.Background())
	defer stop()
	if err := os.WriteFile(mark+".watching", nil, 0o600); err != nil {
		os.Exit(1)
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		os.Exit(1)
	}
	// Written whole before it is seen.
	if os.WriteFile(mark+".new", []byte(context.Cause(ctx).Error()), 0o600) != nil || os.Rename(mark+".new", mark) != nil {
		os.Exit(1)
	}
}
