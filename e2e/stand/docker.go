package stand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"issuesmith/e2e/parts"
)

// A Docker is a Docker daemon of the tests' own: Debian's, with its default seccomp and
// capability profile, in process, mount and network namespaces that die with it. So it
// neither sees nor disturbs another daemon of this machine, and nothing is left of it,
// whatever happens: no process, mount, bridge or firewall rule. Containers reach each
// other, and on the host only what Forward opens.
type Docker struct {
	Dir    string // everything of it lies below
	Socket string // the daemon's unix socket

	cache  string
	daemon *process
	closes []func()
	unlock func() // lets go of the folder
}

// ErrNeedsRoot is returned by OpenDocker to everybody but root.
var ErrNeedsRoot = parts.ErrNeedsRoot

// dockerAddress is the host as containers see it. The network is the daemon's own, so no
// other use of these addresses is in the way.
const dockerAddress = "172.17.0.1"

// OpenDocker starts the daemon and returns when it answers. cache is the folder that
// keeps images between runs (parts.CacheDir). The caller calls Close whatever happens.
func OpenDocker(ctx context.Context, cache string) (*Docker, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("the Docker daemon %w", ErrNeedsRoot)
	}
	for _, program := range []string{"dockerd", "docker"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("install Debian's package docker.io: %w", err)
		}
	}
	if err := removeAbandoned(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", dockerFolder)
	if err != nil {
		return nil, err
	}
	d := &Docker{Dir: dir, Socket: filepath.Join(dir, "docker.sock"), cache: cache}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Docker) start(ctx context.Context) error {
	unlock, err := lockFolder(d.Dir)
	if err != nil {
		return err
	}
	d.unlock = unlock
	// Others may pass through, to the socket.
	if err := os.Chmod(d.Dir, 0o711); err != nil {
		return err
	}
	// The machine's own daemon.json is not read.
	config, err := json.Marshal(map[string]any{
		"data-root": filepath.Join(d.Dir, "data"),
		"exec-root": filepath.Join(d.Dir, "exec"),
		"pidfile":   filepath.Join(d.Dir, "pid"),
		"hosts":     []string{"unix://" + d.Socket},
		"bip":       dockerAddress + "/16",
		// There is no way out: see noNames.
		"dns":           []string{dockerAddress},
		"cgroup-parent": "/" + filepath.Base(d.Dir),
		"exec-opts":     []string{"native.cgroupdriver=cgroupfs"}, // the other one wants systemd
		"log-level":     "warn",
	})
	if err != nil {
		return err
	}
	path := filepath.Join(d.Dir, "daemon.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return err
	}
	// The daemon is the first process of its process namespace: when it dies, the kernel
	// kills containerd, its shims and all containers.
	cmd := exec.Command("sh", "-ec", "mount --make-rprivate /; mount -t proc proc /proc; exec dockerd --config-file "+path)
	cmd.Dir = d.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.Dir, "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Setpgid:    true, Pdeathsig: syscall.SIGKILL,
	}
	if d.daemon, err = launch("dockerd", cmd, filepath.Join(d.Dir, "dockerd.log")); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil {
		return err
	}
	return errors.Join(d.loopback(), d.noNames())
}

// wait returns when the daemon answers.
func (d *Docker) wait(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", d.Socket)
		},
	}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close() // nothing of it is read
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if d.daemon.dead() {
			return fmt.Errorf("dockerd ended at once:\n%s", d.daemon.tail(4000))
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("dockerd does not answer:\n%s", d.daemon.tail(4000))
		}
	}
}

// Command makes a command of the docker client.
func (d *Docker) Command(args ...string) *exec.Cmd {
	cmd := exec.Command("docker", args...)
	cmd.Dir = d.Dir
	// The builder without BuildKit is in every client; nothing of the caller's own settings.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.Dir, "DOCKER_CONFIG=" + d.Dir, "DOCKER_HOST=unix://" + d.Socket, "DOCKER_BUILDKIT=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Run runs the docker client and returns what it printed on stdout, without the newline
// at the end. When ctx ends the client is killed.
func (d *Docker) Run(ctx context.Context, args ...string) (string, error) {
	cmd := d.Command(args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })() // gone already is fine
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("docker %s: %w\n%s", strings.Join(args[:min(3, len(args))], " "), errors.Join(err, ctx.Err()), tail(out.String()+errs.String(), 8000))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Log is the last of what the daemon said, for a failure nothing else explains.
func (d *Docker) Log() string { return d.daemon.tail(4000) }

// Close ends the daemon, its containers and what Forward opened, and removes all of it.
func (d *Docker) Close() error {
	for _, f := range d.closes {
		f()
	}
	if d.daemon != nil {
		// Not asked to stop: there is nothing worth saving, and the kernel's way is sure. The
		// first process of a namespace counts as ended only when all the others have.
		_ = d.daemon.cmd.Process.Kill() // gone already is fine
		<-d.daemon.done
	}
	if d.unlock != nil {
		defer d.unlock()
	}
	return removeDocker(d.Dir)
}

// namespace is the path of the daemon's network namespace.
func (d *Docker) namespace() string {
	return filepath.Join("/proc", strconv.Itoa(d.daemon.cmd.Process.Pid), "ns", "net")
}

func tail(s string, limit int) string { return s[max(0, len(s)-limit):] }
