package worktree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// picture is everything in a folder: path, mode and content.
func picture(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			content = string(data)
		}
		rel, _ := filepath.Rel(dir, path)
		all[rel] = info.Mode().String() + " " + content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func samePicture(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%q is missing", name)
		} else if g != w {
			t.Errorf("%q is %q, want %q", name, g, w)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%q is left over", name)
		}
	}
}

// TestRestore wrecks the worktree after each change of the table and wants it back.
func TestRestore(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, project)
	wreck := []step{
		remove("a"), put("README.md", "wrecked\n"), put("junk/deep/x", "x"), put("main.go.orig", "x"), mode("run.sh", 0o600),
		remove("link"), put("link/inside", "x"), put("vendor/v.txt", "wrecked"), put("n", "-> /etc"), remove("keep.log"),
	}
	for _, test := range changes {
		if test.name == "named pipe" {
			continue // cannot be made again, and never reaches a test run
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tree := checkedOut(t, repo)
			steps(t, tree.Dir(), test.setup)
			begin(t, tree)
			steps(t, tree.Dir(), test.agent)
			c := change(t, tree)
			if r, err := tree.Restore(t.Context(), c); err != nil || len(r.Altered)+len(r.Tracked)+len(r.Removed)+len(r.Left) != 0 {
				t.Fatalf("nothing to restore, yet %+v %v", r, err)
			}
			want := picture(t, tree.Dir())
			for _, s := range wreck {
				if _, err := os.Lstat(filepath.Join(tree.Dir(), "n")); err == nil && strings.Contains(test.name, "new folder") {
					_ = os.RemoveAll(filepath.Join(tree.Dir(), "n"))
				}
				s(t, tree.Dir())
			}
			r, err := tree.Restore(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			got := picture(t, tree.Dir())
			for _, ignored := range []string{"a/local", "a/node_modules", "a/node_modules/m", "a/node_modules/m/i.js"} {
				delete(want, ignored) // went with their folder; Restore leaves ignored paths alone
			}
			samePicture(t, got, want)
			if len(r.Left) > 0 || !slices.Contains(r.Removed, "main.go.orig") {
				t.Errorf("%+v", r)
			}
			if again := change(t, tree); again.Tree != c.Tree || !slices.Equal(summary(again), summary(c)) {
				t.Errorf("the change afterwards: %q", summary(again))
			}
		})
	}
}

func TestRestoreReports(t *testing.T) {
	t.Parallel()
	tree := checkedOut(t, repoWith(t, project))
	write(t, tree.Dir(), map[string]string{"large": strings.Repeat("x", keepAtBegin+1)})
	begin(t, tree)
	write(t, tree.Dir(), map[string]string{"main.go": "package agent\n", "new": "n\n"})
	c := change(t, tree)
	write(t, tree.Dir(), map[string]string{
		"main.go": "package test\n", "README.md": "test\n", "coverage.out": "c", "x.log": "ignored", "large": "small",
	})
	steps(t, tree.Dir(), []step{remove("new")})
	r, err := tree.Restore(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", *r)
	if want := "{Altered:[main.go new] Tracked:[README.md] Removed:[coverage.out] Left:[large]}"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if data, err := tree.ReadFile("x.log"); err != nil || string(data) != "ignored" {
		t.Errorf("ignored file: %q %v", data, err)
	}
}

// TestPlantedLinks has a command put links where Restore will write: nothing outside may change.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, map[string]string{"c.txt": "outside\n", "b/c.txt": "outside\n", "victim": "outside\n"})
	before := picture(t, outside)
	tree := begun(t, project)
	write(t, tree.Dir(), map[string]string{"a/b/c.txt": "judged\n", "x/y/z": "judged\n"})
	c := change(t, tree)
	want := picture(t, tree.Dir())
	steps(t, tree.Dir(), []step{
		remove("a"), put("a", "-> "+outside), remove("x"), put("x/y", "-> "+outside),
		put("main.go", "-> "+outside+"/victim"), put("planted", "-> "+outside),
	})
	if got := summary(change(t, tree)); !slices.Contains(got, "added symlink a") || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "planted/") }) {
		t.Errorf("a planted link was followed: %q", got)
	}
	r, err := tree.Restore(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	samePicture(t, picture(t, tree.Dir()), want)
	samePicture(t, picture(t, outside), before)
	if !slices.Contains(r.Altered, "a/b/c.txt") || !slices.Contains(r.Removed, "planted") {
		t.Errorf("%+v", r)
	}
	if err := os.Link(filepath.Join(outside, "victim"), filepath.Join(tree.Dir(), "hard")); err != nil {
		t.Fatal(err)
	}
	if err := tree.WriteFile("hard", []byte("written\n")); err != nil {
		t.Fatal(err)
	}
	samePicture(t, picture(t, outside), before)
}

