package stand

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strings"
	"syscall"
)

// A user is who Gitea, the runners and so the jobs run as. Gitea refuses root, and a
// runner as root would prove nothing about permissions, so root borrows a uid that
// nobody has; anybody else runs the parts as themselves.
type user struct {
	uid, gid int
	name     string
	drop     bool
}

// firstUID is above what distributions hand out and below what container tools map.
const firstUID = 57000

func pickUser(place int) user {
	if os.Geteuid() != 0 {
		return user{uid: os.Geteuid(), gid: os.Getegid(), name: ownName()}
	}
	// The process id keeps two runs on one machine apart, and the place two stands of one run.
	id := firstUID + place*2500 + os.Getpid()%2500
	return user{uid: id, gid: id, name: "e2e", drop: true}
}

// ownName is the name Gitea will find for its user: that of the account, where there is one.
func ownName() string {
	if u, err := osuser.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), fmt.Sprintf("u%d", os.Geteuid()))
}

// command makes a command that runs as the user in dir, with nothing of the caller's
// environment but PATH, and dies with its group when the tests die.
func (u user) command(path, dir, home string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + u.path(), "HOME=" + home, "USER=" + u.name, "LOGNAME=" + u.name, "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if u.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.gid)} //nolint:gosec // small positive numbers
	}
	return cmd
}

// path is the caller's PATH without the folders the user cannot enter (root's home
// holds version managers whose shims come first and would fail).
func (u user) path() string {
	var keep []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && u.reaches(dir) {
			keep = append(keep, dir)
		}
	}
	return strings.Join(keep, string(filepath.ListSeparator))
}

func (u user) reaches(dir string) bool {
	if !u.drop {
		return true
	}
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o005 != 0o005 {
			return false
		}
		if d == filepath.Dir(d) {
			return true
		}
	}
}

// give makes the user the owner of a folder and all in it.
func (u user) give(dir string) error {
	if !u.drop {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, u.uid, u.gid)
	})
}
