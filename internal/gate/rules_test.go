package gate

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestEmptyRule(t *testing.T) {
	t.Parallel()
	for _, c := range []policyCase{
		{name: "nothing", bare: true, want: "empty"},
		{name: "touched only", bare: true, script: "touch app/total.go", want: "empty"},
		{name: "written as it was", bare: true, script: "cp app/total.go x; cat x > app/total.go; rm x", want: "empty"},
		{name: "ignored files only", bare: true, script: "mkdir ignored; echo x > ignored/a; echo x > a.log", want: "empty"},
		{name: "blanks only, that normalising removes", bare: true, script: `sed -i 's/return 1;/return 1;  /' app/Invoice.php`, want: "empty"},
	} {
		c.run(t)
	}
}

func TestLimitsRule(t *testing.T) {
	t.Parallel()
	limit := func(files, lines int) func(*Rules) {
		return func(r *Rules) { r.MaxFiles, r.MaxLines = files, lines }
	}
	for _, c := range []policyCase{
		{name: "as many files as allowed", script: "echo a > app/b.php", rules: limit(2, 800)},
		{name: "one file more", script: "echo a > app/b.php; echo a > app/c.php", rules: limit(2, 800), want: "limits"},
		{name: "as many lines as allowed", script: "seq 9 > app/b.php", rules: limit(12, 10)},
		{name: "one line more", script: "seq 10 > app/b.php", rules: limit(12, 10), want: "limits"},
		{name: "removed lines count", script: "rm app/total.go", rules: limit(12, 5), want: "limits"},
		{name: "no limit", script: "seq 2000 > app/b.php", rules: limit(0, 0)},
		{
			name: "files put back do not count", script: "mkdir node_modules; for i in 1 2 3 4; do echo > node_modules/$i.js; done", rules: limit(2, 3),
			want: "protected node_modules/1.js\nprotected node_modules/2.js\nprotected node_modules/3.js\nprotected node_modules/4.js",
		},
	} {
		c.run(t)
	}
}

func TestTemporaryRule(t *testing.T) {
	t.Parallel()
	for _, c := range []policyCase{
		{
			name: "backups", script: `cd app; for f in a.bak a.backup a.orig a.rej a.temp a.TMP a~; do echo x > $f; done`,
			want: "temporary app/a.TMP\ntemporary app/a.backup\ntemporary app/a.bak\ntemporary app/a.orig\ntemporary app/a.rej\ntemporary app/a.temp\ntemporary app/a~",
		},
		{name: "scratch", script: `echo x > debug.php; echo x > app/scratch.py; echo x > test_debug.go`, want: "temporary app/scratch.py\ntemporary debug.php\ntemporary test_debug.go"},
		{
			name: "editors and systems", script: `mkdir .idea .vscode; echo x > .idea/a.xml; echo x > .vscode/settings.json; echo x > .DS_Store; echo x > Thumbs.db; echo x > '.#a'; echo x > '#a#'; echo x > .a.swp`,
			want: "temporary #a#\ntemporary .#a\ntemporary .DS_Store\ntemporary .a.swp\ntemporary .idea/a.xml\ntemporary .vscode/settings.json\ntemporary Thumbs.db",
		},
		{name: "there already", script: `echo y >> app/old.bak`},
		{name: "deleted", script: `rm app/old.bak`},
		{name: "similar names", script: `cd app; for f in debugger.php scratchpad.php template.php tmp.php mydebug.php; do echo x > $f; done`},
	} {
		c.run(t)
	}
}

func TestApplicationRule(t *testing.T) {
	t.Parallel()
	kind := func(k string) func(*Rules) { return func(r *Rules) { r.Kind = k } }
	for _, c := range []policyCase{
		{name: "source and test", script: `echo '// x' >> tests/InvoiceTest.php`},
		{name: "tests only", bare: true, script: `echo '// x' >> tests/InvoiceTest.php`, want: "application"},
		{name: "documents only", bare: true, script: `echo x >> README.md; echo x >> docs/guide.md`, want: "application"},
		{name: "tests and documents", bare: true, script: `echo x >> README.md; echo '// x' >> tests/InvoiceTest.php`, want: "application"},
		{name: "source deleted", bare: true, script: `rm app/total.go`},
		{name: "tests wanted", bare: true, script: `echo '// x' >> tests/InvoiceTest.php`, rules: kind("tests")},
		{name: "tests wanted, none there", rules: kind("tests"), want: "application"},
		{name: "documents wanted", bare: true, script: `echo x >> README.md`, rules: kind("docs")},
		{name: "kind not set", bare: true, script: `echo x >> README.md`, rules: kind(""), want: "application"},
	} {
		c.run(t)
	}
}

func TestSortOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"main.go": "code", "main_test.go": "tests", "a/test_x.py": "tests", "a/x_test.py": "tests", "a/conftest.py": "tests",
		"src/a.test.tsx": "tests", "src/a.spec.js": "tests", "src/test/java/A.java": "tests", "AppTest.php": "tests", "Latest.php": "code", "Contest.java": "code",
		"AppTests.cs": "tests", "spec/a.rb": "tests", "a_spec.rb": "tests", "x/testdata/a.json": "tests", "Tests/Unit/A.php": "tests", "src/__tests__/a.js": "tests",
		"testing/a.go": "code", "latest/a.go": "code", "contest.py": "code", "attest_x.py": "code",
		"README": "docs", "README.md": "docs", "docs/conf.py": "docs", "src/docs/a.py": "code", "a.rst": "docs", "LICENSE": "docs", "LICENSE.txt": "docs", "license.go": "code",
		"CMakeLists.txt": "code", "config/a.yml": "code", "templates/mail.html": "code", "CHANGELOG.md": "docs",
	} {
		if got := sortOf(path); got != want {
			t.Errorf("sortOf(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestSecretRule(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711-secret"
	encoded := base64.StdEncoding.EncodeToString([]byte("x" + canary + "yz"))
	for _, c := range []policyCase{
		{name: "in a line", script: "echo '$key = \"" + canary + "\";' >> app/Invoice.php", want: "secret app/Invoice.php:6"},
		{name: "in base64", script: "echo '" + encoded + "' > app/key.php", want: "secret app/key.php:1"},
		{name: "in a name", script: "echo x > app/" + canary + ".php", want: "secret app/" + canary + ".php"},
		{name: "in a file put back anyway", script: "echo " + canary + " > .env", want: "protected .env"},
		{name: "another value", script: "echo canary-4712-secret > app/key.php"},
	} {
		c.run(t)
	}
	g := newGate(t)
	work(t, g, "fix; echo "+canary+" >> app/Invoice.php")
	v := judge(t, g)
	if text := Feedback(v, g.Redact) + v.Reason(); strings.Contains(text, canary) {
		t.Errorf("the value is told:\n%s", text)
	}
}

// A value of several short lines is known as a whole only.
func TestSecretOverLines(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Redact.Add("ab-12\ncd-34\nef-56")
	work(t, g, `fix; printf 'x\nab-12\ncd-34\nef-56\n' > app/key.php`)
	if got := brief(judge(t, g).Findings); got != "secret app/key.php" {
		t.Errorf("findings: %s", got)
	}
}
