package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var project = map[string]string{
	"README.md": "# Project\n", "main.go": "package main\n\nfunc main() {\n}\n", "run.sh": "+x #!/bin/sh\n",
	"link": "-> main.go", "a/b/c.txt": "one\ntwo\nthree\n", "a/d.txt": "d", "empty": "",
	".gitignore": "*.log\n/build/\nnode_modules/\n!keep.log\n", "a/.gitignore": "local\n",
	"build/tracked.txt": "in an ignored folder\n", "data.bin": "\x00\x01\x02",
}

// run does things to a worktree as a command would.
type step func(t *testing.T, dir string)

func put(name, content string) step {
	return func(t *testing.T, dir string) { write(t, dir, map[string]string{name: content}) }
}

func remove(name string) step {
	return func(t *testing.T, dir string) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func mode(name string, perm os.FileMode) step {
	return func(t *testing.T, dir string) {
		if err := os.Chmod(filepath.Join(dir, name), perm); err != nil {
			t.Fatal(err)
		}
	}
}

func mkdir(name string) step {
	return func(t *testing.T, dir string) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func fifo(name string) step {
	return func(t *testing.T, dir string) {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// changes is one table for what a change is, what its tree is, and that its patch and the
// way back work: see the tests that range over it.
var changes = []struct {
	name  string
	setup []step
	agent []step
	want  []string // summary
	odd   bool     // holds what git cannot: no tree of git's to compare with
}{
	{name: "nothing"},
	{name: "edit", agent: []step{put("main.go", "package main\n\nfunc main() { run() }\n")}, want: []string{"modified file main.go"}},
	{name: "edit of the same length", agent: []step{put("a/b/c.txt", "one\ntwO\nthree\n")}, want: []string{"modified file a/b/c.txt"}},
	{name: "touched only", agent: []step{put("main.go", project["main.go"])}},
	{name: "new file in a new folder", agent: []step{put("n/e/w.txt", "w\n")}, want: []string{"added file n/e/w.txt"}},
	{name: "new empty file and folder", agent: []step{put("none", ""), mkdir("void/void")}, want: []string{"added file none"}},
	{name: "deleted", agent: []step{remove("a/b"), remove("empty")}, want: []string{"deleted file a/b/c.txt", "deleted file empty"}},
	{
		name: "file becomes folder, folder becomes file", agent: []step{remove("a/d.txt"), put("a/d.txt/x", "x\n"), remove("a/b"), put("a/b", "b\n")},
		want: []string{"added file a/b", "deleted file a/b/c.txt", "deleted file a/d.txt", "added file a/d.txt/x"},
	},
	{
		name: "link becomes file, file becomes link", agent: []step{put("link", "text\n"), put("main.go", "-> README.md")},
		want: []string{"modified file link", "modified symlink main.go"},
	},
	{name: "link to nowhere and to a loop", agent: []step{put("l1", "-> l2"), put("l2", "-> l1"), put("l3", "-> /nowhere/at/all")}, want: []string{"added symlink l1", "added symlink l2", "added symlink l3"}},
	{name: "link retargeted", agent: []step{put("link", "-> README.md")}, want: []string{"modified symlink link"}},
	{name: "executable bit", agent: []step{mode("main.go", 0o755), mode("run.sh", 0o644)}, want: []string{"modified executable main.go", "modified file run.sh"}},
	{name: "other modes do not count", agent: []step{mode("main.go", 0o600), mode("run.sh", 0o700)}},
	{name: "ignored", agent: []step{put("x.log", "x"), put("build/out", "o"), put("a/node_modules/m/i.js", "i"), put("a/local", "l"), put("keep.log", "k\n")}, want: []string{"added file keep.log"}},
	{name: "tracked file in an ignored folder", agent: []step{put("build/tracked.txt", "new\n")}, want: []string{"modified file build/tracked.txt"}},
	{name: "ignore rules are the base's", agent: []step{put(".gitignore", "*\n"), put("new.txt", "n\n"), put("sub/.gitignore", "*\n")}, want: []string{"modified file .gitignore", "added file new.txt", "added file sub/.gitignore"}, odd: true},
	{name: "no newline at end", agent: []step{put("a/d.txt", "dd"), put("a/b/c.txt", "one\ntwo\nthree")}, want: []string{"modified file a/b/c.txt", "modified file a/d.txt"}},
	{name: "binary", agent: []step{put("data.bin", "\x00\x02"), put("new.bin", "a\x00b")}, want: []string{"modified file data.bin", "added file new.bin"}},
	{
		name: "weird names", agent: []step{
			put("new\nline", "n\n"), put("tab\tand \"quote\"\\", "q\n"), put("bad\xff\xfeutf8", "u\n"), put("ünï cödé", "ü\n"), put(" lead and trail ", "s\n"),
			put(strings.Repeat("d", 200)+"/"+strings.Repeat("f", 255), "long\n"), put("-dash", "-\n"),
		},
		want: []string{
			"added file  lead and trail ", "added file -dash", "added file bad\xff\xfeutf8", "added file " + strings.Repeat("d", 200) + "/" + strings.Repeat("f", 255),
			"added file new\nline", "added file tab\tand \"quote\"\\", "added file ünï cödé",
		},
	},
	{
		name:  "setup's files are not the agent's",
		setup: []step{put("vendor/v.txt", "v\n"), put("main.go", "package setup\n"), remove("empty")},
		agent: []step{put("vendor/v.txt", "changed\n"), put("vendor/mine.txt", "m\n"), put("README.md", "# New\n")},
		want:  []string{"modified file README.md", "added file vendor/mine.txt"},
		odd:   true,
	},
	{
		name:  "setup's file touched by the agent",
		setup: []step{put("main.go", "package setup\n")},
		agent: []step{put("main.go", "package setup\n\nfunc agent() {}\n")},
		want:  []string{"modified file main.go"},
	},
	{name: "agent takes setup's edit back", setup: []step{put("main.go", "package setup\n")}, agent: []step{put("main.go", project["main.go"])}},
	{name: "setup deleted, agent made it again", setup: []step{remove("empty"), remove("a/b")}, agent: []step{put("empty", ""), put("a/b/c.txt", "one\n")}, want: []string{"modified file a/b/c.txt"}},
	{name: "repository appears", agent: []step{put(".git/config", "c"), put("sub/.GIT", "gitdir: x"), put("sub/x", "x\n")}, want: []string{"added repository .git", "added repository sub/.GIT", "added file sub/x"}, odd: true},
	{name: "repository that setup made", setup: []step{put("v/.git/config", "c"), put("v/x", "x")}, agent: []step{put("v/.git/config", "d")}, odd: true},
	{name: "named pipe", agent: []step{fifo("pipe"), remove("main.go"), fifo("main.go")}, want: []string{"modified other main.go", "added other pipe"}, odd: true},
}

func steps(t *testing.T, dir string, list []step) {
	t.Helper()
	for _, s := range list {
		s(t, dir)
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, project)
	for _, test := range changes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tree := checkedOut(t, repo)
			steps(t, tree.Dir(), test.setup)
			begin(t, tree)
			if c := change(t, tree); len(c.Files) != 0 {
				t.Fatalf("a change before anything was done: %q", summary(c))
			}
			steps(t, tree.Dir(), test.agent)
			c := change(t, tree)
			if got := summary(c); !slices.Equal(got, test.want) {
				t.Fatalf("change:\n got %q\nwant %q", got, test.want)
			}
			if !test.odd {
				if want := gitTree(t, tree); c.Tree != want {
					t.Errorf("tree %s, git says %s", c.Tree, want)
				}
			}
			if again := change(t, tree); !slices.Equal(summary(again), test.want) || again.Tree != c.Tree {
				t.Errorf("a second look differs: %q", summary(again))
			}
		})
	}
}

// TestPatch lets the real git apply every change's patch to the base commit.
func TestPatch(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, project)
	for _, test := range changes {
		if test.odd || test.name == "binary" {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tree := checkedOut(t, repo)
			steps(t, tree.Dir(), test.setup)
			begin(t, tree)
			steps(t, tree.Dir(), test.agent)
			c := change(t, tree)
			patch, err := tree.Patch(c)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Files) == 0 {
				if patch != "" {
					t.Errorf("patch of nothing: %q", patch)
				}
				return
			}
			clone := filepath.Join(t.TempDir(), "clone")
			git(t, repo, "clone", "-q", repo, clone)
			gitIn(t, clone, patch, "apply", "--index", "--whitespace=nowarn")
			if got := git(t, clone, "write-tree"); got != c.Tree {
				t.Errorf("the patched tree is %s, the change's %s\n%s", got, c.Tree, patch)
			}
		})
	}
}

