package gate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
)

func TestCommandIsRecordedInSeconds(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Command{Command: "make", Exit: 2, Duration: 1500 * time.Millisecond, Output: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"command":"make","exit":2,"output":"x","seconds":1.5}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A limit that ended a test command, and an address it may not reach, stand in what the model and people read.
func TestLimitsAndRefusalsAreTold(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	place := filepath.Dir(g.Tree.Dir())
	box, err := sandbox.New(sandbox.Options{
		Dir: g.Tree.Dir(), Home: filepath.Join(place, "home"), Tmp: filepath.Join(place, "tmp"), Path: os.Getenv("PATH"),
		Limits: sandbox.Limits{Output: 1 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	g.Sandbox, g.Tests, g.Timeout = box, []string{"yes", "echo asking; exec 3<>/dev/tcp/192.0.2.1/443"}, 30*time.Second
	work(t, g, "fix")
	v := judge(t, g)
	if v.Passed || len(v.Commands) != 2 {
		t.Fatalf("%+v", v)
	}
	text := Feedback(v, g.Redact)
	for _, want := range []string{
		"stopped by output-limit: the command printed more than 1 MiB",
		"network: may not connect to 192.0.2.1:443; nothing is listed in the setting network",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the feedback:\n%s", want, text)
		}
	}
}

func TestNoted(t *testing.T) {
	t.Parallel()
	r := redact.New("canary-4711-secret")
	for _, c := range []struct {
		output string
		notes  []string
		want   string
	}{
		{"", nil, ""},
		{"out", nil, "out"},
		{"out", []string{"a", "b"}, "out\na\nb\n"},
		{"out\n", []string{"a"}, "out\na\n"},
		{"", []string{"may not connect to /run/canary-4711-secret"}, "may not connect to /run/[redacted]\n"},
	} {
		if got := strings.ReplaceAll(noted(c.output, c.notes, r), "***", "[redacted]"); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.output, c.notes, got, c.want)
		}
	}
}
