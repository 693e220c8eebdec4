package stand

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"issuesmith/e2e/parts"
)

// openDocker starts a daemon for one test, and holds that nothing is left of it.
func openDocker(ctx context.Context, t *testing.T) *Docker {
	t.Helper()
	cache, err := parts.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if _, err := OpenDocker(ctx, cache); !errors.Is(err, ErrNeedsRoot) {
			t.Fatalf("opened by an ordinary user: %v", err)
		}
		t.Skip("not run: needs root")
	}
	d, err := OpenDocker(ctx, cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(d.Log())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, d)
	})
	return d
}

func nothingLeft(t *testing.T, d *Docker) {
	t.Helper()
	for _, p := range Processes() {
		if strings.Contains(p.Command, d.Dir) {
			t.Errorf("left running: %+v", p)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), d.Dir) {
		t.Errorf("left mounted, %v:\n%s", err, mounts)
	}
	for _, pattern := range []string{d.Dir, "/sys/fs/cgroup/" + filepath.Base(d.Dir), "/sys/fs/cgroup/*/" + filepath.Base(d.Dir)} {
		if left, _ := filepath.Glob(pattern); left != nil { // a good pattern
			t.Errorf("left: %q", left)
		}
	}
}

func TestDocker(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	d := openDocker(ctx, t)
	base, err := d.Base(ctx)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("the default profile", func(t *testing.T) {
		status, err := d.Run(ctx, "run", "--rm", base, "cat", "/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		// What a default container has: 14 capabilities, a seccomp filter, root.
		for _, want := range []string{"CapEff:\t00000000a80425fb", "Seccomp:\t2", "Uid:\t0\t"} {
			if !strings.Contains(status, want) {
				t.Errorf("no %q in:\n%s", want, status)
			}
		}
	})

	t.Run("the network", func(t *testing.T) {
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "from the host") }))
		defer host.Close()
		address, err := d.Forward(host.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(ctx, "network", "create", "job"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(ctx, "run", "--detach", "--network", "job", "--network-alias", "db", base, "sleep", "60"); err != nil {
			t.Fatal(err)
		}
		port := address[strings.LastIndexByte(address, ':')+1:]
		script := fmt.Sprintf(`getent hosts db >/dev/null && echo named; exec 3<>/dev/tcp/%s/%s
			printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3; echo; getent hosts elsewhere.test || echo unknown`, dockerAddress, port)
		out, err := d.Run(ctx, "run", "--rm", "--network", "job", base, "bash", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"named\n", "from the host\n", "unknown"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	})

	t.Run("packages while building", func(t *testing.T) {
		dir := t.TempDir()
		recipe := "ARG BASE\nFROM ${BASE}\nRUN apt-get update && apt-get install -y --no-install-recommends unzip\n"
		if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(recipe), 0o600); err != nil {
			t.Fatal(err)
		}
		image, err := d.Image(ctx, Recipe{Name: "unzip", Dir: dir, Args: map[string]string{"BASE": base}, Throw: true})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := d.Run(ctx, "run", "--rm", image, "sh", "-c", "unzip -v; env"); err != nil || !strings.Contains(out, "UnZip 6") || strings.Contains(out, "proxy") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

// TestDockerAbandoned: what killed tests have left is removed, what others use is not.
func TestDockerAbandoned(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := time.Now().Add(-time.Hour)
	folder := func(name string, changed time.Time) string {
		dir := filepath.Join(os.TempDir(), dockerFolder+name)
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, changed, changed); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	abandoned, used, young := folder("abandoned", old), folder("used", old), folder("young", time.Now())
	unlock, err := lockFolder(used)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := removeAbandoned(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{abandoned: false, used: true, young: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}

// TestDockerKilled: nothing of a daemon that dies in the middle is left but its folder and
// groups, which Close removes.
func TestDockerKilled(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	d := openDocker(ctx, t)
	base, err := d.Base(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mark := Random()
	if _, err := d.Run(ctx, "run", "--detach", base, "bash", "-c", "(setsid sleep 1000 &); sleep 1000; : "+mark); err != nil {
		t.Fatal(err)
	}
	running := func() (found int) {
		for _, p := range Processes() {
			if strings.Contains(p.Command, mark) {
				found++
			}
		}
		return found
	}
	if running() == 0 {
		t.Fatal("the container does not show among this machine's processes")
	}
	if err := d.daemon.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-d.daemon.done
	if left := running(); left != 0 {
		t.Errorf("%d processes outlive the daemon", left)
	}
}
