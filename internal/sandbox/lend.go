package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// A lender is the owner of a worktree that is not the commands' user's own, such as the folder of `issuesmith sandbox` run by root.
type lender struct{ UID, GID int }

// lend returns a detached mount of a folder in which the lender's files belong to the commands' user, and what that user makes belongs
// to the lender on disk (mount_setattr(2), MOUNT_ATTR_IDMAP, Linux 5.12 and a file system that takes part). Nothing on disk
// changes hands.
func (o *order) lend(path string) (fd int, err error) {
	namespace, err := o.mapping()
	if err != nil {
		return -1, fmt.Errorf("lending %s: %w", path, err)
	}
	defer func() { _ = unix.Close(namespace) }()
	if fd, err = unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
		return -1, fmt.Errorf("lending %s: %w", path, err)
	}
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)} // #nosec G115 -- a descriptor
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("lending %s: %w", path, err)
	}
	return fd, nil
}

// mapping is a descriptor of a user namespace that maps the lender to the commands' user. The process that it is made with ends.
func (o *order) mapping() (int, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return -1, err
	}
	cmd := exec.Command(o.Shell, "-c", "read -r end") // #nosec G204 -- the shell that was found
	cmd.Stdin, cmd.Env = read, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: o.Lender.UID, HostID: o.UID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: o.Lender.GID, HostID: o.GID, Size: 1}},
	}
	err = cmd.Start()
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		return -1, err
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = write.Close()
	_ = cmd.Wait()
	return fd, err
}
