package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"issuesmith/internal/config"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

// fixture makes the repository that all tests start from.
const fixture = `
set -e
git init -q -b main .
git config user.name t; git config user.email t@example.org; git config commit.gpgsign false; git config core.autocrlf false
mkdir -p app tests docs docker vendor/lib storage internal/storage .github/workflows img bin db scripts bootstrap/cache
printf 'package app\n\nfunc Total() int {\n\treturn 1\n}\n' > app/total.go
printf '<?php\nfunction total() {\n    return 1;\n}\n' > app/Invoice.php
printf 'one\r\ntwo\r\n' > app/crlf.php
printf 'old blanks   \nline\n' > app/blanks.php
printf 'def f():\n    return 1\n\n\n' > app/blank_end.py
printf '<?php\nclass InvoiceTest {}\n' > tests/InvoiceTest.php
printf '# Readme\n' > README.md
printf '# Guide\n' > docs/guide.md
printf '{}\n' > package.json
printf '{}\n' > composer.lock
printf 'FROM scratch\n' > Dockerfile
printf 'services: {}\n' > docker/compose.yml
printf 'KEY=1\n' > .env
printf 'ignored/\n*.log\n' > .gitignore
printf 'on: push\n' > .github/workflows/ci.yml
printf '<?php\n' > vendor/lib/x.php
printf 'data\n' > storage/data.txt
printf '*\n' > bootstrap/cache/README
printf 'package storage\n' > internal/storage/s.go
printf 'guide\n' > AGENTS.md
printf '\211PNG\0\0\n' > img/logo.png
printf '#!/bin/sh\n' > bin/tool; chmod +x bin/tool
printf 'echo\n' > scripts/run.sh
printf 'select 1;\n' > db/schema.sql
printf 'x\n' > app/old.bak
ln -s app/total.go link
git add -A
git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub
git commit -q -m base
`

