package gate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPathRule(t *testing.T) {
	t.Parallel()
	for _, c := range []policyCase{
		{name: "plain name", script: `echo a > app/new.php`},
		{name: "blanks, plus and unicode inside", script: `echo a > 'app/Größe von A+B (1).php'`},
		{name: "brackets as routes in pages have", script: `mkdir 'app/[id]'; echo a > 'app/[id]/page.tsx'`},
		{name: "two dots inside a name", script: `echo a > app/a..b.php`},
		{name: "name that begins with two dots", script: `echo a > app/..b.php`},
		{name: "emoji", script: `echo a > app/📦.php`},
		{name: "backslash", script: `echo a > 'app\evil.php'`, want: `path app\evil.php`},
		{name: "traversal by backslash", script: `echo a > '..\..\evil.php'`, want: `path ..\..\evil.php`},
		{name: "newline", script: `echo a > $'app/a\nb.php'`, want: `path "app/a\nb.php"`},
		{name: "escape", script: `echo a > $'app/\e[31m.php'`, want: `path "app/\x1b[31m.php"`},
		{name: "tab", script: `echo a > $'app/a\tb.php'`, want: `path "app/a\tb.php"`},
		{name: "delete character", script: `echo a > $'app/a\x7fb.php'`, want: `path "app/a\x7fb.php"`},
		{name: "C1 control", script: `echo a > $'app/a\u0085b.php'`, want: `path "app/a\u0085b.php"`},
		{name: "direction override", script: `echo a > $'app/a\u202ephp.txt'`, want: `path "app/a\u202ephp.txt"`},
		{name: "zero width", script: `echo a > $'app/a\u200bb.php'`, want: `path "app/a\u200bb.php"`},
		{name: "invalid UTF-8", script: `echo a > $'app/a\xffb.php'`, want: `path "app/a\xffb.php"`},
		{name: "trailing dot", script: `echo a > app/a.php.`, want: "path app/a.php."},
		{name: "trailing blank of a folder", script: `mkdir 'app/dir '; echo a > 'app/dir /a.php'`, want: "path app/dir /a.php"},
		{name: "three dots", script: `echo a > app/...`, want: "path app/..."},
		{name: "device", script: `echo a > app/NUL`, want: "path app/NUL"},
		{name: "device with suffix", script: `echo a > app/aux.php`, want: "path app/aux.php"},
		{name: "device as folder", script: `mkdir app/com1; echo a > app/com1/a.php`, want: "path app/com1/a.php"},
		{name: "no device", script: `echo a > app/console.php; echo a > app/auxiliary.php; echo > app/com10.php; echo hi >> app/com10.php`},
		{name: "longest path", script: `d=app/$(printf 'd%.0s' {1..120}); mkdir $d; echo a > $d/$(printf 'f%.0s' {1..130})`},
		{name: "path too long", script: `d=app/$(printf 'd%.0s' {1..120}); mkdir $d; echo a > $d/$(printf 'f%.0s' {1..131})`, want: "path app/" + strings.Repeat("d", 120) + "/" + strings.Repeat("f", 131)},
		{name: "case twin", script: `echo a > app/invoice.php`, want: "path app/invoice.php"},
		{name: "case twin of a folder", script: `mkdir App; echo a > App/new.php`, want: "path App/new.php"},
		{name: "case twin beyond ASCII", script: `echo a > app/straße.php; echo a > app/STRASSE.php`, want: "path app/STRASSE.php\npath app/straße.php"},
		{name: "Kelvin sign", script: `echo a > $'app/\u212aelvin.php'; echo a > app/kelvin.php`, want: "path app/kelvin.php\npath app/\u212aelvin.php"},
		{name: "composition twin", script: `echo a > $'app/\u00e9.php'; echo a > $'app/e\u0301.php'`, want: "path app/e\u0301.php\npath app/\u00e9.php"},
		{name: "case twin of a link", script: `echo a > LINK`, want: "path LINK"},
		{name: "case of a name changed", script: `mv app/total.go app/Total.go`},
		{name: "case of a folder changed", script: `mv db Db`},
		{name: "HFS ignores it", script: `mkdir $'.g\u200cit'; echo a > $'.g\u200cit/config'`, want: `path ".g\u200cit/config"`},
		{name: "NTFS short name", script: `mkdir git~1; echo a > git~1/config`, want: "path git~1/config"},
		{name: "NTFS stream", script: `echo a > .git::\$INDEX_ALLOCATION`, want: "path .git::$INDEX_ALLOCATION\nprotected .git::$INDEX_ALLOCATION"},
		{name: "git with a trailing dot", script: `mkdir app/.git.; echo a > app/.git./config`, want: "path app/.git./config"},
	} {
		c.run(t)
	}
}

// Paths that no file system gives, but a careless caller could.
func TestPathTroubles(t *testing.T) {
	t.Parallel()
	for path, trouble := range map[string]bool{
		"a/b.go": false, "": true, "/etc/passwd": true, "../x": true, "a/../x": true, "a/..": true, "./a": true, "a/./b": true,
		".git/config": true, "a/.GIT/config": true, ".git": true, ".Git ": true, "GIT~1": true, "gitmod~1": true, ".gitmodules": false, "git": false, "a.git/x": false,
		`a\.git\config`: false, `.git\config`: true, ".git:x": true, "\ufeff.git": true, ".gi\u200dT/x": true,
	} {
		if got := pathTroubles(path, false); (len(got) > 0) != trouble {
			t.Errorf("pathTroubles(%q) = %v", path, got)
		}
	}
	// What the base commit has already is not the change's doing.
	for _, path := range []string{`a\b`, "aux.c", "a ", "a\nb", strings.Repeat("a", 300)} {
		if got := pathTroubles(path, false); len(got) > 0 {
			t.Errorf("%q is refused as modified: %v", path, got)
		}
		if got := pathTroubles(path, true); len(got) == 0 {
			t.Errorf("%q is not refused as added", path)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "a", ".git", "GIT~1", ".g\u200cit", "a/../b", "\xff", "İ", "ß", "a\\b", "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		folded := fold(path)
		if utf8.ValidString(path) && fold(folded) != folded {
			t.Errorf("fold is not idempotent on %q: %q, %q", path, folded, fold(folded))
		}
		if s := shown(path); strings.ContainsAny(s, "\n\r\x1b\u202e") || !utf8.ValidString(s) {
			t.Errorf("shown(%q) = %q may not stand in a line", path, s)
		}
		pathTroubles(path, true)
		sortOf(path)
		if _, err := (Rules{Protected: []string{"a/**"}, Allowed: []string{"b/**"}, Direct: true, DirectPaths: []string{"**"}}).protects(path); err != nil {
			t.Errorf("protects(%q): %v", path, err)
		}
	})
}
