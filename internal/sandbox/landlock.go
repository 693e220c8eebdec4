package sandbox

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileRules are the folders and files a command may use; everything else is closed to it. Paths that do not
// exist are left out. A file in place of a folder gets only the rights that files have.
type fileRules struct {
	Write   []string // read, write, make, remove, rename, execute
	Read    []string // read, list, execute
	Devices []string // read, write and ioctl of single device files
}

// Rights on files by the version of Landlock that brought them (landlock(7)).
const (
	rightsV1 = 1<<13 - 1 // execute to make symbolic links
	rightsV2 = unix.LANDLOCK_ACCESS_FS_REFER
	rightsV3 = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsV5 = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsV9 = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
)

// What rules give.
const (
	readRights   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights  = (rightsV1 | rightsV2 | rightsV3 | rightsV9) &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | rightsV3 | rightsV5
	// rightsOfFiles are all that the kernel takes for something that is not a folder.
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | deviceRights
)

// allScopes keep signals and connections to abstract sockets inside of the domain.
const allScopes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL

// landlockABI is the kernel's Landlock version; 0 where there is none.
func landlockABI() int {
	version, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 { // ENOSYS: not built in; EOPNOTSUPP: not enabled; EPERM: a container's filter
		return 0
	}
	return forcedABI(int(version)) // #nosec G115 -- a small number
}

// newRuleset builds the domain of a command for a kernel of this version: files; connecting by TCP unless tcp is true (no connect at
// all, since the broker's sockets are made outside of the domain; to bind stays open, for tests that start servers); and signal and
// abstract-socket scopes where the version has them.
// The descriptor is close-on-exec and can be used for any number of commands.
func newRuleset(abi int, files fileRules, tcp bool) (fd int, err error) {
	attr := commandRuleset(abi, tcp)
	if fd, err = createRuleset(attr); err != nil {
		return -1, err
	}
	for _, rule := range []struct {
		paths  []string
		rights uint64
	}{{files.Write, writeRights}, {files.Read, readRights}, {files.Devices, deviceRights}} {
		for _, path := range rule.paths {
			if err := addPath(fd, path, rule.rights&attr.Handled_access_fs); err != nil {
				return -1, errors.Join(fmt.Errorf("adding %s to the Landlock rules: %w", path, err), unix.Close(fd))
			}
		}
	}
	return fd, nil
}

// commandRuleset is what a command's domain closes, in a kernel of this version. What a version does not have yet stays zero, and a
// kernel takes a structure that is longer than its own as long as the rest is zero.
func commandRuleset(abi int, tcp bool) unix.LandlockRulesetAttr {
	var attr unix.LandlockRulesetAttr
	if !removed(layerFiles) {
		for _, added := range []struct {
			abi    int
			rights uint64
		}{{1, rightsV1}, {2, rightsV2}, {3, rightsV3}, {5, rightsV5}, {9, rightsV9}} {
			if abi >= added.abi {
				attr.Handled_access_fs |= added.rights
			}
		}
	}
	if abi >= 4 && !tcp && !removed(layerTCP) {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 && !removed(layerScopes) {
		attr.Scoped = allScopes
	}
	return attr
}

// newScopes builds the executor's own domain, which has no file rules but the scopes (version 6 and later).
func newScopes(abi int) (fd int, err error) {
	if abi < 6 {
		return -1, fmt.Errorf("version 6 of Landlock is needed to keep signals inside, this kernel has %d: Linux 6.12", abi)
	}
	// Every layer that does not grant it denies renames between folders (landlock(7), REFER): this one leaves them to the next.
	fd, err = createRuleset(unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER, Scoped: allScopes})
	if err == nil {
		err = addPath(fd, "/", unix.LANDLOCK_ACCESS_FS_REFER)
	}
	return fd, err
}

func createRuleset(attr unix.LandlockRulesetAttr) (int, error) {
	if attr == (unix.LandlockRulesetAttr{}) {
		return -1, errors.New("this kernel's Landlock has nothing that is to be closed")
	}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) // #nosec G103 -- the kernel reads it
	if e != 0 {
		return -1, fmt.Errorf("creating a Landlock ruleset: %w", e)
	}
	return int(fd), nil // #nosec G115 -- a descriptor
}

// addPath gives rights below path, which may be a link. A path that is not there, or that this user cannot reach, is left out: the
// commands, who have no more rights, could not use it either.
func addPath(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP):
		return nil
	case err != nil:
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	if rights == 0 { // nothing that this version could close, so it is open
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)} // #nosec G115 -- a descriptor
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0) // #nosec G103 -- the kernel reads it
	if e != 0 {
		return e
	}
	return nil
}

// restrict puts the calling thread, which must be locked and have no-new-privs, into the domain.
func restrict(fd int) error {
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); e != 0 {
		return fmt.Errorf("entering a Landlock domain: %w", e)
	}
	return nil
}