var repository = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gate-fixture-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("bash", "-c", fixture)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("make the fixture: %w: %s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := repository(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// defaults are the rules of a run without a repository file.
var defaults = Rules{MaxFiles: 12, MaxLines: 800, Kind: kindCode}

// newGate makes a worktree of the fixture and a gate over it.
func newGate(t testing.TB) *Gate {
	t.Helper()
	dir, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	repo, err := worktree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := repo.Head()
	if err != nil {
		t.Fatal(err)
	}
	// Commands run as another user when the tests run as root, who must be able to reach the worktree.
	place, err := os.MkdirTemp("/dev/shm", "gate-") // hundreds of worktrees are faster in memory
	if err != nil {
		place, err = os.MkdirTemp("", "gate-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(place) })
	if err := os.Chmod(place, 0o711); err != nil {
		t.Fatal(err)
	}
	owner := sandbox.DropOwner()
	tree, err := repo.Checkout(t.Context(), head.Commit, filepath.Join(place, "w"), worktree.Options{UID: owner.UID, GID: owner.GID, Chown: owner.Drop})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &Gate{Tree: tree, Rules: defaults, Redact: redact.New("canary-4711-secret")}
}

// withSandbox gives the gate a real sandbox.
func withSandbox(t testing.TB, g *Gate, tests ...string) {
	t.Helper()
	place := filepath.Dir(g.Tree.Dir())
	s, err := sandbox.New(sandbox.Options{Dir: g.Tree.Dir(), Home: filepath.Join(place, "home"), Tmp: filepath.Join(place, "tmp"), Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	g.Sandbox, g.Tests, g.Timeout = s, tests, 30e9
}

// work runs a script in the worktree as the agent would have done.
func work(t testing.TB, g *Gate, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", "set -e\nfix() { echo '// repaired' >> app/Invoice.php; }\n"+script)
	cmd.Dir = g.Tree.Dir()
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8") // for the scripts' \u escapes
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("script: %v: %s", err, out)
	}
}

func judge(t testing.TB, g *Gate) *Verdict {
	t.Helper()
	v, err := g.Judge(t.Context())
	if err != nil {
		t.Fatalf("Judge: %v", err)
	}
	return v
}

// brief writes findings as "rule path:line", one a line.
func brief(found []Finding) string {
	var lines []string
	for _, f := range found {
		line := f.Rule
		if f.Path != "" {
			line += " " + shown(f.Path)
		}
		if f.Line > 0 {
			line += fmt.Sprintf(":%d", f.Line)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// A policyCase is what an agent did, and what the policy finds: one "rule path:line" a line, sorted; "" for a good change.
type policyCase struct {
	name   string
	script string // after fix, which repairs app/Invoice.php
	bare   bool   // without fix
	want   string
	rules  func(*Rules)
}

func (c policyCase) run(t *testing.T) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		t.Parallel()
		g := newGate(t)
		if c.rules != nil {
			c.rules(&g.Rules)
		}
		script := c.script
		if !c.bare {
			script = "fix\n" + script
		}
		work(t, g, script)
		v := judge(t, g)
		if got := brief(v.Findings); got != c.want {
			t.Errorf("findings:\n%s\nwant:\n%s\nall: %+v\nnotes: %v", got, c.want, v.Findings, v.Notes)
		}
		if v.Passed != (c.want == "") {
			t.Errorf("Passed is %t with findings %q", v.Passed, c.want)
		}
		for _, f := range v.Findings {
			if f.Message == "" {
				t.Errorf("a finding without a message: %+v", f)
			}
		}
	})
}

func TestRulesOf(t *testing.T) {
	t.Parallel()
	r := RulesOf(&config.Config{MaxFiles: 3, MaxLines: 4, Mode: "direct", DirectPaths: []string{"docs/**"}, ProtectedPaths: []string{"a"}, AllowPaths: []string{"b"}})
	if r.MaxFiles != 3 || r.MaxLines != 4 || !r.Direct || r.Kind != "code" || r.DirectPaths[0] != "docs/**" || r.Protected[0] != "a" || r.Allowed[0] != "b" {
		t.Errorf("RulesOf lost something: %+v", r)
	}
	if RulesOf(&config.Config{Mode: "pr"}).Direct {
		t.Error("mode pr is not direct")
	}
}

func TestPolicyIsSortedAndComplete(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Rules.MaxLines = 2
	work(t, g, `echo '{"a":1}' > package.json; echo x > z.tmp; echo x > .env; echo 'a' > aux.php; printf '<<<<<<< a\n=======\n>>>>>>> b\n' >> tests/InvoiceTest.php; ln -s /etc/passwd evil`)
	v := judge(t, g)
	want := strings.Join([]string{
		"application", "kind evil", "limits", "path aux.php", "protected .env", "protected package.json", "temporary z.tmp",
		"whitespace tests/InvoiceTest.php:3", "whitespace tests/InvoiceTest.php:4", "whitespace tests/InvoiceTest.php:5",
	}, "\n")
	if got := brief(v.Findings); got != want {
		t.Errorf("findings:\n%s\nwant:\n%s", got, want)
	}
	if !slices.IsSortedFunc(v.Findings, func(a, b Finding) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return a.Line - b.Line
	}) {
		t.Errorf("not sorted by path and line: %+v", v.Findings)
	}
	if len(v.Commands) > 0 {
		t.Error("commands ran though policy failed")
	}
}

func TestListedBoundsARule(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	work(t, g, "fix; mkdir junk; for i in $(seq 300); do echo > junk/$i.tmp; done")
	v := judge(t, g)
	if n := len(v.Findings); n != maxListed+1 {
		t.Fatalf("%d findings listed", n)
	}
	if last := v.Findings[maxListed]; last.Message != "and 100 more findings of this rule" || last.Rule != "temporary" {
		t.Errorf("the last one is %+v", last)
	}
	if err := g.PutBack(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if len(v.PutBack) != 300 {
		t.Errorf("%d files put back: those beyond the list as well were wanted", len(v.PutBack))
	}
	if after := judge(t, g); !after.Passed {
		t.Errorf("still refused: %s", brief(after.Findings))
	}
}

// Removing trailing blanks must neither write through a hard link nor hide it.
func TestHardLinkWithTrailingBlanks(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	outside := filepath.Join(filepath.Dir(g.Tree.Dir()), "outside")
	work(t, g, `fix; echo 'blank at the end ' >> app/Invoice.php; printf 'theirs  \n' > ../outside; ln ../outside app/hard.php`)
	v := judge(t, g)
	if got := brief(v.Findings); got != "kind app/hard.php" {
		t.Errorf("findings: %s", got)
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "theirs  \n" {
		t.Errorf("the file outside is %q, %v", content, err)
	}
	if content, err := g.Tree.ReadFile("app/Invoice.php"); err != nil || !strings.HasSuffix(string(content), "at the end\n") {
		t.Errorf("what stays was not normalised: %q, %v", content, err)
	}
	if err := g.PutBack(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "theirs  \n" {
		t.Errorf("after PutBack the file outside is %q, %v", content, err)
	}
}

func TestJudgeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	withSandbox(t, g, "sleep 60")
	work(t, g, "fix")
	ctx, cancel := context.WithCancel(t.Context())
	g.Progress = func(string) { cancel() }
	_, err := g.Judge(ctx)
	if !errors.Is(err, context.Canceled) || errors.As(err, new(*InfraError)) {
		t.Errorf("Judge ended with %v, and a cancelled run is no infrastructure failure", err)
	}
}
