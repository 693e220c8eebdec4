package worktree

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func owner(t *testing.T, path string) (uid, gid uint32) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return st.Uid, st.Gid
}

func TestReadAndWrite(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "s"})
	write(t, tree.Dir(), map[string]string{"leak": "-> " + outside + "/secret", "way": "-> " + outside, "up": "-> ..", "inner": "-> a/b"})
	steps(t, tree.Dir(), []step{fifo("pipe"), mode("run.sh", 0o751)})

	for _, name := range []string{"leak", "way/secret", "up/x", "../x", "/etc/passwd", "", "a/../../x", "pipe", "a", "none", "nul\x00"} {
		if data, err := tree.ReadFile(name); err == nil {
			t.Errorf("read %q: %q", name, data)
		}
	}
	for _, name := range []string{"leak", "way/new", "up/new", "../new", "/tmp/new", "", "pipe", "a", "main.go/x", "link"} {
		if err := tree.WriteFile(name, []byte("w")); err == nil {
			t.Errorf("wrote %q", name)
		}
	}
	if err := tree.WriteFile("link", nil); err == nil || !strings.Contains(err.Error(), "main.go") {
		t.Errorf("the link's target is not named: %v", err)
	}
	for name, perm := range map[string]os.FileMode{"run.sh": 0o751, "x/y/z": 0o644, "inner/c.txt": 0o644, "./a//d.txt": 0o644} {
		if err := tree.WriteFile(name, []byte("written")); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		info, err := os.Stat(filepath.Join(tree.Dir(), name))
		if err != nil || info.Mode().Perm() != perm {
			t.Errorf("%s: %v %v", name, info, err)
		}
		f, err := tree.OpenFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil || string(data) != "written" {
			t.Errorf("%s: %q %v", name, data, err)
		}
		_ = f.Close()
	}
	write(t, tree.Dir(), map[string]string{"x.log": "ignored", "build/o": "ignored", "new": "n"})
	want := []string{".gitignore", "README.md", "a/.gitignore", "a/b/c.txt", "a/d.txt", "build/tracked.txt", "data.bin", "empty", "main.go", "new", "run.sh", "x/y/z"}
	if got, err := tree.Files(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("files\n got %q %v\nwant %q", got, err, want)
	}
}

func TestNormalise(t *testing.T) {
	t.Parallel()
	tree := begun(t, map[string]string{
		"old.txt": "kept  \nline\nlast\t", "crlf.txt": "one \r\ntwo\r\n", "bin": "\x00  \n", "mode.sh": "+x #!/bin/sh\n",
	})
	write(t, tree.Dir(), map[string]string{
		"old.txt": "kept  \nnew \t \nline\nlast\t", "crlf.txt": "one \r\nadded \t\r\ntwo\r\n  \r\n", "bin": "\x00  \n  \n",
		"new.txt": "a \n\t\nb\x0b \n end  ", "mode.sh": "+x #!/bin/sh  \nrun  \n", "link": "-> to  ",
	})
	c, err := tree.Normalise(t.Context(), change(t, tree))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"old.txt": "kept  \nnew\nline\nlast\t", "crlf.txt": "one \r\nadded\r\ntwo\r\n\r\n", "bin": "\x00  \n  \n",
		"new.txt": "a\n\nb\x0b\n end", "mode.sh": "#!/bin/sh\nrun\n",
	} {
		if data, err := tree.ReadFile(name); err != nil || string(data) != want {
			t.Errorf("%s: %q %v, want %q", name, data, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(tree.Dir(), "mode.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode.sh: %v %v", info.Mode(), err)
	}
	if c.Tree != gitTree(t, tree) {
		t.Error("the change is not what is on disk")
	}
	if again, err := tree.Normalise(t.Context(), c); err != nil || again != c {
		t.Errorf("not done at once: %v", err)
	}
}

func FuzzTrimAdded(f *testing.F) {
	f.Add([]byte("a \nb\n"), []byte("a \nc \nb"))
	f.Add([]byte(""), []byte("\r\n \r\n\t"))
	f.Add([]byte("x\r\n"), []byte("x \r\r\n"))
	f.Add([]byte(""), []byte("\r \ntext")) // must not become a \r\n
	f.Fuzz(func(t *testing.T, before, after []byte) {
		clean := trimAdded(before, after)
		got, want := splitLines(clean), splitLines(after)
		old := map[string]bool{}
		for _, line := range splitLines(before) {
			old[string(line)] = true
		}
		for i, line := range want {
			text, end := cutEnd(line)
			if i >= len(got) {
				if i == len(want)-1 && len(end) == 0 && len(strings.Trim(string(text), " \t")) == 0 {
					return // a last line of blanks alone
				}
				t.Fatalf("line %d is gone", i)
			}
			short, sameEnd := cutEnd(got[i])
			if string(sameEnd) != string(end) || strings.TrimRight(string(text), " \t") != strings.TrimRight(string(short), " \t") {
				t.Fatalf("line %q became %q", line, got[i])
			}
			if n := len(short); n > 0 && !strings.HasSuffix(strings.TrimRight(string(text), " \t"), "\r") && (short[n-1] == ' ' || short[n-1] == '\t') && !old[string(line)] {
				t.Fatalf("blanks are left in %q, which is new", got[i])
			}
		}
		if len(got) > len(want) {
			t.Fatal("lines were added")
		}
	})
}

func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"a", ".git", "..", "git~1", `a\.git`, ".g\u200cit", ".git:x", "a/b", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkName(name) != nil {
			return
		}
		if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") || strings.EqualFold(name, ".git") {
			t.Fatalf("%q passed", name)
		}
		if !filepath.IsLocal(name) {
			t.Fatalf("%q is not local", name)
		}
	})
}

