package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOpenForms(t *testing.T) {
	t.Parallel()
	source := repoWith(t, project)
	commit := head(t, source)
	for _, test := range []struct {
		name   string
		make   func(t *testing.T, dir string) string // returns the folder to open
		branch string
	}{
		{"normal", func(*testing.T, string) string { return source }, "main"},
		{"subfolder", func(*testing.T, string) string { return filepath.Join(source, "a", "b") }, "main"},
		{"git folder", func(*testing.T, string) string { return filepath.Join(source, ".git") }, "main"},
		{"packed", func(t *testing.T, dir string) string {
			git(t, dir, "clone", "-q", "--no-hardlinks", source, "c")
			git(t, dir+"/c", "gc", "-q", "--prune=now")
			git(t, dir+"/c", "pack-refs", "--all")
			return dir + "/c"
		}, "main"},
		{"bare", func(t *testing.T, dir string) string {
			git(t, dir, "clone", "-q", "--bare", source, "c.git")
			return dir + "/c.git"
		}, "main"},
		{"linked worktree", func(t *testing.T, dir string) string {
			git(t, dir, "clone", "-q", source, "c")
			git(t, dir+"/c", "worktree", "add", "-q", "-b", "other", dir+"/linked")
			return dir + "/linked/a"
		}, "other"},
		{"alternates", func(t *testing.T, dir string) string {
			git(t, dir, "clone", "-q", "--shared", source, "c")
			return dir + "/c"
		}, "main"},
		{"alternates of alternates", func(t *testing.T, dir string) string {
			git(t, dir, "clone", "-q", "--shared", source, "c")
			git(t, dir, "clone", "-q", "--shared", "c", "d")
			return dir + "/d"
		}, "main"},
		{"as actions/checkout does it", func(t *testing.T, dir string) string {
			git(t, dir, "init", "-q", "-b", "master", "c")
			git(t, dir+"/c", "remote", "add", "origin", "file://"+source)
			git(t, dir+"/c", "-c", "protocol.version=2", "fetch", "-q", "--no-tags", "--prune", "--depth=1", "origin", "+"+commit+":refs/remotes/origin/main")
			git(t, dir+"/c", "checkout", "-q", "--progress", "--force", "-B", "main", "refs/remotes/origin/main")
			return dir + "/c"
		}, "main"},
		{"detached and shallow", func(t *testing.T, dir string) string {
			git(t, dir, "init", "-q", "c")
			git(t, dir+"/c", "fetch", "-q", "--depth=1", "file://"+source, commit)
			git(t, dir+"/c", "checkout", "-q", "--detach", "FETCH_HEAD")
			return dir + "/c"
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := test.make(t, t.TempDir())
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			before := picture(t, r.layout.gitDir)
			if h, err := r.Head(); err != nil || h != (Head{commit, test.branch}) {
				t.Errorf("head %+v %v", h, err)
			}
			if data, err := r.ReadFile(commit, "a/b/c.txt"); err != nil || string(data) != project["a/b/c.txt"] {
				t.Errorf("file %q %v", data, err)
			}
			if info, err := r.Commit(commit); err != nil || info.Message != "base\n" || info.Author.Name != "a" {
				t.Errorf("commit %+v %v", info, err)
			}
			tree := checkedOut(t, dir)
			begin(t, tree)
			write(t, tree.Dir(), map[string]string{"new": "n"})
			if c := change(t, tree); c.Tree != gitTree(t, tree) {
				t.Errorf("tree %s", c.Tree)
			}
			samePicture(t, picture(t, r.layout.gitDir), before)
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "--object-format=sha256", "sha256")
	git(t, dir, "init", "-q", "empty")
	source := repoWith(t, project)
	git(t, source, "config", "uploadpack.allowFilter", "true")
	git(t, dir, "clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+source, "blobless")
	git(t, dir, "init", "-q", "reftable")
	git(t, dir+"/reftable", "config", "core.repositoryformatversion", "1")
	git(t, dir+"/reftable", "config", "extensions.refstorage", "reftable")

	var unsupported *UnsupportedError
	for _, name := range []string{"sha256", "reftable"} {
		if _, err := Open(filepath.Join(dir, name)); !errors.As(err, &unsupported) || unsupported.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not in a git repository") {
		t.Errorf("no repository: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	r, err := Open(filepath.Join(dir, "empty"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Head(); !errors.Is(err, ErrNoCommits) {
		t.Errorf("empty: %v", err)
	}
	if r, err = Open(filepath.Join(dir, "blobless")); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "tree")
	if _, err := r.Checkout(t.Context(), head(t, source), to, Options{}); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "filter") {
		t.Errorf("blobless: %v", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed checkout stays: %v", err)
	}
}

func TestBranches(t *testing.T) {
	t.Parallel()
	source := repoWith(t, project)
	base := head(t, source)
	git(t, source, "branch", "feature/x")
	git(t, source, "tag", "v1")
	git(t, source, "commit", "-q", "--allow-empty", "-m", "two")
	dir := t.TempDir()
	git(t, dir, "clone", "-q", source, "c")
	git(t, dir+"/c", "checkout", "-q", "-b", "mine", base)
	r, err := Open(dir + "/c")
	if err != nil {
		t.Fatal(err)
	}
	for commit, want := range map[string][]string{base: {"feature/x", "mine"}, head(t, source): {"main"}, strings.Repeat("1", 40): nil} {
		if got, err := r.Branches(commit); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q %v, want %q", commit, got, err, want)
		}
	}
	for _, name := range []string{"none", "a", "a/b/c.txt/d", "", "/", "../x", "a/.."} {
		if _, err := r.ReadFile(base, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := r.Commit("HEAD"); err == nil {
		t.Error("HEAD is no hash")
	}
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	repo := repoWith(t, map[string]string{
		"big.psd": pointer, "fake": "x" + pointer, ".gitattributes": "*.txt eol=crlf filter=evil\n", "a.txt": "one\n", "run": "+x #!\n",
		"out": "-> /etc/passwd", "deep/in": "-> ../../..", "large": strings.Repeat("0123456789abcdef", 1<<16+1),
	})
	git(t, repo, "config", "filter.evil.smudge", "touch "+repo+"/pwned")
	gitIn(t, repo, "160000 "+strings.Repeat("1", 40)+" 0\tsub/module\n", "update-index", "--index-info")
	git(t, repo, "commit", "-q", "-m", "module")
	write(t, repo, map[string]string{"untracked": "u"})
	tree := checkedOut(t, repo)
	clean := picture(t, tree.Dir())
	got := clean
	for name, want := range map[string]string{
		"a.txt": "-rw-r--r-- one\n", "run": "-rwxr-xr-x #!\n", "out": "Lrwxrwxrwx /etc/passwd", "deep/in": "Lrwxrwxrwx ../../..",
		"sub/module": "drwxr-xr-x ", ".": "drwx------ ", "deep": "drwxr-xr-x ", "large": "-rw-r--r-- " + strings.Repeat("0123456789abcdef", 1<<16+1),
	} {
		if got[name] != want {
			t.Errorf("%s: %.80q, want %.80q", name, got[name], want)
		}
	}
	for _, name := range []string{".git", "untracked"} {
		if _, ok := got[name]; ok {
			t.Errorf("%s is there", name)
		}
	}
	if _, err := os.Stat(repo + "/pwned"); err == nil {
		t.Error("a filter ran")
	}
	if !slices.Equal(tree.LFS(), []string{"big.psd"}) || !slices.Equal(tree.Submodules(), []string{"sub/module"}) {
		t.Errorf("LFS %q, submodules %q", tree.LFS(), tree.Submodules())
	}
	if _, err := tree.repo.Checkout(t.Context(), tree.Base(), tree.Dir(), Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a folder with files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(tree.Dir(), "a.txt")); err != nil {
		t.Error("the refused checkout took files away")
	}

	begin(t, tree)
	if c := change(t, tree); len(c.Files) != 0 {
		t.Errorf("%q", summary(c))
	}
	write(t, tree.Dir(), map[string]string{"sub/module/file": "f\n", "sub/module/g": "g\n"})
	c := change(t, tree)
	if got := summary(c); !slices.Equal(got, []string{"modified repository sub/module"}) {
		t.Fatalf("filled submodule: %q", got)
	}
	if _, err := tree.CommitChange(c, someone, "m"); err == nil {
		t.Error("a filled submodule was committed")
	}
	if err := tree.PutBack(t.Context(), []string{"sub/module"}); err != nil {
		t.Fatal(err)
	}
	if c := change(t, tree); len(c.Files) != 0 {
		t.Errorf("%q", summary(c))
	}
	steps(t, tree.Dir(), []step{remove("sub"), put("sub", "file\n")})
	c = change(t, tree)
	if got := summary(c); !slices.Equal(got, []string{"added file sub", "deleted submodule sub/module"}) || c.Tree != gitTree(t, tree) {
		t.Errorf("removed submodule: %q", got)
	}
	if _, err := tree.Restore(t.Context(), &Change{}); err != nil {
		t.Fatal(err)
	}
	samePicture(t, picture(t, tree.Dir()), clean)
}

// TestHostileTrees are commits that must not reach the disk.
func TestHostileTrees(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, map[string]string{"x": "x\n"})
	blob := git(t, repo, "rev-parse", "HEAD:x")
	tree := git(t, repo, "rev-parse", "HEAD^{tree}")
	deep := tree
	for range maxDepth + 1 {
		deep = gitIn(t, repo, "040000 tree "+deep+"\td\n", "mktree")
	}
	entry := func(names ...string) string {
		var in strings.Builder
		for _, name := range names {
			fmt.Fprintf(&in, "100644 blob %s\t%s\x00", blob, name)
		}
		return gitIn(t, repo, in.String(), "mktree", "-z")
	}
	trees := map[string]string{
		"too deep": deep, "long name": entry(strings.Repeat("n", 256)),
		"twice":           gitIn(t, repo, "100644 blob "+blob+"\ta\n120000 blob "+blob+"\ta\n", "mktree"),
		"folder and link": gitIn(t, repo, "120000 blob "+blob+"\ta\n040000 tree "+tree+"\ta\n", "mktree"),
		".git folder":     gitIn(t, repo, "040000 tree "+tree+"\t.git\n", "mktree"),
		"dot dot folder":  gitIn(t, repo, "040000 tree "+tree+"\t..\n", "mktree"),
	}
	for _, name := range []string{".git", ".GIT", ".GiT", "..", ".", "git~1", "GIT~1", ".git ", ".git.", ".git . .", ".git::$INDEX_ALLOCATION", ".g\u200cit", ".git\ufeff", `a\..\b`, `..\x`, `sub\.git`} {
		trees[name] = entry(name)
	}
	r, err := Open(repo)
	if err != nil {
		t.Fatal(err)
	}
	for name, hash := range trees {
		commit := git(t, repo, "commit-tree", "-m", "hostile", hash)
		to := filepath.Join(t.TempDir(), "tree")
		if made, err := r.Checkout(t.Context(), commit, to, Options{}); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%q: %v", name, err)
			if made != nil {
				_ = made.Close()
			}
		}
		if _, err := os.Lstat(to); err == nil {
			t.Errorf("%q: something was written", name)
		}
	}
	for _, name := range []string{".gitignore", ".github", "git", ".git2", "...", "a..b", `a\b`, "new\nline", "\xff", "git~2"} {
		if err := checkName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestChown(t *testing.T) {
	t.Parallel()
	to := Options{UID: 12345, GID: 23456, Chown: true}
	if os.Getuid() != 0 { // who may give files to themselves only
		to.UID, to.GID = os.Getuid(), os.Getgid()
	}
	repo := repoWith(t, project)
	r, err := Open(repo)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Checkout(t.Context(), head(t, repo), filepath.Join(t.TempDir(), "tree"), to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	begin(t, tree)
	for _, name := range []string{"main.go", "new/folder/file"} {
		if err := tree.WriteFile(name, []byte("w \n")); err != nil {
			t.Fatal(err)
		}
	}
	c := change(t, tree)
	if c, err = tree.Normalise(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	steps(t, tree.Dir(), []step{remove("a"), remove("new"), put("link", "x")})
	if _, err := tree.Restore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(tree.Dir(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if uid, gid := owner(t, path); int(uid) != to.UID || int(gid) != to.GID {
			t.Errorf("%s belongs to %d:%d", path, uid, gid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRepackedMeanwhile has git repack the repository while it is open, as its automatic gc does after a commit or fetch.
func TestRepackedMeanwhile(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, project)
	r := opened(t, repo)
	for i := range 3 { // loose objects into a pack, then one pack into another
		write(t, repo, map[string]string{"more": fmt.Sprint(i)})
		git(t, repo, "add", "-A")
		git(t, repo, "commit", "-q", "-m", "more")
		git(t, repo, "repack", "-q", "-a", "-d")
		git(t, repo, "prune-packed", "-q")
		tree, err := r.Checkout(t.Context(), head(t, repo), filepath.Join(t.TempDir(), "tree"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(r.folders[0].known()); n != 1 {
		t.Errorf("%d packs are known", n)
	}
	if _, err := r.Commit(strings.Repeat("1", 40)); err == nil {
		t.Error("an object that is nowhere was found")
	}
}
