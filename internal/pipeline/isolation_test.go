package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"issuesmith/internal/config"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
)

// A place that strict refuses ends the run as infrastructure, and the comment says what is missing and what helps.
func TestStrictRefusalIsInfrastructure(t *testing.T) {
	t.Parallel()
	weak := &sandbox.WeakError{Report: sandbox.Report{Level: sandbox.LevelWeak, Weak: []string{"no Landlock here: use Linux 5.13"}}}
	r := &run{Options: Options{Redact: redact.New(), Config: &config.Config{}}, started: time.Now()}
	o := r.outcome(infrastructure("preparing the worktree", fmt.Errorf("opening: %w", weak)))
	if o.Status != Failed || o.Exit != ExitInfrastructure || o.Class != InfrastructureClass {
		t.Errorf("%+v", o)
	}
	comment := r.finalComment(o)
	for _, want := range []string{"no Landlock here: use Linux 5.13", "best-effort"} {
		if !strings.Contains(comment, want) {
			t.Errorf("no %q in\n%s", want, comment)
		}
	}
}

func TestIsolationRecord(t *testing.T) {
	t.Parallel()
	weak := &sandbox.WeakError{Report: sandbox.Report{Level: sandbox.LevelWeak, Open: []string{"everything"}}}
	var report sandbox.Report
	if err := json.Unmarshal(isolationRecord(nil, fmt.Errorf("opening: %w", weak)), &report); err != nil || report.Level != sandbox.LevelWeak || report.Open[0] != "everything" {
		t.Errorf("%+v, %v", report, err)
	}
	if text := isolationRecord(nil, errors.New("the disk is full")); text != nil {
		t.Errorf("%s", text)
	}
}

func TestNotInForce(t *testing.T) {
	t.Parallel()
	layers := func(user, userNS string) sandbox.Report {
		return sandbox.Report{Layers: []sandbox.Layer{
			{Name: "user namespace", State: userNS}, {Name: "dedicated user", State: user}, {Name: "landlock files", State: "on"}, {Name: "connect broker", State: "off"},
		}}
	}
	for _, c := range []struct {
		user, userNS string
		want         []string
	}{
		{"on", "off", []string{"connect broker"}},
		{"off", "on", []string{"dedicated user", "connect broker"}},
		{"off", "off", []string{"user namespace", "dedicated user", "connect broker"}},
	} {
		if got := notInForce(layers(c.user, c.userNS)); !slices.Equal(got, c.want) {
			t.Errorf("user %s, namespace %s: %q, want %q", c.user, c.userNS, got, c.want)
		}
	}
}

// Every setting of isolation reaches the sandbox.
func TestSandboxOptions(t *testing.T) {
	t.Parallel()
	flags := map[string]string{
		"sandbox": "best-effort", "network": "db:3306", "memory-limit": "1GiB", "process-limit": "9", "disk-limit": "2GiB", "file-size-limit": "3MiB",
		"open-files-limit": "300", "cpu-limit": "5s", "output-limit": "6MiB", "toolchains": "/opt/a", "caches": "/opt/b", "test-env": "A=1",
	}
	c, err := config.Load(config.Sources{Flags: flags, Local: true, NoModel: true, NoTests: true})
	if err != nil {
		t.Fatal(err)
	}
	o := SandboxOptions(c, "/run/tree", "/run", "/bin")
	want := sandbox.Limits{Memory: 1 << 30, Processes: 9, Disk: 2 << 30, FileSize: 3 << 20, OpenFiles: 300, CPU: 5 * time.Second, Output: 6 << 20}
	switch {
	case o.Limits != want:
		t.Errorf("limits %+v, want %+v", o.Limits, want)
	case o.Mode != sandbox.BestEffort || o.Network.Open || !slices.Equal(o.Network.Allow, []string{"db:3306"}):
		t.Errorf("mode and network: %+v", o)
	case !slices.Equal(o.Toolchains, []string{"/opt/a"}) || !slices.Equal(o.Caches, []string{"/opt/b"}) || !slices.Equal(o.Env, []string{"A=1"}):
		t.Errorf("folders and variables: %+v", o)
	case o.Dir != "/run/tree" || o.Home != "/run/home" || o.Tmp != "/run/tmp" || o.Path != "/bin":
		t.Errorf("places: %+v", o)
	}
}
