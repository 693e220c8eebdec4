package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func pairs(p ...string) []map[string]string {
	var list []map[string]string
	for i := 0; i < len(p); i += 2 {
		list = append(list, map[string]string{"old": p[i], "new": p[i+1]})
	}
	return list
}

func TestEditFile(t *testing.T) {
	t.Parallel()
	const start = "alpha\nbeta\ngamma\nbeta\ndelta\n"
	for name, c := range map[string]struct {
		content string
		edits   []map[string]string
		after   string // "" when nothing may change
		parts   []string
	}{
		"one line":            {start, pairs("gamma", "GAMMA"), "alpha\nbeta\nGAMMA\nbeta\ndelta\n", []string{"line 3."}},
		"several":             {start, pairs("delta\n", "d1\nd2\n", "alpha\n", ""), "beta\ngamma\nbeta\nd1\nd2\n", []string{"line 1, lines 4–5."}},
		"around a double":     {start, pairs("gamma\nbeta", "gamma\nBETA"), "alpha\nbeta\ngamma\nBETA\ndelta\n", nil},
		"twice":               {start, pairs("beta", "x"), "", []string{"stands 2 times, in lines 2, 4", "unique"}},
		"overlapping matches": {"aaa\n", pairs("aa", "b"), "", []string{"2 times"}},
		"very often":          {strings.Repeat("x\n", 50), pairs("x", "y"), "", []string{"more than 10 times"}},
		"absent":              {start, pairs("gama\nbeto", "x"), "", []string{"does not stand", "3\tgamma"}},
		"nothing like it":     {start, pairs("0123456789", "x"), "", []string{"nothing like it"}},
		"all or none":         {start, pairs("alpha", "A", "omega", "O", "beta", "B"), "", []string{"Edit 2: ", "Edit 3: ", "None of the edits"}},
		"overlap":             {start, pairs("alpha\nbeta", "x", "beta\ngamma", "y"), "", []string{"Edits 1 and 2 overlap"}},
		"touching":            {start, pairs("alpha\n", "A\n", "beta\ngamma", "B\nG"), "A\nB\nG\nbeta\ndelta\n", nil},
		"not in edited text":  {start, pairs("alpha", "omega", "omega", "x"), "", []string{"Edit 2: "}},
		"empty old":           {start, pairs("", "x"), "", []string{"`old` is empty"}},
		"white space alone":   {start, pairs("  \n\n", "x"), "", []string{"white space"}},
		"no change":           {start, pairs("alpha", "alpha"), "", []string{"same as the old"}},
		"indentation":         {"if x {\n\treturn 1\n}\n", pairs("if x {\n    return 1\n}", "y"), "", []string{"differs in white space only", "1\tif x {\n2\t\treturn 1\n3\t}"}},
		"line numbers":        {start, pairs("2\tbeta\n3\tgamma", "x"), "", []string{"line numbers"}},
		"crlf":                {"a\r\nb\r\nc\r\n", pairs("a\nb", "a\nx\nb"), "a\r\nx\r\nb\r\nc\r\n", nil},
		"crlf, one line":      {"a\r\nb\r\nc\r\n", pairs("b", "x\ny"), "a\r\nx\r\ny\r\nc\r\n", nil},
		"crlf, last line":     {"a\r\nb", pairs("b", "x\ny"), "a\r\nx\r\ny", nil},
		"lf, given crlf":      {"a\nb\n", pairs("a\r\nb", "x\r\ny"), "x\ny\n", nil},
		"mixed, lf place":     {"a\nb\nc\r\nd\r\n", pairs("a\nb", "x\ny"), "x\ny\nc\r\nd\r\n", nil},
		"mixed, crlf place":   {"a\nb\nc\r\nd\r\n", pairs("c\nd", "x\ny"), "a\nb\nx\r\ny\r\n", nil},
		"byte order mark":     {"\uFEFFa\nb\n", pairs("a\nb", "x"), "\uFEFFx\n", nil},
		"latin-1 elsewhere":   {"caf\xe9\nb\n", pairs("b", "x"), "caf\xe9\nx\n", nil},
		"unicode":             {"grün\nblau\n", pairs("grün", "größer"), "größer\nblau\n", nil},
		"binary":              {"a\x00b", pairs("a", "x"), "", []string{"binary"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSet(t, map[string]string{"f.txt": c.content})
			r := call(t, s, "edit_file", args("path", "f.txt", "edits", c.edits))
			after := c.after
			if after == "" {
				after = c.content
			}
			want(t, r, c.after == "", c.parts...)
			if got := read(t, s, "f.txt"); got != after || r.Changed != (c.after != "") {
				t.Errorf("the file is %q, want %q (changed: %t)", got, after, r.Changed)
			}
		})
	}
}

