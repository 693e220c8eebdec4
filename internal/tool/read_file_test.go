package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestReadFilePages(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{
		"long.txt": numbers(1, 1000), "crlf.txt": "\xEF\xBB\xBFa\r\nb\r\n", "empty.txt": "", "open.txt": "a\nb",
		"wide.txt": strings.Repeat("é", 50_000) + "\nend\n", "latin1.txt": "caf\xe9\n", "bin.dat": "a\x00b\n",
		"broad.txt": strings.Repeat(strings.Repeat("w", 199)+"\n", 400), "src/app/model.go": "package app\n",
	})
	for _, c := range []struct {
		path         string
		start, lines int
		fails        bool
		parts        []string
	}{
		{"long.txt", 0, 0, false, []string{"1\tline 1\n", "400\tline 400\n[lines 1–400 of 1000; go on with start=401]\n", "!401\t"}},
		{"long.txt", 990, 3, false, []string{"990\tline 990\n", "992\tline 992\n[lines 990–992 of 1000; go on with start=993]"}},
		{"./long.txt", 999, 50, false, []string{"1000\tline 1000\n[lines 999–1000 of 1000]"}},
		{"long.txt", 1001, 0, true, []string{"only 1000 lines"}},
		{"long.txt", 1 << 40, 1 << 40, true, []string{"only 1000 lines"}},
		{"crlf.txt", 0, 0, false, []string{"1\ta\n2\tb\n[line ends are CRLF"}},
		{"empty.txt", 0, 0, false, []string{"is empty"}},
		{"open.txt", 0, 0, false, []string{"1\ta\n2\tb\n"}},
		{"wide.txt", 0, 0, false, []string{"1\tééé", "[… line of 100001 bytes]\n2\tend\n"}},
		{"latin1.txt", 0, 0, false, []string{"1\tcaf\uFFFD\n"}},
		{"bin.dat", 0, 0, true, []string{"is a binary file"}},
		{"broad.txt", 0, 0, false, []string{"go on with start=15"}},
		{"src", 0, 0, false, []string{"src is a folder of 1 entries:\napp/\n"}},
		{".", 0, 0, false, []string{"src/\n", "long.txt\n"}},
		{"models.go", 0, 0, true, []string{"there is no models.go", "src/app/model.go"}},
		{"src/model.go", 0, 0, true, []string{"The nearest names: src/app/model.go."}},
		{"long.txt/x", 0, 0, true, []string{"there is no long.txt/x"}},
		{"zzzzqqq", 0, 0, true, []string{"there is no zzzzqqq.", "!nearest"}},
	} {
		want(t, call(t, s, "read_file", args("path", c.path, "start", c.start, "lines", c.lines)), c.fails, c.parts...)
	}
}

func TestPathTricksAreRefused(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{"a.txt": "one\n", "real/b.txt": "two\n"})
	dir := s.bench.Tree.Dir()
	outside := filepath.Join(filepath.Dir(dir), "secret.txt")
	must(t, os.WriteFile(outside, []byte("outside\n"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, "link.txt")))
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	must(t, os.Symlink("/", filepath.Join(dir, "slash")))
	must(t, os.Symlink("a.txt", filepath.Join(dir, "inner.txt")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling.txt")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	must(t, os.Symlink("real", filepath.Join(dir, "alias")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("x"), 0o600))

	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, name := range []string{
			"../secret.txt", "real/../../secret.txt", "..", outside, "/etc/passwd", dir + "/a.txt", "link.txt", "up/secret.txt",
			"slash/etc/passwd", "dangling.txt", "loop", "loop/x", "pipe", ".git/config", ".GIT/config", "x/.git/hooks/pre-commit",
			"a\x00.txt", "a\n.txt", `real\b.txt`, strings.Repeat("n", 300), strings.Repeat("d/", 3000) + "x", "real", "",
		} {
			for tool, arguments := range map[string]string{
				"read_file":  args("path", name),
				"search":     args("path", name, "pattern", "."),
				"edit_file":  args("path", name, "old", "outside", "new", "changed"),
				"write_file": args("path", name, "content", "changed"),
			} {
				if (name == "real" || name == "") && (tool == "read_file" || tool == "search") {
					continue // a folder can be listed and searched
				}
				r, _, err := s.Call(t.Context(), tool, arguments)
				if err != nil || !r.Failed || strings.Contains(r.Text, "outside\n") || len(r.Text) > 1500 {
					t.Errorf("%s %.80q: error %v, %+.300v", tool, name, err, r)
				}
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a call hangs")
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "outside\n" {
		t.Errorf("the file outside is %q now (%v)", data, err)
	}
	if got := read(t, s, ".git/config"); got != "x" {
		t.Errorf(".git/config is %q now", got)
	}
	want(t, call(t, s, "edit_file", args("path", "inner.txt", "old", "one", "new", "1")), true, `symbolic link to "a.txt"`)
	want(t, call(t, s, "read_file", args("path", dir+"/a.txt")), true, `give "a.txt"`)
	want(t, call(t, s, "search", args("pattern", "outside")), false, "no match")
	want(t, call(t, s, "read_file", args("path", ".")), false, "pipe (a named pipe)", "link.txt (symbolic link)")
	want(t, call(t, s, "write_file", args("path", "a.txt/x", "content", "")), true)
}

func TestFolderListingIsBounded(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	for i := range 1000 {
		must(t, os.WriteFile(filepath.Join(s.bench.Tree.Dir(), fmt.Sprintf("f%04d", i)), nil, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(s.bench.Tree.Dir(), "a\nforged entry"), nil, 0o600))
	want(t, call(t, s, "read_file", args("path", ".")), false, "1001 entries", "801 more", "f0198\n", `"a\nforged entry"`, "!\nforged")
}