// TestIgnoreAsGit asks git check-ignore about many paths and patterns.
func TestIgnoreAsGit(t *testing.T) {
	t.Parallel()
	patterns := []string{
		"*.log", "!keep.log", "/top", "dir/", "a/b", "/a/*.c", "**/deep", "x/**", "m/**/n", "[abc].t", "[!z]z", "q?", `\#hash`, `\!bang`,
		"# comment", "", "trail  ", `kept\ `, "br{a,b}", "**", "!**/", "!*.*", "foo**bar", "a[", "ends\\", "sp ace", "[[:digit:]]", "/sub/dir/", "*~",
		"**/both/**", "/**/any", "x**/y", "ab*/cd", "ü*", "[a-c]*[0-9]", "*", "!/a/", "/*", "!/m", "literal.txt", "lib*.so",
	}
	paths := []string{
		"x.log", "keep.log", "s/x.log", "top", "s/top", "dir/f", "s/dir/f", "dir", "a/b", "s/a/b", "a/f.c", "a/b/f.c", "deep", "s/deep", "s/deep/f",
		"x/f", "x/y/z", "m/n", "m/1/n", "m/1/2/n", "a.t", "d.t", "yz", "zz", "q1", "q12", "#hash", "!bang", "trail", "trail  ", "kept ", "bra", "br{a,b}",
		"fooxbar", "foo/bar", "a[", `ends\`, "sp ace", "5", "sub/dir/f", "s/sub/dir/f", "f~", "both/f", "s/both/f/g", "any", "s/any", "xx/y", "abx/cd", "über", "b7", "literal.txt", "s/literal.txt", "libx.so", "libx.so.1",
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	for i := range patterns {
		for _, file := range []string{patterns[i], patterns[i] + "\n" + patterns[(i*7+3)%len(patterns)] + "\r\n" + patterns[(i*5+11)%len(patterns)]} {
			write(t, dir, map[string]string{".gitignore": file})
			cmd := exec.Command("git", "check-ignore", "--no-index", "-z", "--stdin")
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(strings.Join(paths, "\x00")+"\x00")
			out, _ := cmd.Output() // exits 1 when nothing is ignored
			want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			r := parseIgnore(nil, "", []byte(file))
			for _, path := range paths {
				if got := ignoredWithFolders(r, path); got != slices.Contains(want, path) {
					t.Errorf("%q with %q: %v", path, file, got)
				}
			}
		}
	}
}

func ignoredWithFolders(r *rules, path string) bool {
	for i := range len(path) {
		if path[i] == '/' && r.ignored(path[:i], true) {
			return true
		}
	}
	return r.ignored(path, false)
}

func FuzzIgnore(f *testing.F) {
	f.Add("*.log\n!a\n/b/**\n[", "b/c")
	f.Fuzz(func(_ *testing.T, file, path string) {
		parseIgnore(nil, "", []byte(file)).ignored(path, false)
	})
}
