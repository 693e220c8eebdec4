package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{
		".gitignore": "ignored/\n",
		"a.go":       "package a\n\nfunc One() {}\nfunc Two() {}\n",
		"lib/b.go":   "package b\r\nfunc One() {}\r\n", "lib/deep/c.php": "<?php function one() {}\n",
		"bin.dat": "func One\x00", "min.js": strings.Repeat("x;", 5000) + "needle" + strings.Repeat(";y", 5000) + "\n",
	})
	must(t, os.MkdirAll(filepath.Join(s.bench.Tree.Dir(), "ignored"), 0o755)) // #nosec G301 -- as a tool would make it
	must(t, os.WriteFile(filepath.Join(s.bench.Tree.Dir(), "ignored/d.go"), []byte("func One() {}\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(s.bench.Tree.Dir(), "big.txt"), []byte(strings.Repeat("func One() {}\n", 100_000)), 0o600))
	for _, c := range []struct {
		arguments string
		fails     bool
		parts     []string
	}{
		{args("pattern", `func One`), false, []string{"a.go:3:func One() {}\n", "lib/b.go:2:func One() {}\n", "!ignored", "!bin.dat", "!big.txt", "!php", "!\r"}},
		{args("pattern", `(?i)function ONE`), false, []string{"lib/deep/c.php:1:<?php function one() {}\n"}},
		{args("pattern", `^func Two\(\) \{\}$`), false, []string{"a.go:4:"}},
		{args("pattern", `^func One\(\) \{\}$`, "path", "lib"), false, []string{"lib/b.go:2:", "!a.go"}},
		{args("pattern", `One`, "path", "lib/"), false, []string{"lib/b.go:2:"}},
		{args("pattern", `One`, "path", "a.go"), false, []string{"a.go:3:"}},
		{args("pattern", `One`, "path", "ignored/d.go"), false, []string{"ignored/d.go:1:"}},
		{args("pattern", `One`, "path", "ignored"), false, []string{"ignored files are left out"}},
		{args("pattern", `(?i)one`, "glob", "*.php"), false, []string{"c.php", "!.go:"}},
		{args("pattern", `(?i)one`, "glob", "lib/**/*.{go,php}"), false, []string{"c.php", "lib/b.go", "!a.go:3"}},
		{args("pattern", `(?i)one`, "path", "lib", "glob", "deep/*"), false, []string{"c.php", "!b.go"}},
		{args("pattern", `Two`, "context", 1), false, []string{"a.go-3-func One() {}\na.go:4:func Two() {}\n"}},
		{args("pattern", `One`, "context", 1), false, []string{"a.go-2-\na.go:3:func One() {}\na.go-4-func Two() {}\n--\nlib/b.go-1-package b\n"}},
		{args("pattern", `needle`), false, []string{"min.js:1:[…] ", "needle;y", "[…]\n"}},
		{args("pattern", `nowhere`), false, []string{"no match in", "2 binary or larger than 1 MiB left out"}},
		{args("pattern", `a(b`), true, []string{"missing closing )", `\Q`}},
		{args("pattern", `(?=x)y`), true, []string{"no lookahead"}},
		{args("pattern", `(a)\1`), true, []string{"no backreferences"}},
		{args("pattern", `a`, "glob", "[x"), true, []string{"glob"}},
		{args("pattern", `a`, "path", "nix"), true, []string{"there is no nix"}},
		{args("pattern", strings.Repeat("a", 3000)), true, []string{"the most is 2000"}},
	} {
		t.Run(fmt.Sprintf("%.60s", c.arguments), func(t *testing.T) { want(t, call(t, s, "search", c.arguments), c.fails, c.parts...) })
	}
}

func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	files := map[string]string{"secret.txt": strings.Repeat("p", 250) + canary + strings.Repeat("q", 400) + "\n"}
	for i := range 30 {
		files[fmt.Sprintf("f%02d.txt", i)] = numbers(1, 60)
	}
	s := newSet(t, files)
	r := call(t, s, "search", args("pattern", "line"))
	want(t, r, false, "f00.txt:20:line 20", "!f00.txt:21:", "f04.txt", "!f05.txt", "[more than 20 matches: f00.txt", "stopped at 100 matches")
	if n := strings.Count(r.Text, ":line "); n != maxMatches {
		t.Errorf("%d matches shown", n)
	}
	want(t, call(t, s, "search", args("pattern", "line 20", "context", 10)), false, "f00.txt-10-line 10\n", "f00.txt-30-line 30\n--\n")
	for _, pattern := range []string{"p", "q", "p{200}", "[^p]q"} {
		want(t, call(t, s, "search", args("path", "secret.txt", "pattern", pattern)), false, "!"+canary[:10], "!"+canary[len(canary)-10:])
	}
}

func TestSearchIsLinear(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	must(t, os.WriteFile(filepath.Join(s.bench.Tree.Dir(), "a.txt"), []byte(strings.Repeat("a", maxSearched/4)+"\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(s.bench.Tree.Dir(), "b.txt"), []byte(strings.Repeat("\n", maxSearched/4)), 0o600))
	began := time.Now()
	for _, pattern := range []string{"(a+a+)+b", "(a*)*(a*)*$b", "x[^y]*$", "^$x", "(.*)(.*)(.*)(.*)z", "(a?){50}b"} {
		want(t, call(t, s, "search", args("pattern", pattern)), false, "no match")
	}
	if d := time.Since(began); d > time.Minute {
		t.Errorf("took %s", d)
	}
}

func TestSearchStopsInTime(t *testing.T) {
	t.Parallel()
	const pattern = "(a?){900}b"
	size, err := patternSize(pattern)
	must(t, err)
	f := finder{set: newSet(t, nil), re: regexp.MustCompile(pattern), size: size, deadline: time.Now().Add(100 * time.Millisecond)}
	began := time.Now()
	must(t, f.file(t.Context(), "a.txt", []byte(strings.Repeat("a", maxSearched))))
	must(t, f.file(t.Context(), "b.txt", []byte(strings.Repeat("aaaaaaaaa\n", maxSearched/10))))
	r, err := f.result(nil)
	must(t, err)
	want(t, r, false, "no match", "stopped after")
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("took %s", d)
	}
}

func BenchmarkSearch(b *testing.B) {
	files := make(map[string]string)
	for i := range 500 {
		files[fmt.Sprintf("d%d/f%d.txt", i%20, i)] = numbers(1, 1000)
	}
	s := newSet(b, files)
	for _, pattern := range []string{"line 999$", `\bl\w+ 999$`} {
		b.Run(pattern, func(b *testing.B) {
			b.SetBytes(500 * int64(len(numbers(1, 1000))))
			for b.Loop() {
				call(b, s, "search", args("pattern", pattern))
			}
		})
	}
}