func TestPutBack(t *testing.T) {
	t.Parallel()
	tree := checkedOut(t, repoWith(t, project))
	write(t, tree.Dir(), map[string]string{"main.go": "package setup\n", "vendor/v": "v"})
	begin(t, tree)
	before := picture(t, tree.Dir())
	steps(t, tree.Dir(), []step{
		put("main.go", "package agent\n"), put(".git/config", "x"), put("s/.git", "x"), put("s/f", "f"), put("README.md", "-> /etc/passwd"),
		remove("a/b"), put("keep", "kept\n"), fifo("pipe"), put("vendor/v", "w"), put("vendor/w", "w"),
	})
	if err := tree.PutBack(t.Context(), []string{"main.go", ".git", "s/.git", "s/f", "README.md", "a/b/c.txt", "pipe", "vendor"}); err != nil {
		t.Fatal(err)
	}
	got := picture(t, tree.Dir())
	delete(got, "keep")
	delete(got, "s")
	samePicture(t, got, before)
	if c := change(t, tree); !slices.Equal(summary(c), []string{"added file keep"}) {
		t.Errorf("%q", summary(c))
	}
	if err := tree.PutBack(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestUnreadable takes the owner's rights away; as root nothing is unreadable, so there it
// only checks that modes come back.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	before := picture(t, tree.Dir())
	write(t, tree.Dir(), map[string]string{"hidden/x": "x\n"})
	steps(t, tree.Dir(), []step{put("main.go", "package p\n"), mode("main.go", 0), mode("a/b", 0), mode("a", 0), mode("hidden", 0)})
	c := change(t, tree)
	if got := summary(c); !slices.Equal(got, []string{"added file hidden/x", "modified file main.go"}) {
		t.Fatalf("%q", got)
	}
	steps(t, tree.Dir(), []step{mode("hidden", 0)})
	if err := tree.PutBack(t.Context(), []string{"hidden", "main.go", "a"}); err != nil {
		t.Fatal(err)
	}
	samePicture(t, picture(t, tree.Dir()), before)
}

// TestDeep nests folders beyond what a snapshot looks into, and beyond PATH_MAX.
func TestDeep(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	before := picture(t, tree.Dir())
	at, err := unix.Open(tree.Dir(), unix.O_DIRECTORY|unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 1200 {
		if err := unix.Mkdirat(at, "deeper", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "deeper", unix.O_DIRECTORY|unix.O_RDONLY, 0)
		_ = unix.Close(at)
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	_ = unix.Close(at)
	c := change(t, tree)
	if len(c.Files) != 1 || c.Files[0].New.Kind != KindOther || !strings.HasPrefix(c.Files[0].Path, "deeper/deeper/") {
		t.Fatalf("%q", summary(c))
	}
	if _, err := tree.CommitChange(c, someone, "m"); err == nil {
		t.Error("a commit was made of it")
	}
	r, err := tree.Restore(t.Context(), &Change{})
	if err != nil || len(r.Removed) != 1 {
		t.Fatal(r, err)
	}
	samePicture(t, picture(t, tree.Dir()), before)
}

func TestManyFiles(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	for i := range 20_000 {
		if err := os.WriteFile(filepath.Join(tree.Dir(), fmt.Sprintf("f%05d", i)), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := change(t, tree)
	if len(c.Files) != 20_000 || c.Lines() != 20_000 {
		t.Fatalf("%d files, %d lines", len(c.Files), c.Lines())
	}
	if r, err := tree.Restore(t.Context(), &Change{}); err != nil || len(r.Removed) != 20_000 {
		t.Fatal(err)
	}
	if c := change(t, tree); len(c.Files) != 0 {
		t.Errorf("%d files are left", len(c.Files))
	}
}

// TestTooLarge changes a file beyond what is kept: known by its hash, refused in a commit.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	write(t, tree.Dir(), map[string]string{"large": strings.Repeat("line\n", keepFile/5+1)})
	c := change(t, tree)
	if len(c.Files) != 1 || !c.Files[0].Binary || c.Tree != gitTree(t, tree) {
		t.Fatalf("%+v", c.Files)
	}
	if _, err := tree.CommitChange(c, someone, "m"); err == nil || !strings.Contains(err.Error(), "large") {
		t.Errorf("commit: %v", err)
	}
	if _, err := tree.Restore(t.Context(), c); err != nil {
		t.Errorf("nothing to restore: %v", err)
	}
	steps(t, tree.Dir(), []step{remove("large")})
	if _, err := tree.Restore(t.Context(), c); err == nil || !strings.Contains(err.Error(), "large") {
		t.Errorf("restore: %v", err)
	}
}

// TestMoreThanIsKept makes more than is kept of a change: it is known all the same, with what was kept first or not.
func TestMoreThanIsKept(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	write(t, tree.Dir(), map[string]string{"aa": "x\n", "huge": strings.Repeat("line\n", keepFile/5+1), "z": "x\n"})
	if c := change(t, tree); len(c.Files) != 3 || c.Files[0].Added != 1 || c.Files[2].Added != 1 {
		t.Errorf("one large file hides the lines of the others: %+v", c.Files)
	}
	for i := range keepChange/keepFile + 1 {
		write(t, tree.Dir(), map[string]string{fmt.Sprint("large", i): strings.Repeat("line\n", keepFile/5)})
	}
	c := change(t, tree)
	if len(c.Files) != 3+keepChange/keepFile+1 || c.Tree != gitTree(t, tree) {
		t.Errorf("%d files, tree %s", len(c.Files), c.Tree)
	}
	if _, err := tree.CommitChange(c, someone, "m"); err == nil || !strings.Contains(err.Error(), "read at once") {
		t.Errorf("commit: %v", err)
	}
}

// TestHugeSparseFile makes a file of a tebibyte that takes no room: it must be noticed without being read.
func TestHugeSparseFile(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	file := filepath.Join(tree.Dir(), "sparse")
	write(t, tree.Dir(), map[string]string{"sparse": ""})
	if err := os.Truncate(file, 1<<40); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := tree.Change(ctx)
	if err != nil || len(c.Files) != 1 || c.Files[0].New.Size != 1<<40 || !c.Files[0].Binary {
		t.Fatalf("%+v, %v", c, err)
	}
	if again := change(t, tree); again.Tree != c.Tree {
		t.Error("a second look differs")
	}
	if err := os.Truncate(file, 1<<41); err != nil {
		t.Fatal(err)
	}
	if later := change(t, tree); later.Tree == c.Tree {
		t.Error("another size went unnoticed")
	}
	if r, err := tree.Restore(ctx, &Change{}); err != nil || len(r.Removed) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestClosedTop takes the permissions of the worktree's own folder away.
func TestClosedTop(t *testing.T) {
	t.Parallel()
	tree := begun(t, project)
	write(t, tree.Dir(), map[string]string{"new": "x\n"})
	if err := os.Chmod(tree.Dir(), 0); err != nil {
		t.Fatal(err)
	}
	if c := change(t, tree); len(c.Files) != 1 {
		t.Errorf("%+v", c.Files)
	}
}
