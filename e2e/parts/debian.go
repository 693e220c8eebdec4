package parts

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

//go:embed debian.sh
var debianScript string

// DebianSuite is the Debian release that containers are made of.
const DebianSuite = "bookworm"

// ErrNeedsRoot is returned where somebody else than root asks for what only root can make.
var ErrNeedsRoot = errors.New("needs root")

// A Debian is a minimal root file system, the base of all container images. No registry
// is asked: it is made from packages.
type Debian struct {
	Tar  string // path of the archive
	Key  string // changes with everything it is made of
	Took time.Duration
}

// BuildDebian returns the root file system from the cache and makes it first when it is
// not there, which takes one to two minutes. The packages come from where apt takes them
// on this machine.
func BuildDebian(ctx context.Context, cache string) (Debian, error) {
	if os.Geteuid() != 0 {
		return Debian{}, fmt.Errorf("a Debian root file system %w", ErrNeedsRoot)
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return Debian{}, fmt.Errorf("install Debian's package debootstrap: %w", err)
	}
	mirror, err := mirror(ctx)
	if err != nil {
		return Debian{}, err
	}
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join([]string{DebianSuite, mirror, runtime.GOARCH, debianScript}, "\x00"))))[:16]
	dir, took, err := Keep(ctx, cache, "debian-"+key, func(ctx context.Context, into string) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", debianScript, "debian.sh", DebianSuite, mirror)
		cmd.Dir = into
		cmd.Env = os.Environ()
		if proxy := AptProxy(ctx); proxy != "" {
			cmd.Env = append(cmd.Env, "http_proxy="+proxy) // debootstrap does not read apt's configuration
		}
		// Its chroot mounts file systems and may leave processes: both end with it.
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("debootstrap %s %s: %w\n%s", DebianSuite, mirror, err, out[max(0, len(out)-4000):])
		}
		return nil
	})
	return Debian{Tar: filepath.Join(dir, "base.tar"), Key: key, Took: took}, err
}

// mirror is where this machine's apt takes Debian's packages from: that of our release,
// else that of any.
func mirror(ctx context.Context) (string, error) {
	// Origin is empty until `apt-get update` has run.
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("asking apt for its sources: %w", err)
	}
	var same, other string
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(fields) != 4 || fields[2] != "main" || fields[3] != "" && fields[3] != "Debian":
		case fields[1] == DebianSuite:
			same = cmp.Or(same, fields[0])
		case fields[3] == "Debian" && !strings.Contains(fields[1], "-"): // not security, updates, backports
			other = cmp.Or(other, fields[0])
		}
	}
	if found := cmp.Or(same, other); found != "" {
		return found, nil
	}
	return "", errors.New("apt has no source of Debian's packages here (apt-get indextargets; was apt-get update run?)")
}

// AptProxy is the HTTP proxy apt is configured to use; "" for none, or where the
// environment names it.
func AptProxy(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "apt-config", "shell", "proxy", "Acquire::http::Proxy").Output()
	if err != nil {
		return "" // no apt: nothing is installed here anyway
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(out)), "=")
	value = strings.Trim(value, "'")
	if strings.EqualFold(value, "DIRECT") {
		return ""
	}
	return value
}
