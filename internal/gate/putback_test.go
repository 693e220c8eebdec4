package gate

import (
	"slices"
	"strings"
	"testing"

	"issuesmith/internal/worktree"
)

func TestPutBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         []string // put back
		after        string   // findings of the next verdict
		diff         string   // in the discarded diff
	}{
		{
			name: "one of each", script: `echo '{"a":1}' > package.json; echo 'a' > 'app/aux.php'; ln -s /etc/passwd evil; echo x > x.tmp`,
			want: []string{"app/aux.php", "evil", "package.json", "x.tmp"}, diff: `+{"a":1}`,
		},
		{name: "findings that the model repairs", script: `printf ' \tx\n' > app/new.php`, after: "whitespace app/new.php:1"},
		{name: "deleted file comes back", script: `rm -r vendor`, want: []string{"vendor/lib/x.php"}, diff: "deleted file"},
		{name: "renamed file", script: `mv package.json app/p.json`, want: []string{"package.json"}},
		{name: "file became a folder", script: `rm Dockerfile; mkdir Dockerfile; echo x > Dockerfile/a.php`, want: []string{"Dockerfile", "Dockerfile/a.php"}},
		{name: "folder became a file", script: `rm -r vendor/lib; echo x > vendor/lib`, want: []string{"vendor/lib", "vendor/lib/x.php"}},
		{name: "top folder became a file", script: `rm -r storage; echo x > storage`, want: []string{"storage", "storage/data.txt"}},
		{name: "folder became a link", script: `rm -r docs; ln -s /etc docs`, want: []string{"docs"}, after: ""},
		{name: "link became a folder", script: `rm link; mkdir link; echo x > link/a.php`, want: []string{"link", "link/a.php"}},
		{name: "repository inside", script: `mkdir app/in; cd app/in; git init -q .; echo x > a`, want: []string{"app/in/.git"}},
		{name: "huge file", script: `head -c 9000000 /dev/zero | tr '\0' a > app/big.php`, want: []string{"app/big.php"}},
		{name: "file grown huge", script: `head -c 9000000 /dev/zero | tr '\0' a >> app/total.go`, want: []string{"app/total.go"}},
		{name: "submodule filled", script: `mkdir sub/a; echo x > sub/a/b; echo x > sub/c`, want: []string{"sub"}},
		{name: "submodule swapped for a file", script: `rmdir sub; echo x > sub`, want: []string{"sub"}},
		{name: "file below a link below a folder that was a file", script: `rm .env; mkdir -p .env/a; ln -s / .env/a/b`, want: []string{".env", ".env/a/b"}},
		{name: "named pipe", script: `mkfifo app/p`, want: []string{"app/p"}},
		{name: "program bit", script: `chmod +x scripts/run.sh`, want: []string{"scripts/run.sh"}},
		{name: "several findings of one file", script: `printf '\0' > .env; chmod +x .env`, want: []string{".env"}},
		{name: "name with a newline", script: `echo x > $'a\nb'`, want: []string{"a\nb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			work(t, g, "fix\n"+c.script)
			v := judge(t, g)
			if v.Passed {
				t.Fatal("the candidate passed")
			}
			if err := g.PutBack(t.Context(), v); err != nil {
				t.Fatalf("PutBack: %v", err)
			}
			if !slices.Equal(v.PutBack, c.want) {
				t.Errorf("put back %q, want %q", v.PutBack, c.want)
			}
			if (v.Discarded != "") != (len(c.want) > 0) || !strings.Contains(v.Discarded, c.diff) {
				t.Errorf("discarded: %s", v.Discarded)
			}
			if len(c.want) > 0 {
				text := Feedback(v, g.Redact)
				if !strings.Contains(text, "Put back to the base commit already") || !strings.Contains(text, shown(c.want[0])) {
					t.Errorf("feedback: %s", text)
				}
			}
			if content, err := g.Tree.ReadFile("app/Invoice.php"); err != nil || !strings.Contains(string(content), "repaired") {
				t.Errorf("the repair is gone: %v", err)
			}
			next := judge(t, g)
			if got := brief(next.Findings); got != c.after {
				for _, f := range next.Change.Files {
					t.Logf("%+v", f)
				}
				t.Errorf("next verdict %q, want %q", got, c.after)
			}
		})
	}
}

func TestTops(t *testing.T) {
	t.Parallel()
	var files []worktree.File
	gone := map[string]bool{}
	for _, name := range []string{"-a/b/c", "-a/b/d", "-a/e", "-f/g/h", "-f/g/i", "f/j", "-k", "l/m", "-l/n/o", "p"} {
		bare := strings.TrimPrefix(name, "-")
		files = append(files, worktree.File{Path: bare})
		gone[bare] = bare != name
	}
	if got, want := tops(files, gone), []string{"a", "f/g", "k", "l/n"}; !slices.Equal(got, want) {
		t.Errorf("tops: %q, want %q", got, want)
	}
}

func TestDiscardedIsBoundedAndRedacted(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	work(t, g, "fix; { seq 5000; echo canary-4711-secret; seq 5000; } >> .env")
	v := judge(t, g)
	if err := g.PutBack(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if n := len(v.Discarded); n > maxDiscarded || n < maxDiscarded/2 {
		t.Errorf("the diff has %d bytes", n)
	}
	if strings.Contains(Feedback(v, g.Redact)+v.Discarded, "canary-4711") {
		t.Error("a secret is told")
	}
}