func TestLineCounts(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	write(t, tree.Dir(), map[string]string{
		"a/b/c.txt": "one\n2\nthree\nfour\n", "new": "1\n2\n3", "data.bin": "\x00", "link": "-> x",
	})
	steps(t, tree.Dir(), []step{remove("main.go")})
	want := map[string][2]int{"a/b/c.txt": {2, 1}, "new": {3, 0}, "main.go": {0, 4}, "data.bin": {0, 0}, "link": {1, 1}}
	c := change(t, tree)
	total := 0
	for _, f := range c.Files {
		if got := [2]int{f.Added, f.Removed}; got != want[f.Path] {
			t.Errorf("%s: %v, want %v", f.Path, got, want[f.Path])
		}
		if f.Binary != (f.Path == "data.bin") {
			t.Errorf("%s: binary %v", f.Path, f.Binary)
		}
		total += f.Added + f.Removed
	}
	if len(c.Files) != len(want) || c.Lines() != total {
		t.Errorf("%d files, %d lines", len(c.Files), c.Lines())
	}
	i := slices.IndexFunc(c.Files, func(f File) bool { return f.Path == "a/b/c.txt" })
	lines, err := tree.AddedLines(c.Files[i])
	if err != nil || !slices.Equal(lines, []Line{{2, "2"}, {4, "four"}}) {
		t.Errorf("added lines %v %v", lines, err)
	}
}

