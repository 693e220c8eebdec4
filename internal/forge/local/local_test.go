package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"issuesmith/internal/forge"
)

func TestReadIssueFile(t *testing.T) {
	t.Parallel()
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "issue.md")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct{ text, title, body string }{
		"title and body":       {"Broken\n\nIt is.\n", "Broken", "It is."},
		"Markdown heading":     {"# Broken\nIt is.", "Broken", "It is."},
		"a hash of the title":  {"#12 is back\nx", "#12 is back", "x"},
		"title only":           {"Broken", "Broken", ""},
		"byte order mark, CRs": {"\ufeffBroken\r\n\r\na\r\nb\r\n", "Broken", "a\nb"},
		"NUL and bad UTF-8":    {"Br\x00oken\xff\nx\x00\xff", "Broken\ufffd", "x\ufffd"},
		"inner lines kept":     {"T\n\n  code\n\n  more\n", "T", "  code\n\n  more"},
	} {
		title, body, err := ReadIssueFile(write(c.text))
		if err != nil || title != c.title || body != c.body {
			t.Errorf("%s: %q, %q, %v", name, title, body, err)
		}
	}
	for name, c := range map[string]struct{ text, says string }{
		"empty":            {"", "has no title"},
		"blank first line": {" \nbody", "has no title"},
		"a bare heading":   {"# \nbody", "has no title"},
		"too large":        {"T\n" + strings.Repeat("x", FileBytes), "larger than 5 MiB"},
	} {
		if _, _, err := ReadIssueFile(write(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, body, err := ReadIssueFile(write("T\n" + strings.Repeat("x", FileBytes-2))); err != nil || len(body) != FileBytes-2 {
		t.Errorf("just small enough: %d bytes, %v", len(body), err)
	}
	if _, _, err := ReadIssueFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, _, err := ReadIssueFile(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}

func FuzzSplitIssue(f *testing.F) {
	f.Add("# a\nb")
	f.Add("\ufeff\r\x00")
	f.Fuzz(func(t *testing.T, text string) {
		title, body := splitIssue(text)
		if strings.ContainsAny(title, "\n\r\x00") || strings.ContainsAny(body, "\r\x00") || !utf8.ValidString(title+body) {
			t.Errorf("%q, %q", title, body)
		}
	})
}

func TestForge(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var shown []string
	f, err := New(Options{Title: " Broken\n", Body: "a\r\nb", Place: "/repo.git", Branch: "main", OnComment: func(b string) { shown = append(shown, b) }})
	if err != nil {
		t.Fatal(err)
	}
	i, err := f.Issue(ctx, 1)
	if err != nil || i.Title != "Broken" || i.Body != "a\nb" || !i.Open || i.IsPull {
		t.Fatalf("%+v, %v", i, err)
	}
	if _, err := f.Issue(ctx, 2); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("issue 2: %v", err)
	}
	for range 2 {
		if err := f.AddLabel(ctx, 1, "ai:running"); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := f.Labelled(ctx, "ai:running"); len(got) != 1 || !slices.Equal(got[0].Labels, []string{"ai:running"}) {
		t.Errorf("labelled: %+v", got)
	}
	if err := f.RemoveLabel(ctx, 1, "ai:running"); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Labelled(ctx, "ai:running"); got != nil {
		t.Errorf("still labelled: %+v", got)
	}
	id, err := f.Comment(ctx, 1, 0, "one")
	again, err2 := f.Comment(ctx, 1, id, "two")
	if err != nil || err2 != nil || again != id || !slices.Equal(shown, []string{"one", "two"}) {
		t.Errorf("comments: %d %d %v %v %v", id, again, err, err2, shown)
	}
	p, err := f.OpenPull(ctx, forge.NewPull{Title: "T", Body: "B", Head: "ai/issue-1", Base: "main"})
	if err != nil || p.Number != 1 || p.URL != "/repo.git" || !p.Open {
		t.Fatalf("%+v, %v", p, err)
	}
	if q, _ := f.OpenPull(ctx, forge.NewPull{Title: "U", Head: "ai/issue-1", Base: "main"}); q.Number != 1 || q.Title != "T" {
		t.Errorf("opened twice: %+v", q)
	}
	if err := f.EditPull(ctx, 1, "V", "W"); err != nil {
		t.Error(err)
	}
	if ps, _ := f.Pulls(ctx, "ai/issue-1"); len(ps) != 1 || ps[0].Title != "V" || ps[0].Body != "W" {
		t.Errorf("pulls: %+v", ps)
	}
	h, err := f.Claim(ctx, forge.Claim{Issue: 1, Run: "x"})
	if err != nil || h.Run != "x" || f.Release(ctx, h) != nil {
		t.Errorf("claim: %+v, %v", h, err)
	}
	if _, err := New(Options{Title: "\n"}); err == nil {
		t.Error("an issue without a title was taken")
	}
}
