package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// cloneFlags are the namespaces of an order.
func (o *order) cloneFlags() uintptr {
	if !o.Namespaces {
		return 0
	}
	var flags uintptr
	for layer, flag := range map[string]uintptr{layerPIDNS: unix.CLONE_NEWPID, layerMountNS: unix.CLONE_NEWNS, layerIPCNS: unix.CLONE_NEWIPC} {
		if !removed(layer) {
			flags |= flag
		}
	}
	if o.UserNS {
		flags |= unix.CLONE_NEWUSER
	}
	if o.isolated() {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// enterNamespaces makes the new namespaces a place to work in. Creating namespaces proves nothing where a security module
// lets them be made and then forbids to mount (user_namespaces(7), AppArmor): an error here means "not available".
func (o *order) enterNamespaces() error {
	if o.isolated() {
		if err := loopbackUp(); err != nil {
			return err
		}
	}
	if removed(layerMountNS) {
		return nil
	}
	return o.mountAll()
}

// loopbackUp sets the interface lo of an empty network namespace up.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("setting loopback up: %w", err)
	}
	defer func() { _ = unix.Close(s) }()
	ifr, err := unix.NewIfreq("lo")
	if err == nil {
		ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
	}
	if err != nil {
		return fmt.Errorf("setting loopback up: %w", err)
	}
	return nil
}

// mountAll lays out what commands see: their own folders writable, everything else read-only, with a private /proc, /dev/shm,
// /tmp, /etc/hosts and, when the network is closed, an empty /etc/resolv.conf.
func (o *order) mountAll() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts private: %w", err)
	}
	if !removed(layerPIDNS) {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mounting /proc: %w", err)
		}
	}
	writable, err := o.mountFolders()
	if err != nil {
		return err
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		options := fmt.Sprintf("mode=1777,size=%d", o.Limits.withDefaults().Memory/2)
		if err := unix.Mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return fmt.Errorf("mounting /dev/shm: %w", err)
		}
		if err := o.mountNames("/dev/shm"); err != nil {
			return err
		}
		writable = append(writable, "/dev/shm")
	}
	return readOnlyBut(writable)
}

// mountFolders makes a mount of each writable folder and puts the private TMPDIR in the place of /tmp. What lies below
// /tmp and is used inside is put back into its place.
func (o *order) mountFolders() (writable []string, err error) {
	type place struct {
		path string
		fd   int
		lent bool // a detached mount
	}
	var below []place
	defer func() {
		for _, p := range below {
			_ = unix.Close(p.fd)
		}
	}()
	hidden := func(path string) bool { return strings.HasPrefix(path, "/tmp/") }
	worktree := ""
	if o.Lender != nil {
		// Where the file system does not take part commands can do with the folder what its permissions say.
		if fd, err := o.lend(o.Folders[0]); err == nil {
			worktree = o.Folders[0]
			below = append(below, place{worktree, fd, true})
		}
	}
	for _, path := range append(append([]string{}, o.Folders...), o.Files.Read...) {
		if !hidden(path) || path == worktree {
			continue
		}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
		below = append(below, place{path, fd, false})
	}
	for _, path := range o.Folders {
		if !hidden(path) && path != worktree {
			if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
				return nil, fmt.Errorf("mounting %s: %w", path, err)
			}
		}
		writable = append(writable, path)
	}
	if err := unix.Mount(o.Tmp, "/tmp", "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("mounting a private /tmp: %w", err)
	}
	for _, p := range below {
		if err := putBack(p.path, p.fd, p.lent); err != nil {
			return nil, err
		}
	}
	return append(writable, "/tmp"), nil
}

// putBack mounts what fd is at path, which the private /tmp may hide.
func putBack(path string, fd int, detached bool) error {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil {
		// Other users must be able to pass.
		err = os.MkdirAll(filepath.Dir(path), 0o755) // #nosec G301 -- folders on the way
	}
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = os.MkdirAll(path, 0o755) // #nosec G301 -- a mount point
	} else if err == nil {
		var file *os.File
		if file, err = os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644); err == nil { // #nosec G302,G304 -- a mount point
			err = file.Close()
		}
	}
	switch {
	case err != nil:
	case detached:
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	default:
		err = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), path, "", unix.MS_BIND, "")
	}
	if err != nil {
		return fmt.Errorf("mounting %s in the private /tmp: %w", path, err)
	}
	return nil
}

// mountNames binds the private hosts file and, where the network is closed, an empty resolv.conf, so that lookups
// fail at once instead of waiting for a server that cannot be reached. Their names in folder are removed again.
func (o *order) mountNames(folder string) error {
	files := map[string]string{"/etc/hosts": o.Hosts}
	if !o.Open {
		files["/etc/resolv.conf"] = ""
	}
	for path, text := range files {
		if _, err := os.Stat(path); err != nil {
			continue // nothing to bind over: the file is missing or leads nowhere
		}
		source := filepath.Join(folder, filepath.Base(path))
		err := os.WriteFile(source, []byte(text), 0o644) // #nosec G306 -- for the commands to read
		if err == nil {
			err = unix.Mount(source, path, "", unix.MS_BIND, "")
		}
		if err == nil {
			err = os.Remove(source)
		}
		if err != nil {
			return fmt.Errorf("mounting %s: %w", path, err)
		}
	}
	return nil
}

// readOnlyBut makes every mount read-only and the given ones writable again (mount_setattr(2), Linux 5.12).
func readOnlyBut(writable []string) error {
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all)
	if err != nil {
		return fmt.Errorf("making everything else read-only: %w", err)
	}
	for _, path := range writable {
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("making %s writable: %w", path, err)
		}
	}
	return nil
}
