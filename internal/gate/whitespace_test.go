package gate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"issuesmith/internal/worktree"
)

func TestWhitespaceRule(t *testing.T) {
	t.Parallel()
	for _, c := range []policyCase{
		{name: "trailing blanks are removed, not told", script: `printf 'a  \nb\t\n' > app/new.php`},
		{name: "blanks of the base commit stay", script: `echo new >> app/blanks.php`},
		{name: "line ends stay", script: `printf 'three\r\n' >> app/crlf.php`},
		{name: "tab after blank", script: `printf 'a\n \tb\n' > app/new.php`, want: "whitespace app/new.php:2"},
		{name: "blank after tab", script: `printf 'a\n\t b\n' > app/new.php`},
		{name: "blank line at the end", script: `printf 'a\n\n\n' > app/new.php`, want: "whitespace app/new.php:2"},
		{name: "blank line at the end was there", script: `sed -i 's/1/2/' app/blank_end.py`},
		{name: "one more blank line at the end", script: `echo >> app/blank_end.py`, want: "whitespace app/blank_end.py:3"},
		{name: "no line end at the end", script: `printf 'a\nb' > app/new.php`},
		{
			name: "conflict", script: `printf '<<<<<<< ours\na\n||||||| base\nb\n=======\nc\n>>>>>>> theirs\n' > app/new.php`,
			want: "whitespace app/new.php:1\nwhitespace app/new.php:3\nwhitespace app/new.php:5\nwhitespace app/new.php:7",
		},
		{
			name: "conflict with carriage returns", script: `printf '<<<<<<< ours\r\na\r\n=======\r\n>>>>>>> theirs\r\n' > app/new.php`,
			want: "whitespace app/new.php:1\nwhitespace app/new.php:3\nwhitespace app/new.php:4",
		},
		{name: "heading underlined", script: `printf 'Heading\n=======\n' > docs/new.rst`},
		{name: "arrows and shifts", script: `printf '<<<<<<<x\n>>>>>>\n  <<<<<<< a\n' > app/new.php`},
		{name: "file deleted", script: `rm app/blank_end.py`},
	} {
		c.run(t)
	}
}

// checkLine is a line of `git diff --check`.
var checkLine = regexp.MustCompile(`(?m)^([^:\n+]+):(\d+): (.+)$`)

// TestWhitespaceAsGit compares the rule with git itself, on contents with every mixture of blanks and line ends.
func TestWhitespaceAsGit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"", "a", " ", "\t", " \t", "\t ", " a", "\ta", " \ta", "\t a", "a ", "a\t", "\r", "a\r", " \r", "\r\r", "\t\r\r",
		"<<<<<<< x", ">>>>>>> y", "||||||| z", "<<<<<<<", "<<<<<<< ", ">>>>>>>x", "<<<<<<<<", "b", "c", "d",
	}
	content := func() string {
		var b strings.Builder
		for n := random.IntN(8); n > 0; n-- {
			b.WriteString(pieces[random.IntN(len(pieces))])
			if n > 1 || random.IntN(4) > 0 {
				b.WriteByte('\n')
			}
		}
		return b.String()
	}
	before, after := map[string]string{}, map[string]string{}
	for i := range 400 {
		name := fmt.Sprintf("f%03d.txt", i)
		if i%2 == 0 {
			before[name] = content()
		}
		// Whole new content or more at the end: where a line could be matched in two ways, two right diffs differ.
		after[name] = before[name]
		if s := after[name]; s != "" && !strings.HasSuffix(s, "\n") {
			after[name] += "\n"
		}
		after[name] += content()
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "core.whitespace=cr-at-eol", "-c", "core.autocrlf=false", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.Output()
		if err != nil && !slices.Contains(args, "--check") {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	write := func(at string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	git("init", "-q", "-b", "main")
	write(dir, before)
	git("add", "-A")
	git("commit", "-q", "-m", "base", "--allow-empty")

	repo, err := worktree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := repo.Head()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Checkout(t.Context(), head.Commit, filepath.Join(t.TempDir(), "w"), worktree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(tree.Dir(), after)
	write(dir, after)
	git("add", "-A")

	want := map[string]bool{}
	for _, m := range checkLine.FindAllStringSubmatch(git("diff", "--cached", "--check", "HEAD"), -1) {
		// git tells several errors of a line in one sentence.
		for text := range strings.SplitSeq(m[3], ", ") {
			want[m[1]+":"+m[2]+" "+strings.TrimSuffix(text, ".")] = true
		}
	}
	change, err := tree.Change(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := (&Gate{Tree: tree}).Policy(change)
	if err != nil {
		t.Fatal(err)
	}
	gits := map[string]string{
		"blanks at the end of the line":         "trailing whitespace",
		"a blank before a tab in the indent":    "space before tab in indent",
		"new blank line at the end of the file": "new blank line at EOF",
		"leftover conflict marker":              "leftover conflict marker",
	}
	got := map[string]bool{}
	for _, f := range found {
		if f.Rule == "whitespace" {
			got[fmt.Sprintf("%s:%d %s", f.Path, f.Line, gits[f.Message])] = true
		}
	}
	if len(want) < 300 {
		t.Fatalf("git found only %d errors: the test tests nothing", len(want))
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !got[key] {
			name, _, _ := strings.Cut(key, ":")
			t.Errorf("git finds %s, we do not: %q → %q", key, before[name], after[name])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if !want[key] {
			name, _, _ := strings.Cut(key, ":")
			t.Errorf("we find %s, git does not: %q → %q", key, before[name], after[name])
		}
	}
}