// TestHardLinks sees that a new name for an old file is told apart from a file of its own.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, filepath.Dir(outside), map[string]string{"outside": "secret\n"})
	if err := os.Link(outside, filepath.Join(tree.Dir(), "name")); err != nil {
		t.Fatal(err)
	}
	c := change(t, tree)
	if len(c.Files) != 1 || c.Files[0].New.HardLinks != 2 {
		t.Fatalf("%+v", c.Files)
	}
}

// TestContentsAreKept judges, alters the disk, and commits what was judged.
func TestContentsAreKept(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	write(t, tree.Dir(), map[string]string{"new": "judged\n", "main.go": "package judged\n"})
	c := change(t, tree)
	write(t, tree.Dir(), map[string]string{"new": "altered\n", "main.go": "package altered\n"})
	hash, err := tree.CommitChange(c, someone, "Fix")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"new": "judged\n", "main.go": "package judged\n"} {
		if got, err := tree.repo.ReadFile(hash, name); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if data, err := tree.Content(c.Files[1].New); err != nil || string(data) != "judged\n" {
		t.Errorf("content %q %v", data, err)
	}
}

// TestRacy changes files within the resolution of their times, many times over.
func TestRacy(t *testing.T) {
	t.Parallel()
	tree := checkedOut(t, repoWith(t, map[string]string{"f": "aaaa", "g": "aaaa"}))
	path := filepath.Join(tree.Dir(), "f")
	for i := range 100 {
		overwrite(t, path, "aaaa")
		begin(t, tree)
		overwrite(t, path, "bbbb")
		if c := change(t, tree); len(c.Files) != 1 {
			t.Fatalf("round %d: the second write went unnoticed", i)
		}
		overwrite(t, path, "aaaa")
		if c := change(t, tree); len(c.Files) != 0 {
			t.Fatalf("round %d: the third write went unnoticed", i)
		}
		begin(t, tree)
		put("new", "n")(t, tree.Dir())
		if c := change(t, tree); len(c.Files) != 1 {
			t.Fatalf("round %d: a new name went unnoticed", i)
		}
		remove("new")(t, tree.Dir())
		if c := change(t, tree); len(c.Files) != 0 {
			t.Fatalf("round %d: a removed name went unnoticed", i)
		}
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
