package worktree

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// otherUser owns nothing here.
const otherUser = 64646

func always(string) bool { return true }

// history writes one for a tree, with a umask that hides what does not ask to be seen.
func history(t testing.TB, tree *Tree, branch string, reachable func(string) bool) string {
	t.Helper()
	dir := filepath.Join(passable(t), "history")
	if err := tree.WriteHistory(t.Context(), dir, branch, reachable); err != nil {
		t.Fatal(err)
	}
	return dir
}

// passable is a temporary folder that other users can pass through.
func passable(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "history-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reader is the real git on a history, as commands get it: as another user where this one is root.
type reader struct {
	history, top, dir string
	user              *syscall.Credential
}

func (r reader) command(args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_DIR=" + r.history, "GIT_WORK_TREE=" + r.top,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.user}
	return cmd
}

func (r reader) git(t testing.TB, args ...string) string {
	t.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// lentTree is a checkout that commands could work in: theirs, where this user is root, and in a folder they can pass through.
func lentTree(t testing.TB, repo, commit string) (*Tree, reader) {
	t.Helper()
	r := opened(t, repo)
	options, read := Options{}, reader{}
	if os.Getuid() == 0 {
		options = Options{UID: otherUser, GID: otherUser, Chown: true}
		read.user = &syscall.Credential{Uid: otherUser, Gid: otherUser}
	}
	dir := filepath.Join(passable(t), "tree")
	tree, err := r.Checkout(t.Context(), commit, dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	read.top, read.dir = dir, dir
	return tree, read
}

var told = map[string]string{
	"a.txt": "one\ntwo\n", "a/b.txt": "b\n", "a.b/c": "c\n", "a-b": "x\n", "dir/sub/deep.txt": "deep\n", "empty": "",
	"run.sh": "+x #!/bin/sh\n", "link": "-> a.txt", "odd ä\n\"name": "q\n", "ignored.log": "kept\n", ".gitignore": "*.log\n",
	"big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 5\n",
	strings.Repeat("l", 200) + "/" + strings.Repeat("m", 200): "long\n",
}

// twoCommits is a repository with a submodule's entry, a branch and a tag.
func twoCommits(t testing.TB, files map[string]string) string {
	t.Helper()
	repo := repoWith(t, files)
	write(t, repo, map[string]string{"a.txt": "one\n2\n"})
	git(t, repo, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	git(t, repo, "add", "a.txt")
	git(t, repo, "commit", "-q", "-m", "second")
	git(t, repo, "tag", "v1")
	git(t, repo, "branch", "other")
	return repo
}

func TestHistoryAnswersAsACheckoutDoes(t *testing.T) {
	t.Parallel()
	repo := twoCommits(t, told)
	tree, git := lentTree(t, repo, head(t, repo))
	git.history = history(t, tree, "main", linkOnly(repo))
	if out := git.git(t, "status", "--porcelain", "--untracked-files=all"); out != "" {
		t.Errorf("nothing was changed, and git status says\n%s", out)
	}
	if got, want := git.git(t, "ls-files", "-s"), staged(git.git(t, "ls-tree", "-r", "HEAD")); got != want {
		t.Errorf("the index has\n%s\nand the commit\n%s", got, want)
	}
	for _, c := range []struct{ args, want string }{
		{"log --format=%s", "second\nbase"},
		{"rev-parse --abbrev-ref HEAD", "main"},
		{"branch -a", "* main"},
		{"tag", ""},
		{"remote -v", ""},
		{"show HEAD~1:a.txt", "one\ntwo"},
		{"blame -s --abbrev=40 a.txt", "^" + head2(t, repo, "HEAD~1")[:39] + " 1) one"},
		{"diff --stat HEAD~1 HEAD -- a.txt", " a.txt | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)"},
		{"grep -n deep", "dir/sub/deep.txt:1:deep"},
		{"fsck --no-dangling --no-progress", ""},
		{"rev-parse --show-toplevel", git.top},
	} {
		if got := git.git(t, strings.Fields(c.args)...); got != c.want && !strings.HasPrefix(got, c.want+"\n") {
			t.Errorf("git %s:\n%s\nwant\n%s", c.args, got, c.want)
		}
	}
	write(t, git.top, map[string]string{"a.txt": "one\n3\n", "new.txt": "n\n", "x.log": "ignored\n"})
	if err := os.Remove(filepath.Join(git.top, "dir/sub/deep.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(git.top, "a-b"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := " M a-b\n M a.txt\n D dir/sub/deep.txt\n?? new.txt"
	if out := git.git(t, "status", "--porcelain"); out != want {
		t.Errorf("git status says\n%s\nwant\n%s", out, want)
	}
	git.dir = filepath.Join(git.top, "dir")
	if out := git.git(t, "diff", "--name-only", "--relative"); out != "sub/deep.txt" {
		t.Errorf("git diff in a folder: %q", out)
	}
}

// staged turns lines of ls-tree into those of ls-files -s.
func staged(lines string) string {
	var list []string
	for line := range strings.SplitSeq(lines, "\n") {
		info, path, _ := strings.Cut(line, "\t")
		fields := strings.Fields(info)
		list = append(list, fields[0]+" "+fields[2]+" 0\t"+path)
	}
	return strings.Join(list, "\n")
}

func head2(t testing.TB, dir, rev string) string { t.Helper(); return git(t, dir, "rev-parse", rev) }

// linkOnly says of the test's repository, which lies in a folder that is closed to others, what is true.
func linkOnly(repo string) func(string) bool {
	return func(path string) bool { return os.Getuid() != 0 || !strings.HasPrefix(path, repo) }
}

// TestHistoryIsForReading: the other user reads everything, writes nothing, and what is lent are links where links are possible.
func TestHistoryIsForReading(t *testing.T) {
	t.Parallel()
	repo := twoCommits(t, told)
	tree, git := lentTree(t, repo, head(t, repo))
	git.history = history(t, tree, "main", func(string) bool { return false })
	linked := 0
	err := filepath.WalkDir(git.history, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		need := uint32(0o044)
		if d.IsDir() {
			need = 0o055
		}
		if st.Mode&need != need || st.Mode&0o022 != 0 || int(st.Uid) != os.Getuid() {
			t.Errorf("%s has mode %o and owner %d", path, st.Mode, st.Uid)
		}
		if st.Nlink > 1 && !d.IsDir() {
			linked++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if linked == 0 {
		t.Error("objects on the same file system were copied, not linked")
	}
	if git.user == nil {
		return
	}
	for _, args := range [][]string{
		{"-c", "user.name=a", "-c", "user.email=a", "commit", "--allow-empty", "-m", "x"},
		{"branch", "new"},
		{"tag", "new"},
		{"update-index", "--force-remove", "a.txt"},
		{"config", "core.pager", "evil"},
		{"gc"},
		{"checkout", "--", "a.txt"},
		{"reset", "--soft", "HEAD~1"},
	} {
		if out, err := git.command(args...).CombinedOutput(); err == nil {
			t.Errorf("git %v succeeded: %s", args, out)
		}
	}
	if out := git.git(t, "log", "--oneline"); strings.Count(out, "\n") != 1 {
		t.Errorf("the history has changed: %s", out)
	}
}

// TestHistoryLendsWhatIsOpen: folders are borrowed in place when everything in them can be read, and not otherwise.
func TestHistoryLendsWhatIsOpen(t *testing.T) {
	t.Parallel()
	repo := filepath.Join(passable(t), "re\npo \"x")
	if err := os.Rename(twoCommits(t, told), repo); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	tree, git := lentTree(t, repo, head(t, repo))
	git.history = history(t, tree, "main", always)
	if entries, err := filepath.Glob(git.history + "/lent-*"); err != nil || len(entries) != 0 {
		t.Errorf("objects that can be reached were copied: %v %v", entries, err)
	}
	if out := git.git(t, "log", "--format=%s"); out != "second\nbase" {
		t.Errorf("git log: %q", out)
	}
	if git.user == nil {
		return // one's own files can be read
	}
	object := filepath.Join(repo, ".git/objects", head(t, repo)[:2], head(t, repo)[2:])
	if err := os.Chmod(object, 0o400); err != nil {
		t.Fatal(err)
	}
	git.history = history(t, tree, "main", always)
	if out := git.git(t, "log", "--format=%s"); out != "second\nbase" {
		t.Errorf("with an object only its owner can read: %q", out)
	}
}

func TestHistoryOfEveryForm(t *testing.T) {
	t.Parallel()
	source := twoCommits(t, told)
	for name, form := range map[string]func(t *testing.T, into string){
		"packed": func(t *testing.T, into string) {
			git(t, source, "clone", "-q", "file://"+source, into)
			git(t, into, "gc", "-q")
		},
		"shallow":  func(t *testing.T, into string) { git(t, source, "clone", "-q", "--depth=1", "file://"+source, into) },
		"shared":   func(t *testing.T, into string) { git(t, source, "clone", "-q", "--shared", source, into) },
		"bare":     func(t *testing.T, into string) { git(t, source, "clone", "-q", "--bare", source, into) },
		"worktree": func(t *testing.T, into string) { git(t, source, "worktree", "add", "-q", "--detach", into) },
		"reference": func(t *testing.T, into string) {
			git(t, source, "clone", "-q", "--reference", source, "file://"+source, into)
		},
		"link": func(t *testing.T, into string) {
			git(t, source, "clone", "-q", "file://"+source, into)
			moved := t.TempDir() + "/objects"
			if err := os.Rename(into+"/.git/objects", moved); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(moved, into+"/.git/objects"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := filepath.Join(t.TempDir(), "repo")
			form(t, repo)
			tree, git := lentTree(t, repo, head(t, repo))
			git.history = history(t, tree, "", linkOnly("/tmp/Test"))
			want := "second\nbase"
			if name == "shallow" {
				want = "second"
			}
			if out := git.git(t, "log", "--format=%s"); out != want {
				t.Errorf("git log: %q", out)
			}
			if out := git.git(t, "status", "--porcelain"); out != "" {
				t.Errorf("git status: %q", out)
			}
			if out, _ := git.command("symbolic-ref", "-q", "HEAD").Output(); len(out) != 0 {
				t.Errorf("not detached: %s", out)
			}
			git.git(t, "fsck", "--no-dangling", "--no-progress")
		})
	}
}

// TestHistoryOfAFetchedCommit: its objects are not in the checkout, and its parent nowhere.
func TestHistoryOfAFetchedCommit(t *testing.T) {
	t.Parallel()
	for _, parent := range []string{"known", "unknown"} {
		server := twoCommits(t, told)
		repo := filepath.Join(t.TempDir(), "repo")
		git(t, server, "clone", "-q", "file://"+server, repo)
		for i := range map[string]int{"known": 1, "unknown": 2}[parent] {
			write(t, server, map[string]string{"a.txt": fmt.Sprint("again ", i, "\n"), "a/more.txt": "more\n"})
			git(t, server, "add", "-A")
			git(t, server, "commit", "-q", "-m", fmt.Sprint("work ", i))
		}
		commit := head(t, server)
		r := opened(t, repo)
		dir := t.TempDir()
		git(t, dir, "clone", "-q", "--bare", server, "repo.git")
		if err := NewHTTPRemote(serve(t, dir).URL+"/repo.git", token, http.DefaultClient).Fetch(t.Context(), r, "refs/heads/main", commit); err != nil {
			t.Fatal(parent, err)
		}
		tree, err := r.Checkout(t.Context(), commit, filepath.Join(passable(t), "tree"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		git := reader{top: tree.Dir(), dir: tree.Dir(), history: history(t, tree, "ai/issue-1", always)}
		want := map[string]string{"known": "work 0\nsecond\nbase", "unknown": "work 1"}[parent]
		if out := git.git(t, "log", "--format=%s"); out != want {
			t.Errorf("%s: git log: %q", parent, out)
		}
		if out := git.git(t, "status", "--porcelain", "--branch"); out != "## ai/issue-1" {
			t.Errorf("%s: git status: %q", parent, out)
		}
		git.git(t, "fsck", "--no-dangling", "--no-progress", "--connectivity-only")
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHistoryKeepsNothingOfTheCheckout: neither configuration nor hooks nor attributes of the checkout have an effect.
func TestHistoryKeepsNothingOfTheCheckout(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(passable(t), "marker")
	evil := "touch " + marker + "; cat"
	files := map[string]string{"a.txt": "one\n", "b.evil": "two\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n"}
	repo := repoWith(t, files)
	for _, setting := range []string{
		"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
		"diff.evil.textconv", "diff.evil.command", "diff.external", "merge.evil.driver", "pager.log", "interactive.diffFilter", "gpg.program",
		"core.gitProxy", "uploadpack.packObjectsHook", "credential.helper", "core.alternateRefsCommand",
	} {
		git(t, repo, "config", setting, evil)
	}
	git(t, repo, "config", "filter.evil.required", "true")
	git(t, repo, "config", "alias.lg", "!"+evil)
	git(t, repo, "config", "remote.origin.url", "https://user:hunter2@example.test/x")
	git(t, repo, "config", "core.worktree", "/")
	git(t, repo, "config", "http.extraheader", "AUTHORIZATION: basic hunter2")
	for _, hook := range []string{"post-checkout", "post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"} {
		write(t, repo, map[string]string{".git/hooks/" + hook: "+x #!/bin/sh\n" + evil + "\n"})
	}
	commit, err := os.ReadFile(filepath.Join(repo, ".git/refs/heads/main"))
	if err != nil {
		t.Fatal(err)
	}
	tree, git := lentTree(t, repo, strings.TrimSpace(string(commit)))
	git.history = history(t, tree, "main", linkOnly(repo))
	write(t, git.top, map[string]string{"a.txt": "changed\n", "b.evil": "changed\n"})
	index := filepath.Join(passable(t), "index")
	for _, args := range [][]string{
		{"status"},
		{"diff"},
		{"log", "-p"},
		{"show", "--textconv"},
		{"blame", "a.txt"},
		{"grep", "--textconv", "one", "HEAD"},
		{"lg"},
		{"cat-file", "--filters", "HEAD:b.evil"},
		{"checkout", "HEAD", "--", "b.evil"},
		{"restore", "a.txt"},
		{"ls-files", "-m"},
		{"fsck"},
	} {
		data, err := os.ReadFile(filepath.Join(git.history, "index"))
		if err == nil {
			err = os.WriteFile(index, data, 0o666)
		}
		if err == nil {
			err = os.Chmod(filepath.Dir(index), 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := git.command(args...)
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+index)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (args[0] == "lg") {
			t.Errorf("git %v: %v: %s", args, err, out)
		}
		_ = os.Remove(index)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("something of the checkout's configuration was run")
	}
	err = filepath.WalkDir(git.history, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "hunter2") || strings.Contains(string(data), marker) {
			t.Errorf("%s holds settings of the checkout", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHistoryNamesABranchOrNone(t *testing.T) {
	t.Parallel()
	repo := repoWith(t, map[string]string{"a": "a\n"})
	tree := checkedOut(t, repo)
	for branch, want := range map[string]string{
		"main": "main", "feature/x-1": "feature/x-1", "": "HEAD", "../../evil": "HEAD", "a\nb": "HEAD", "-x": "HEAD", "x.lock": "HEAD", "ä": "ä",
	} {
		git := reader{top: tree.Dir(), dir: tree.Dir(), history: history(t, tree, branch, always)}
		if got := git.git(t, "rev-parse", "--abbrev-ref", "HEAD"); got != want {
			t.Errorf("branch %q: on %q, want %q", branch, got, want)
		}
	}
	dir := history(t, tree, "main", always)
	if err := tree.WriteHistory(t.Context(), dir, "main", always); err == nil {
		t.Error("a history was written over another")
	}
}
