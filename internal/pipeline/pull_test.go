package pipeline

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"issuesmith/internal/gate"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata, which was looked at by a person.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

func samplePage() pullPage {
	return pullPage{
		Issue: 7, Title: "Durations | wrap\nat 60, fixes #99", Problem: "It prints `1:60:00`.\n```\nfixes #3\n```\n@everyone look",
		Summary:  "Reduce the minutes. Closes #5, thanks @alice.\n\n- tested",
		Files:    []worktree.File{{Path: "src/a|b`c.sh", Op: worktree.Modified, Added: 1, Removed: 1}},
		Checks:   []gate.Command{{Command: "sh tests/run.sh | tee `x`", Duration: 1234 * time.Millisecond}, {Command: "false", Exit: 1}, {Command: "sleep 9", TimedOut: true}},
		Notes:    []string{"The branch `main` has moved."},
		Attempts: "2 of 3 attempts with `mistral/x`",
		Isolation: sandbox.Report{
			Level: sandbox.LevelUser,
			Layers: []sandbox.Layer{
				{Name: "user namespace", State: "off", Why: "operation not permitted"},
				{Name: "mount namespace", State: "off"},
				{Name: "dedicated user", State: "on"},
				{Name: "landlock scopes", State: "off"},
			},
			Open: []string{"stat of files outside", "command lines of other processes can be read"},
		},
		Commit: "0123456789abcdef0123456789abcdef01234567",
	}
}

func TestPullPage(t *testing.T) {
	t.Parallel()
	p := samplePage()
	golden(t, "pull.md", p.title()+"\n\n"+p.body()+"\n")
}

func TestPullPageIsBounded(t *testing.T) {
	t.Parallel()
	p := samplePage()
	p.Title = strings.Repeat("title ", 1000)
	p.Problem = strings.Repeat("problem `````\n", 100_000)
	p.Summary = strings.Repeat("summary ", 100_000)
	for range 5000 {
		p.Files = append(p.Files, worktree.File{Path: strings.Repeat("x", 200), Op: worktree.Added})
	}
	if n := len([]rune(p.title())); n > titleLimit {
		t.Errorf("the title has %d characters", n)
	}
	body := p.body()
	if len(body) > pullLimit || !strings.HasSuffix(body, pullMark) {
		t.Errorf("the body has %d bytes and ends with %q", len(body), body[len(body)-50:])
	}
}

func TestPullPageIsolation(t *testing.T) {
	t.Parallel()
	off := sandbox.Layer{Name: "landlock files", State: "off"}
	on := sandbox.Layer{Name: "system call filter", State: "on"}
	for _, c := range []struct {
		name   string
		report sandbox.Report
		want   string
	}{
		{"no sandbox", sandbox.Report{}, ""},
		{"all of it", sandbox.Report{Level: sandbox.LevelFull, Layers: []sandbox.Layer{on}}, "- isolation: dedicated user and namespaces\n"},
		{
			"weak",
			sandbox.Report{Level: sandbox.LevelWeak, Layers: []sandbox.Layer{off, on}, Open: []string{"files can be read", "signals"}, Weak: []string{"files can be read"}},
			"- isolation: weak\n  - not in force: landlock files\n  - not closed: files can be read; signals\n",
		},
	} {
		var b strings.Builder
		pullPage{Isolation: c.report}.isolation(&b)
		if b.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, b.String(), c.want)
		}
	}
	// However much is open, a line stays a line that can be read.
	var b strings.Builder
	pullPage{Isolation: sandbox.Report{Level: sandbox.LevelWeak, Open: slices.Repeat([]string{"this and\nthat"}, 1000)}}.isolation(&b)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if last := lines[len(lines)-1]; len(lines) != 2 || len([]rune(last)) > isolationLimit+len("  - not closed: ") {
		t.Errorf("%d lines, the last of %d characters", len(lines), len([]rune(last)))
	}
}

func TestTitleOfAnOwnSubjectStays(t *testing.T) {
	t.Parallel()
	p := pullPage{Issue: 7, Title: "Fix #7: it breaks"}
	if got := p.title(); got != "Fix #7: it breaks" {
		t.Errorf("got %q", got)
	}
}
