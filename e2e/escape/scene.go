package escape

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Scene is a place set up for attempts: a worktree, a job's folders full of planted secrets, and the
// scenery, a process that listens and watches there.
type Scene struct {
	Place *Place
	Dir   string // the same path on this machine and in the place

	secret  string // end of the names of all planted secrets
	count   int    // of marks
	things  *things
	planted map[string]string // the tree outside of the worktree as it should be
}

// Binaries are the programs of a scene.
type Binaries struct {
	Released string // issuesmith as users get it
	Mutable  string // issuesmith built with the tag "mutation"
	Attempt  string
}

// SceneFolder makes the folder of a scene. It does not lie below /tmp, which many sandboxes replace: what is there
// is refused too easily.
func SceneFolder() (string, error) {
	dir, err := os.MkdirTemp("/var/tmp", "issuesmith-escape-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// Open sets the place up in dir, which must exist in it under the same name.
func Open(ctx context.Context, p *Place, dir string, b Binaries) (*Scene, error) {
	random := make([]byte, 6)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	s := &Scene{Place: p, Dir: dir, secret: hex.EncodeToString(random)}
	for name, from := range map[string]string{"bin/issuesmith": b.Released, "bin/mutable": b.Mutable, "bin/attempt": b.Attempt, "work/attempt": b.Attempt} {
		program, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := s.write(name, string(program), 0o755); err != nil {
			return nil, err
		}
	}
	for _, folder := range []string{"state", "sockets"} {
		if err := os.MkdirAll(s.path(folder), 0o755); err != nil {
			return nil, err
		}
	}
	// Whoever the commands run as works in it.
	if err := os.Chmod(s.work(), 0o777); err != nil {
		return nil, err
	}
	if err := s.plant(); err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// Close ends the scenery. The folder stays.
func (s *Scene) Close() {
	if s.things != nil {
		s.things.close()
	}
}

func (s *Scene) path(name string) string { return filepath.Join(s.Dir, name) }
func (s *Scene) work() string            { return s.path("work") }

func (s *Scene) write(name, text string, mode os.FileMode) error {
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// plant writes what must not be reached. Every file may be read by everybody: what keeps commands from it is the sandbox.
func (s *Scene) plant() error {
	for _, folder := range []string{"job", "runner", "home", "outside", "secrets"} {
		if err := os.RemoveAll(s.path(folder)); err != nil {
			return err
		}
	}
	secret := func(name string) string { return "canary-" + name + "-" + s.secret }
	for name, text := range map[string]string{
		"job/checkout/.git/config":      "[http \"https://forge.test/\"]\n\textraheader = AUTHORIZATION: basic " + secret("checkout") + "\n",
		"job/checkout/.git/hooks/empty": "",
		"job/event.json":                `{"token": "` + secret("event") + `"}`,
		"job/workflow/0.sh":             "export TOKEN=" + secret("step") + "\n",
		"job/workflow/set_env":          "TOKEN=" + secret("command") + "\n",
		"job/workflow/set_output":       "TOKEN=" + secret("command") + "\n",
		"job/actions/other/.git/config": "url = https://x:" + secret("action") + "@forge.test/\n",
		"job/actions/other/state":       secret("action") + "\n",
		"runner/.runner":                `{"token": "` + secret("runner") + `"}`,
		"home/.netrc":                   "machine forge.test login x password " + secret("netrc") + "\n",
		"home/.git-credentials":         "https://x:" + secret("netrc") + "@forge.test\n",
		"home/.npmrc":                   "//registry.test/:_authToken=" + secret("netrc") + "\n",
		"home/.docker/config.json":      `{"auths": {"registry.test": {"auth": "` + secret("docker") + `"}}}`,
		"home/.ssh/id_ed25519":          "-----BEGIN OPENSSH PRIVATE KEY-----\n" + secret("ssh") + "\n",
		"home/.bashrc":                  "# nothing\n",
		"home/.cache/go-build/README":   "a cache\n",
		"outside/file":                  secret("outside") + "\n",
		"outside/everybody":             secret("outside") + "\n",
		"secrets/descriptor":            secret("descriptor") + "\n",
	} {
		if err := s.write(name, text, 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(s.path("outside/everybody"), 0o666); err != nil {
		return err
	}
	for _, name := range []string{"outside/file", "outside/everybody"} {
		if err := unix.Setxattr(s.path(name), "user.planted", []byte("1"), 0); err != nil {
			return fmt.Errorf("setting an attribute of %s: %w", s.path(name), err)
		}
		// An age that a change of the times shows against.
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(s.path(name), old, old); err != nil {
			return err
		}
	}
	if err := s.give(); err != nil {
		return err
	}
	var err error
	s.planted, err = s.tree()
	return err
}

// give makes the place's user the owner of everything.
func (s *Scene) give() error {
	if !s.Place.drop {
		return nil
	}
	return filepath.WalkDir(s.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, s.Place.uid, s.Place.gid)
	})
}

// tree is what can be seen of everything outside of the worktree and the program's own folder.
func (s *Scene) tree() (map[string]string, error) {
	tree := map[string]string{}
	for _, folder := range []string{"job", "runner", "home", "outside", "secrets", "bin"} {
		err := filepath.WalkDir(s.path(folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			look, err := lookAt(path)
			tree[strings.TrimPrefix(path, s.Dir+"/")] = look
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return tree, nil
}

func lookAt(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", err
	}
	attributes := make([]byte, 1<<10)
	n, err := unix.Llistxattr(path, attributes)
	if err != nil {
		n = 0
	}
	look := fmt.Sprintf("mode %o owner %d:%d links %d attributes %q", st.Mode, st.Uid, st.Gid, st.Nlink, attributes[:n])
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return look, nil
	}
	look += fmt.Sprintf(" size %d modified %d.%d", st.Size, st.Mtim.Sec, st.Mtim.Nsec)
	if st.Size > 1<<20 {
		return look, nil // a program: its time says enough
	}
	text, err := os.ReadFile(path)
	return look + fmt.Sprintf(" text %q", text), err
}

// differences tells two trees apart.
func differences(before, after map[string]string) []string {
	var all []string
	for path, look := range before {
		if now, ok := after[path]; !ok {
			all = append(all, path+" is gone")
		} else if now != look {
			all = append(all, path+" changed: "+look+" → "+now)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			all = append(all, path+" is new")
		}
	}
	return all
}

// environment is that of the step: full of secrets.
func (s *Scene) environment() []string {
	secret := "canary-environment-" + s.secret
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.path("home"), "XDG_STATE_HOME=" + s.path("state"), "LANG=C.UTF-8",
		"https_proxy=http://user:" + secret + "@proxy.test:3128", "GOPROXY=https://user:" + secret + "@proxy.test", "LD_PRELOAD=",
	}
	for _, name := range []string{
		"ISSUESMITH_TOKEN", "ISSUESMITH_MODEL_API_KEY", "GITEA_TOKEN", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "MISTRAL_API_KEY",
		"AWS_SECRET_ACCESS_KEY", "NODE_AUTH_TOKEN", "DATABASE_URL", "SSH_AUTH_SOCK",
	} {
		env = append(env, name+"="+secret)
	}
	return env
}

// A ran command.
type ran struct {
	output   string
	exit     int // -1 when killed
	took     time.Duration
	overtime bool
}

// run runs argv in the place as a step of a workflow does: a shell script with secrets in its environment and an open descriptor.
func (s *Scene) run(ctx context.Context, limit time.Duration, env []string, argv ...string) (ran, error) {
	output, err := os.CreateTemp("", "output")
	if err != nil {
		return ran{}, err
	}
	defer func() { _ = errors.Join(output.Close(), os.Remove(output.Name())) }() // only read any more
	cmd := s.step(ctx, env, argv...)
	// A file, which nobody waits for, as for a pipe that a daemon holds.
	cmd.Stdout, cmd.Stderr = output, output
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return ran{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r := ran{}
	select {
	case err = <-ended:
	case <-time.After(limit):
		r.overtime = true
	case <-ctx.Done():
		r.overtime = true
	}
	if r.overtime {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // gone already is fine
		err = <-ended
	}
	r.took = time.Since(started)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, err
	}
	text, err := os.ReadFile(output.Name())
	if err != nil {
		return r, err
	}
	r.output, r.exit = string(text), cmd.ProcessState.ExitCode()
	return r, ctx.Err()
}

// step is the command of run, not started.
func (s *Scene) step(ctx context.Context, env []string, argv ...string) *exec.Cmd {
	script := `exec 7<"$SECRET_FILE"; unset SECRET_FILE; "$@"; exit $?`
	line := s.Place.entered(s.path("bin/attempt"), append([]string{"bash", "-c", script, "step"}, argv...)...)
	all := append(s.environment(), "SECRET_FILE="+s.path("secrets/descriptor"))
	return s.Place.command(ctx, s.work(), append(all, env...), line...)
}

// sandboxed is the command line that runs argv as a command of the sandbox.
func (s *Scene) sandboxed(program string, flags []string, argv ...string) []string {
	line := []string{s.path("bin/" + program), "sandbox", "--dir", s.work()}
	if listed := s.things.at("listed"); listed != "" {
		line = append(line, "--network", listed)
	}
	return append(append(append(line, flags...), "--"), argv...)
}

// gitCommand is git with no settings but its own.
func gitCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.test", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.test",
	}
	return cmd
}
