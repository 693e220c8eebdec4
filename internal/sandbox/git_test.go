package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// realGit is needed to test with.
func realGit(t testing.TB) string {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("git is needed for this test, install it: %v", err)
	}
	return real
}

// outsideGit runs the real git, free of the machine's configuration.
func outsideGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(realGit(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// A gitBox is a sandbox over a checkout without a repository, with the small git.
type gitBox struct {
	*Sandbox
	history string
}

var gitFiles = map[string]string{
	"a.txt": "one\ntwo\n", "dir/b.txt": "b\n", "dir/sub/c.txt": "c\n", "with space/it's \"q\"\n/d.txt": "d\n", "\u0101\u0102/e.txt": "e\n",
	".gitattributes": "* filter=evil diff=evil merge=evil\n", "commit": "a file of this name\n",
}

// newGitBox makes a history of two commits in the way worktree does, and a sandbox over the files of the second. name is the
// folder of the run.
func newGitBox(t testing.TB, name string) *gitBox {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "git-test-")
	if err == nil {
		err = os.Chmod(base, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = RemoveAll(base) })
	work := filepath.Join(base, name)
	b := &gitBox{history: filepath.Join(work, "history")}
	tree := filepath.Join(work, "tree")
	source := filepath.Join(base, "source")
	for path, text := range gitFiles {
		for _, top := range []string{tree, source} {
			put(t, filepath.Join(top, path), text)
		}
	}
	outsideGit(t, source, "init", "-q", "-b", "main")
	put(t, filepath.Join(source, "a.txt"), "one\n")
	outsideGit(t, source, "add", "-A")
	outsideGit(t, source, "commit", "-q", "-m", "first")
	put(t, filepath.Join(source, "a.txt"), gitFiles["a.txt"])
	outsideGit(t, source, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	outsideGit(t, source, "add", "a.txt")
	outsideGit(t, source, "commit", "-q", "-m", "second")
	outsideGit(t, base, "clone", "-q", "--bare", source, b.history)
	outsideGit(t, b.history, "config", "core.bare", "false")
	outsideGit(t, b.history, "remote", "remove", "origin")
	outsideGit(t, b.history, "config", "advice.statusHints", "false")
	outsideGit(t, b.history, "read-tree", "HEAD")
	if err := os.Mkdir(filepath.Join(tree, "module"), 0o755); err != nil {
		t.Fatal(err)
	}
	owner := DropOwner()
	err = filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && owner.Drop {
			err = os.Chown(path, owner.UID, owner.GID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Sandbox, err = New(Options{
		Dir: tree, Home: filepath.Join(work, "home"), Tmp: filepath.Join(work, "tmp"), Path: os.Getenv("PATH"), Mode: BestEffort, History: b.history,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func put(t testing.TB, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// again puts the files back as they were.
const again = `rm -rf new.txt nested "$TMPDIR"/t; git checkout -q -- .; `

func TestSmallGit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run", "a run's \"$(x)\" `y`\n\\ \u0101\u0142*[", "-C"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newGitBox(t, name)
			for _, c := range smallGitCases {
				script := again + strings.ReplaceAll(c.script, "EDIT", "echo 3 >>a.txt; echo n >new.txt; rm dir/b.txt")
				if c.dir != "" {
					script = again + "cd " + shellQuote(c.dir) + "; " + c.script
				}
				r := run(t, b.Sandbox, Command{Script: script})
				if r.Exit != c.exit || !strings.Contains(r.Output(), c.want) || c.want == "" && r.Output() != "" {
					t.Errorf("%s (in %q): exit %d, want %d, output\n%s\nwant\n%s", c.script, c.dir, r.Exit, c.exit, r.Output(), c.want)
				}
			}
			if out := outsideGit(t, b.history, "log", "--all", "--format=%s"); out != "second\nfirst" {
				t.Errorf("the history has changed:\n%s", out)
			}
		})
	}
}

const readOnlyText = "is not possible: the history here is read-only. Just change the files, the change is taken from them."

var smallGitCases = []struct {
	script string
	exit   int
	want   string
	dir    string
}{
	// It answers.
	{script: `git log --format=%s`, want: "second\nfirst\n"},
	{script: `git log --format=%s`, want: "second\nfirst\n", dir: "dir/sub"},
	{script: `git log --format=%s`, want: "second\nfirst\n", dir: "with space/it's \"q\"\n"},
	{script: `git log --format=%s`, want: "second\nfirst\n", dir: "\u0101\u0102"},
	{script: `git show --stat --format=%s`, want: "second\n\n a.txt"},
	{script: `git blame -s a.txt | wc -l`, want: "2\n"},
	{script: `git status --short`},
	{script: `git rev-parse --show-toplevel`, want: "tree\n"},
	{script: `EDIT; git status --short`, want: " M a.txt\n D dir/b.txt\n?? new.txt\n"},
	{script: `EDIT; git status`, want: "On branch main\nChanges not staged for commit:\n\tmodified:   a.txt\n"},
	{script: `EDIT; git diff -- a.txt`, want: "@@ -1,2 +1,3 @@\n one\n two\n+3\n"},
	{script: `EDIT; git diff --stat`, want: " 2 files changed, 1 insertion(+), 1 deletion(-)\n"},
	{script: `EDIT; cd dir/sub; git -C .. diff --name-only --relative; git diff --name-only`, want: "b.txt\na.txt\ndir/b.txt\n"},
	{script: `git grep -n two; git ls-files | wc -l; git --no-pager -c core.abbrev=4 log -1 --format=%s`, want: "a.txt:2:two\n8\nsecond\n"},
	{script: `git branch; git tag; git remote -v; git stash list; git branch --contains HEAD --format '%(refname)'; git worktree list | grep -c '.main.$'`, want: "* main\nrefs/heads/main\n1\n"},
	{script: `cd /; git -C "$OLDPWD" -C dir -C '' log -1 --format=%s`, want: "second\n"},
	{script: `ln -s dir/sub inside; cd inside; git log -1 --format=%s; cd ..; rm inside`, want: "second\n"},
	{script: `CDPATH=/etc:/tmp git -C dir log -1 --format=%s`, want: "second\n"},
	{script: `git -C commit/.. log -1 --format=%s 2>&1; git -c commit.gpgSign=no log -1 --format=%s`, want: "second\n"},
	{script: `dir=x word=y git -c alias.env='!env' env | grep -E '^(dir|word)=' | sort`, want: "dir=x\nword=y\n"},
	{script: `git submodule status`, exit: 128, want: "no submodule mapping found"},

	// Files are brought back, and the index stays what it was.
	{script: `EDIT; git restore a.txt dir/b.txt; git status --short`, want: "?? new.txt\n"},
	{script: `EDIT; git checkout -- a.txt && git checkout dir/b.txt; git status --short`, want: "?? new.txt\n"},
	{script: `git checkout HEAD~1 a.txt; git status --short; cat a.txt`, want: " M a.txt\none\n"},
	{script: `git restore --source=HEAD~1 ../a.txt; git status --short`, want: " M ../a.txt\n", dir: "dir"},
	{script: `git rm -q dir/b.txt; git mv a.txt new.txt; git status --short`, want: " D a.txt\n D dir/b.txt\n?? new.txt\n"},
	{script: `EDIT; git diff >"$TMPDIR/p"; git apply -R "$TMPDIR/p"; git status --short; git apply --index "$TMPDIR/p"; git status --short`, want: "?? new.txt\n M a.txt\n D dir/b.txt\n?? new.txt\n"},
	{script: `EDIT; git -C dir reset -q --hard; git status --short`, want: "new files stay\n?? new.txt\n"},
	{script: `EDIT; git clean -qf; git status --short`, want: " M a.txt\n D dir/b.txt\n"},
	{script: `touch a.txt; git update-index -q --refresh && git diff-index --quiet HEAD`},
	{script: `EDIT; git diff HEAD~1 -- a.txt | sed s/+two/+2/ >"$TMPDIR/p"; git restore .; git apply --3way "$TMPDIR/p" 2>&1 | tail -1; grep -c '<<<<' a.txt; rm "$TMPDIR/p"; ls -A "$TMPDIR"`, want: "U a.txt\n1\n"},
	{script: `mkdir "$TMPDIR/t"; git --work-tree="$TMPDIR/t" checkout HEAD~1 -- . && cat "$TMPDIR/t/a.txt"; cat a.txt`, want: "one\none\ntwo\n"},

	// What cannot be done says so, and changes nothing.
	{script: `EDIT; git add -A && git add new.txt && git commit -qm x`, exit: 1, want: "git commit " + readOnlyText},
	{script: `EDIT; git add -A; git reset HEAD a.txt; git reset; git status --short`, want: "read-only, the change is taken from the files as they are (see git status and git diff)\n"},
	{script: `EDIT; git stash; git status --short`, want: "git stash " + readOnlyText},
	{script: `git stash pop`, exit: 1, want: readOnlyText + " `git diff >"},
	{script: `git -C dir -c x.y=z commit -m x`, exit: 1, want: "git commit " + readOnlyText},
	{script: `git reset --hard HEAD~1; git status --short`, want: "git reset " + readOnlyText},
	{script: `git reset --soft HEAD~1`, exit: 1, want: readOnlyText},
	{script: `git checkout -q HEAD~1; git status --short; git checkout -b x`, exit: 1, want: readOnlyText + " `git restore"},
	{script: `git switch -c x`, exit: 1, want: readOnlyText},
	{script: `git branch x`, exit: 1, want: readOnlyText},
	{script: `git branch -D main`, exit: 1, want: readOnlyText},
	{script: `git tag -a v1 -m x`, exit: 1, want: readOnlyText},
	{script: `git push origin HEAD`, exit: 1, want: "There is no remote."},
	{script: `git merge HEAD~1`, exit: 1, want: readOnlyText},
	{script: `git rebase -i HEAD~1`, exit: 1, want: readOnlyText},
	{script: `git remote add origin /x`, exit: 1, want: readOnlyText},
	{script: `git rm --cached a.txt`, exit: 1, want: readOnlyText},
	{script: `git worktree add "$TMPDIR/t" HEAD`, exit: 1, want: "git archive COMMIT"},
	{script: `git update-index --chmod=+x a.txt`, exit: 1, want: readOnlyText},

	// Repositories of one's own are as they would be.
	{script: `mkdir "$TMPDIR/t"; cd "$TMPDIR/t"; git init -q; echo x >x; git add x; git commit -qm own; git log --format='%s %an %ae' --all; git branch`, want: "own issuesmith issuesmith@localhost\n* main\n"},
	{script: `mkdir nested; cd nested; git init -q; echo x >x; git add x; git commit -qm own; mkdir y; cd y; git log --format=%s; git status --short`, want: "own\n"},
	{script: `git init -q nested; cd nested; git commit -q --allow-empty -m own; cd ..; git -C nested log --format=%s; git log -1 --format=%s`, want: "own\nsecond\n"},
	{script: `git init -q --bare nested; cd nested; git config core.bare; git log`, exit: 128, want: "true\nfatal: your current branch 'main' does not have any commits yet"},
	{script: `git init -q "$TMPDIR/t"; git --git-dir="$TMPDIR/t/.git" rev-parse --absolute-git-dir; GIT_DIR="$TMPDIR/t/.git" git rev-parse --absolute-git-dir`, want: "/t/.git\n"},
	{script: `git init -q "$TMPDIR/t"; git -C "$TMPDIR/t" commit -q --allow-empty -m own; git clone -q "$TMPDIR/t" nested; git -C nested log --format=%s`, want: "own\n"},
	{script: `cd module; git log -1 --format=%s; git init -q; git commit -q --allow-empty -m own; git log --format=%s; cd ..; rm -rf module/.git`, want: "second\nown\n"},
	{script: `mkdir "$TMPDIR/t"; ln -s "$TMPDIR/t" out; cd out; git log; s=$?; rm ../out ../tree/out 2>/dev/null; exit $s`, exit: 128, want: "not a git repository"},
	{script: `mkdir nested; cd nested; GIT_DIR= git log`, exit: 128, want: "fatal: not a git repository: ''"},
	{script: `cd /; git log`, exit: 128, want: "not a git repository"},
	{script: `git --version; git version; git help -a | head -3; git --exec-path`, want: "git version"},
	{script: `git config --global alias.hi '!echo hi'; git hi; git config user.email; git config --global --unset alias.hi`, want: "hi\nissuesmith@localhost\n"},
	{script: `GIT_INDEX_FILE="$TMPDIR/i" git read-tree HEAD && GIT_INDEX_FILE="$TMPDIR/i" git ls-files | wc -l; rm "$TMPDIR/i"`, want: "8\n"},
}

func TestInstallGitReplaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "bin")
	for _, real := range []string{"/bin/false", "/bin/true"} {
		if err := installGit(folder, real, filepath.Join(dir, "history"), dir); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(filepath.Join(folder, "git"), "version").Run(); (err == nil) != (real == "/bin/true") {
			t.Errorf("with %s as git: %v", real, err)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	if err := installGit(dir+"/a:b", "/bin/true", dir, dir); err == nil || !strings.Contains(err.Error(), "colon") {
		t.Errorf("a folder that a PATH cannot hold: %v", err)
	}
	if err := installGit(folder, "/bin/true", dir, filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "installing git") {
		t.Errorf("a worktree that is not there: %v", err)
	}
}

func TestGitConfigIsWrittenOnce(t *testing.T) {
	t.Parallel()
	home, owner := t.TempDir(), DropOwner()
	if err := gitConfig(home, owner); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(home, ".gitconfig")
	if got := outsideGit(t, home, "config", "-f", name, "user.email"); got != "issuesmith@localhost" {
		t.Errorf("user.email is %q", got)
	}
	put(t, name, "# mine\n")
	if err := gitConfig(home, owner); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "# mine\n" {
		t.Errorf("the user's own file was written over: %q %v", text, err)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	other := t.TempDir()
	if err := os.Symlink(victim, filepath.Join(other, ".gitconfig")); err != nil {
		t.Fatal(err)
	}
	if err := gitConfig(other, owner); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(victim); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link was followed: %v", err)
	}
	if err := gitConfig(filepath.Join(home, "none"), owner); err == nil {
		t.Error("no error without a home")
	}
}

func TestAlternates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := alternates(dir); got != nil {
		t.Errorf("without the file: %q", got)
	}
	put(t, filepath.Join(dir, "objects/info/alternates"), "/a b\n\"/with\\nend \\\"q\\\"\"\n\n../relative\n\"broken\n")
	if got, want := alternates(dir), []string{"/a b", "/with\nend \"q\""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkSmallGit compares git log -1 through the small git with the real git told the same: the medians, taken in turns. The
// script is to cost no more than a millisecond or so, the start of a shell.
func BenchmarkSmallGit(b *testing.B) {
	box := newGitBox(b, "run")
	dir := filepath.Join(box.options.Dir, "dir/sub")
	env := append(slices.Clone(box.order.Env), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	took := func(env []string, program string) time.Duration {
		cmd := exec.Command(program, "log", "-1")
		cmd.Dir, cmd.Env = dir, env
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return time.Since(start)
	}
	told := append(slices.Clone(env), "GIT_DIR="+box.history, "GIT_WORK_TREE="+box.options.Dir)
	small := filepath.Join(filepath.Dir(box.history), "bin", "git")
	var ours, plain []time.Duration
	for b.Loop() {
		ours, plain = append(ours, took(env, small)), append(plain, took(told, realGit(b)))
	}
	b.ReportMetric(milliseconds(median(ours)), "small-ms")
	b.ReportMetric(milliseconds(median(plain)), "real-ms")
	b.ReportMetric(milliseconds(median(ours)-median(plain)), "over-ms")
}
