package gate

import (
	"strings"
	"testing"

	"issuesmith/internal/worktree"
)

func TestKindRule(t *testing.T) {
	t.Parallel()
	for _, c := range []policyCase{
		{name: "new link", script: `ln -s /etc/passwd app/evil.php`, want: "kind app/evil.php"},
		{name: "new link inside", script: `ln -s Invoice.php app/other.php`, want: "kind app/other.php"},
		{name: "link to a folder", script: `ln -s /etc app/etc`, want: "kind app/etc"},
		{name: "file swapped for a link", script: `rm app/total.go; ln -s /etc/passwd app/total.go`, want: "kind app/total.go"},
		{name: "link swapped for a file", script: `rm link; echo x > link`, want: "kind link"},
		{name: "link swapped for another", script: `ln -sfn /etc/passwd link`, want: "kind link"},
		{name: "link deleted", script: `rm link`, want: "kind link"},
		{name: "folder swapped for a link", script: `mv db elsewhere; ln -s elsewhere db`, want: "kind db"},
		{name: "hard link to a file outside", script: `echo x > ../outside; ln ../outside app/hard.php`, want: "kind app/hard.php"},
		{name: "hard link inside", script: `ln app/Invoice.php app/Copy.php`, want: "application\nkind app/Copy.php\nkind app/Invoice.php"},
		{name: "new program", script: `echo '#!/bin/sh' > app/run.sh; chmod +x app/run.sh`, want: "kind app/run.sh"},
		{name: "file made a program", script: `chmod +x scripts/run.sh`, want: "kind scripts/run.sh"},
		{name: "program stays one", script: `echo 'exit 0' >> bin/tool`},
		{name: "named pipe", script: `mkfifo app/pipe`, want: "kind app/pipe"},
		{name: "repository", script: `mkdir app/inner; cd app/inner; git init -q .; echo x > a.php`, want: "kind app/inner/.git"},
		{name: "repository file", script: `mkdir app/inner; echo 'gitdir: /tmp' > app/inner/.git; echo x > app/inner/a.php`, want: "kind app/inner/.git"},
		{name: "repository of the worktree", script: `git init -q .`, want: "kind .git"},
		{name: "submodule filled", script: `echo x > sub/a`, want: "kind sub"},
		{name: "submodule swapped for a file", script: `rmdir sub; echo x > sub`, want: "kind sub"},
		{name: "huge file", script: `head -c 9000000 /dev/zero | tr '\0' a > app/big.php`, want: "kind app/big.php"},
		{name: "large file", script: `head -c 1048577 /dev/zero | tr '\0' a > app/big.php`, want: "kind app/big.php"},
		{name: "just not large", script: `head -c 1048576 /dev/zero | tr '\0' a > app/big.php`},
		{name: "binary changed", script: `printf '\0' >> img/logo.png`, want: "kind img/logo.png"},
		{name: "binary deleted", script: `rm img/logo.png`, want: "kind img/logo.png"},
		{name: "binary added", script: `printf '\211PNG\0' > img/new.png`, want: "kind img/new.png"},
		{name: "text becomes binary", script: `printf 'a\0b\n' > app/total.go`, want: "kind app/total.go"},
	} {
		c.run(t)
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	for _, c := range []policyCase{
		{name: "compiled Python", script: `mkdir -p app/__pycache__; printf '\0\0' > app/__pycache__/a.cpython-311.pyc; printf '\0' > app/b.pyc`},
		{name: "built program", script: `cp /bin/true app/tool; chmod +x app/tool`},
		{name: "large built program", script: `{ printf '\177ELF\0\0'; head -c 9000000 /dev/zero; } > app/tool; chmod +x app/tool`},
		{name: "test database", script: `printf 'SQLite format 3\0\0' > app/testing.db`},
		{name: "archive with a temporary name", script: `printf '\0\0' > app/x.tmp`},
		{name: "cache of a test runner, text", script: `mkdir -p .pytest_cache/v; echo '*' > .pytest_cache/.gitignore; echo x > .pytest_cache/README.md; echo '{}' > .pytest_cache/v/lastfailed; echo '{}' > .phpunit.result.cache`},
		{name: "text with a temporary name is a finding", script: `echo x > app/x.tmp`, want: "temporary app/x.tmp"},
		{name: "built program over a file", script: `cp /bin/true app/total.go`, want: "kind app/total.go"},
		{name: "nothing else", bare: true, script: `printf '\0' > app/b.pyc`, want: "empty"},
	} {
		c.run(t)
	}
	g := newGate(t)
	work(t, g, `fix; printf '\0' > app/b.pyc`)
	v := judge(t, g)
	if len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "app/b.pyc") {
		t.Errorf("notes: %q", v.Notes)
	}
	if len(v.Change.Files) != 1 || v.Change.Files[0].Path != "app/Invoice.php" {
		t.Errorf("the change: %+v", v.Change.Files)
	}
	if _, err := g.Tree.ReadFile("app/b.pyc"); err == nil {
		t.Error("the leftover is still there")
	}
}

func TestFilesThatWereLarge(t *testing.T) {
	t.Parallel()
	file := func(before, after int64) worktree.File {
		return worktree.File{Path: "a", Op: worktree.Modified, Old: worktree.Side{Kind: worktree.KindFile, Size: before}, New: worktree.Side{Kind: worktree.KindFile, Size: after, HardLinks: 1}}
	}
	for _, c := range []struct {
		before, after int64
		refused       bool
	}{
		{10, maxFile, false}, {10, maxFile + 1, true}, {maxFile, maxFile + growth, false}, {2 * maxFile, 2*maxFile + growth, false}, {2 * maxFile, 2*maxFile + growth + 1, true}, {3 * maxFile, 2 * maxFile, false},
	} {
		if got := kindTroubles(file(c.before, c.after)); (len(got) > 0) != c.refused {
			t.Errorf("from %d to %d bytes: %+v", c.before, c.after, got)
		}
	}
}
