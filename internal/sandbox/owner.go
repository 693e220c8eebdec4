package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// commandUser is the uid and gid of commands when the caller is root: a number no
// distribution hands out, so that no other process on the machine shares it.
const commandUser = 64646

// An Owner is who the worktree's files must belong to so that commands can change them.
type Owner struct {
	UID, GID int
	Drop     bool // false: leave files with the current user
}

// DropOwner is the owner commands will run as in this process. A root without the
// right to change users (a container that dropped CAP_SETUID, or a user namespace that does not
// map the number) keeps its own user, and the Report says so.
func DropOwner() Owner {
	uid, gid := os.Getuid(), os.Getgid()
	if os.Geteuid() != 0 || !mapped("/proc/self/uid_map") || !mapped("/proc/self/gid_map") || !mayChangeUser() {
		return Owner{UID: uid, GID: gid}
	}
	return Owner{UID: commandUser, GID: commandUser, Drop: true}
}

// mapped reports whether the user namespace knows commandUser (user_namespaces(7)).
func mapped(file string) bool {
	f, err := os.Open(file) // #nosec G304 -- one of two fixed names
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var inside, outside, count int64
		if _, err := fmt.Sscan(lines.Text(), &inside, &outside, &count); err == nil && commandUser >= inside && commandUser < inside+count {
			return true
		}
	}
	return false
}

func mayChangeUser() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	const need = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN | 1<<unix.CAP_KILL
	return data[0].Effective&need == need
}

// Reachable reports whether commands could enter dir, which need not exist yet: every
// existing folder above it lets them pass.
func Reachable(dir string) bool {
	o := DropOwner()
	for {
		if _, err := os.Stat(dir); err == nil {
			return o.enters(dir)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// enters reports whether the owner may search dir and everything above it.
func (o Owner) enters(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(real) {
		return false
	}
	if !o.Drop {
		return true
	}
	for path := real; ; path = filepath.Dir(path) {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil || !o.searches(&st) {
			return false
		}
		if path == "/" {
			return true
		}
	}
}

func (o Owner) searches(st *unix.Stat_t) bool {
	switch {
	case int(st.Uid) == o.UID:
		return st.Mode&0o100 != 0
	case int(st.Gid) == o.GID:
		return st.Mode&0o010 != 0
	default:
		return st.Mode&0o001 != 0
	}
}

// searchPath is the caller's PATH less what is relative, missing or closed to the
// owner. A relative entry would let a file of the worktree stand in for a program.
func (o Owner) searchPath(path string) string {
	var kept []string
	seen := map[string]bool{}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || seen[dir] {
			continue
		}
		seen[dir] = true
		if info, err := os.Stat(dir); err == nil && info.IsDir() && o.enters(dir) {
			kept = append(kept, dir)
		}
	}
	if len(kept) == 0 {
		return "/usr/local/bin:/usr/bin:/bin"
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}