func TestEditFileKeepsTheMode(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{"run.sh": "#!/bin/sh\necho one\n"})
	want(t, call(t, s, "edit_file", args("path", "run.sh", "old", "one", "new", "two")), false, "changed run.sh: line 2.")
	info, err := os.Stat(filepath.Join(s.bench.Tree.Dir(), "run.sh"))
	if err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	want(t, call(t, s, "bash", args("command", "./run.sh && sed -i s/two/three/ run.sh")), false, "two") // still the commands' own file
	want(t, call(t, s, "edit_file", args("path", "runs.sh", "old", "one", "new", "two")), true, "there is no runs.sh", "run.sh", "write_file")
}

func TestEditOfHugeTextsIsCheap(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{
		"a.txt": strings.Repeat("a", 300_000), "lines.txt": strings.Repeat("} else {\n\n", 30_000), "brace.txt": strings.Repeat("}\n", 100_000),
	})
	began := time.Now()
	for _, c := range []struct{ file, old string }{
		{"a.txt", strings.Repeat("a", 150_000)},
		{"a.txt", strings.Repeat("a", 150_000) + "b"},
		{"lines.txt", strings.Repeat("} else {\n", 10_000)},
		{"brace.txt", strings.Repeat("}\n\n", 50_000)},
		{"brace.txt", "{"},
		{"lines.txt", "} else  {"},
	} {
		want(t, call(t, s, "edit_file", args("path", c.file, "old", c.old, "new", "x")), true, "`old`")
	}
	if d := time.Since(began); d > time.Minute {
		t.Errorf("took %s", d)
	}
	must(t, os.WriteFile(filepath.Join(s.bench.Tree.Dir(), "huge.txt"), make([]byte, maxEdited+1), 0o600))
	want(t, call(t, s, "edit_file", args("path", "huge.txt", "old", "a", "new", "b")), true, "takes files up to")
}

// FuzzLocate holds that an accepted edit changes the one place it names and nothing else.
func FuzzLocate(f *testing.F) {
	f.Add("a\r\nb\nc", "a\nb", "x\ny")
	f.Add("aaa", "aa", "b")
	f.Add("\r\n\r\n", "\n", "")
	f.Add("one\ntwo\n", "tow", "x")
	f.Add("1\tx", "1\tx", "1\tx")
	f.Add("\xff\r", "\r", "\n")
	f.Fuzz(func(t *testing.T, content, old, replacement string) {
		spans, refusal := locateAll(content, []edit{{&old, &replacement}})
		if (refusal == "") != (len(spans) == 1) {
			t.Fatalf("%d places and the refusal %q", len(spans), refusal)
		}
		if refusal != "" {
			if len(refusal) > 12<<10 {
				t.Fatalf("a refusal of %d bytes", len(refusal))
			}
			return
		}
		sp, plain := spans[0], func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
		gone := content[sp.from:sp.to]
		if plain(gone) != plain(old) || plain(sp.text) != plain(replacement) {
			t.Fatalf("replaces %q by %q, asked for %q by %q", gone, sp.text, old, replacement)
		}
		if strings.Contains(content[sp.from+1:], gone) || strings.Contains(content[:sp.to-1], gone) {
			t.Fatalf("%q is not unique in %q", gone, content)
		}
		if got := splice(content, spans); got != content[:sp.from]+sp.text+content[sp.to:] {
			t.Fatalf("spliced into %q", got)
		}
		places(content, spans)
	})
}
