package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stagesVariable names the folder of stages in a run of this test binary as another user.
const stagesVariable = "SANDBOX_TEST_TOOLCHAINS"

// A place is a way to start the suite again from root: as whom, and what must be taken away before.
type place struct {
	name  string
	uid   int
	level string // what the sandbox must reach there
}

// The users own nothing but a home.
var places = []place{
	{"as an ordinary user", 64700, LevelNamespaces},
	{"as an ordinary user without namespaces", 64701, LevelRules},
	{"as root without namespaces", 0, LevelUser},
}

// TestToolchains builds and tests small projects inside of the sandbox and outside of it: the ends and the outputs must be the
// same. Root does so in every place.
func TestToolchains(t *testing.T) {
	if dir := os.Getenv(stagesVariable); dir != "" {
		compareToolchains(t, loadStage(t, dir))
		return
	}
	if testing.Short() {
		t.Skip("takes a minute, or more when the caches are to be filled: not with -short")
	}
	st := newStage(t)
	t.Run("as the caller", func(t *testing.T) { compareToolchains(t, st) })
	for _, p := range places {
		if os.Getuid() == 0 {
			t.Run(p.name, func(t *testing.T) { st.again(t, p) })
		} else {
			t.Logf("%s: not run, needs root", p.name)
		}
	}
}

// again runs the suite in another place.
func (st *stage) again(t *testing.T, p place) {
	binary := filepath.Join(st.Base, "sandbox.test")
	copyFile(t, "/proc/self/exe", binary, 0o755)
	home, err := os.MkdirTemp(st.Base, "home-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, p.uid, p.uid); err != nil {
		t.Fatal(err)
	}
	user := []string{"setpriv", fmt.Sprintf("--reuid=%d", p.uid), fmt.Sprintf("--regid=%d", p.uid), "--clear-groups"}
	args := slices.Concat(user, []string{binary, "-test.run=^TestToolchains$", "-test.v", "-test.timeout=10m"})
	switch p.level {
	case LevelRules:
		// A user namespace in which no more can be made. Its right to forbid that is given up before the binary starts.
		args = slices.Concat(user, []string{
			"unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c",
			`echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"`, "sh",
		}, args[len(user):])
	case LevelUser:
		// What root lacks in a container.
		args = slices.Concat([]string{"setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin"}, args[len(user):])
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, stagesVariable + "=" + st.Base}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n--- PASS: TestToolchains") {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "level: "+p.level+"\n") {
		t.Errorf("the level is not %q:\n%s", p.level, out)
	}
	t.Logf("%s", out)
}

// compareToolchains runs every case in a sandbox of its own level and in none.
func compareToolchains(t *testing.T, st *stage) {
	inside, outside := st.open(t, Strict), st.open(t, Off)
	t.Logf("level: %s", inside.Report().Level)
	for _, c := range toolchainCases {
		t.Run(c.name, func(t *testing.T) {
			for _, program := range c.needs {
				if lookIn(outside.owner.searchPath(os.Getenv("PATH")), program) == "" {
					t.Fatalf("%s is not installed where commands can use it: .ci/need installs it", program)
				}
			}
			script := strings.ReplaceAll(c.script, "@PORT@", strconv.Itoa(st.Port))
			if strings.Contains(c.script, "@PORT@") && st.Port == 0 {
				t.Fatal("no MariaDB is installed: .ci/need installs mariadb-server")
			}
			in, took := st.play(t, inside, c, script)
			out, plain := st.play(t, outside, c, script)
			t.Logf("%.2f s, outside %.2f s", took.Seconds(), plain.Seconds())
			if in.Exit != c.exit || out.Exit != c.exit {
				t.Errorf("exit %d, outside %d, want %d", in.Exit, out.Exit, c.exit)
			}
			if len(in.Notes) > 0 || in.TimedOut {
				t.Errorf("notes: %q, timed out: %v", in.Notes, in.TimedOut)
			}
			if got, want := outcome(in, inside), outcome(out, outside); got != want {
				t.Errorf("inside:\n%s\noutside:\n%s", in.Output(), out.Output())
			} else if !strings.Contains(got, c.want) || t.Failed() {
				t.Errorf("want %q in\n%s", c.want, in.Output())
			}
		})
	}
}

var (
	number  = regexp.MustCompile(`\d+(\.\d+)?`)
	notices = regexp.MustCompile(`(?m)^(Picked up JAVA_TOOL_OPTIONS|go: downloading ).*\n`)
)

// outcome is an output without what differs from one run to the next: times, ports, process numbers, the folder's name, what is
// found in a cache the second time.
func outcome(r *Result, s *Sandbox) string {
	text := strings.ReplaceAll(r.Output(), s.options.Dir, "TREE")
	return number.ReplaceAllString(notices.ReplaceAllString(text, ""), "N")
}

// play lays the case's project into the worktree and runs its script.
func (st *stage) play(t *testing.T, s *Sandbox, c toolchainCase, script string) (*Result, time.Duration) {
	for name, text := range c.files {
		path := filepath.Join(s.options.Dir, name)
		give(t, s.owner, filepath.Dir(path))
		if filepath.Base(name) == "package-lock.json" {
			text = st.Lock
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		give(t, s.owner, path)
	}
	r := run(t, s, Command{Script: script, Dir: c.dir, Timeout: 3 * time.Minute})
	return r, r.Duration
}

// give gives a path below the worktree to the commands' user; a folder is made, with those above it.
func give(t *testing.T, owner Owner, path string) {
	if _, err := os.Stat(path); err != nil {
		give(t, owner, filepath.Dir(path))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if owner.Drop {
		if err := os.Chown(path, owner.UID, owner.GID); err != nil {
			t.Fatal(err)
		}
	}
}

// open makes a sandbox over a worktree with the history's files. Home is shared: what is outside runs second and finds the caches
// that were made inside.
func (st *stage) open(t *testing.T, mode Mode) *Sandbox {
	base, err := os.MkdirTemp("/var/tmp", "sandbox-toolchains-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	home := os.Getenv("SANDBOX_TEST_HOME")
	if mode == Strict || home == "" {
		home = filepath.Join(base, "home")
		t.Setenv("SANDBOX_TEST_HOME", home)
	}
	dir, history := filepath.Join(base, "tree"), filepath.Join(base, "history")
	give(t, DropOwner(), dir)
	outsideOf(t, base, nil, "cp", "-r", filepath.Join(st.Base, "history"), history)
	o := Options{
		Dir: dir, Home: home, Tmp: filepath.Join(base, "tmp"), Path: os.Getenv("PATH"), Mode: mode, History: history,
		Caches: []string{filepath.Join(st.Base, "modules"), filepath.Join(st.Base, "builds"), filepath.Join(st.Base, "npm")},
		Env:    []string{"DB_PASSWORD=test-secret"},
	}
	if st.Port != 0 {
		o.Network.Allow = []string{"127.0.0.1:" + strconv.Itoa(st.Port)}
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func loadStage(t *testing.T, base string) *stage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(base, "stage.json"))
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{}
	if err := json.Unmarshal(text, st); err != nil {
		t.Fatal(err)
	}
	return st
}
