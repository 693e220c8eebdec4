//nolint:gosec // bare system calls are what this program is for
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var fileAttempts = map[string]func([]string) verdict{
	"read":        readFiles,
	"symlink":     symlink,
	"hard-link":   hardLink,
	"rename-out":  renameOut,
	"rename-in":   renameIn,
	"exchange":    exchange,
	"make":        makeFiles,
	"append":      func(args []string) verdict { return writeExisting(args, unix.O_WRONLY|unix.O_APPEND) },
	"truncate":    truncate,
	"remove":      remove,
	"chmod":       chmod,
	"utime":       utime,
	"xattr":       xattr,
	"chown":       chown,
	"mknod":       mknod,
	"open-device": openDevice,
	"set-uid":     setUID,
	"shm-read":    readFiles,
}

func readFiles(args []string) verdict {
	var t tries
	for _, path := range args {
		t.read(path)
		if entries, err := os.ReadDir(path); err == nil {
			for _, entry := range entries {
				t.read(filepath.Join(path, entry.Name()))
			}
		}
	}
	return t.verdict()
}

// symlink reads a file through links that lie in the worktree.
func symlink(args []string) verdict {
	var t tries
	for i, target := range args {
		name := fmt.Sprintf("link-%d", i)
		for _, to := range []string{target, "/proc/self/root" + target, "/proc/1/root" + target} {
			if err := os.Symlink(to, name); err != nil {
				t.note("link", err)
				continue
			}
			t.read(name)
			_ = os.Remove(name)
		}
		// A link in place of a folder on the way.
		if err := os.Symlink(filepath.Dir(target), name); err == nil {
			t.read(filepath.Join(name, filepath.Base(target)))
			_ = os.Remove(name)
		}
	}
	return t.verdict()
}

func hardLink(args []string) verdict {
	var t tries
	for i, target := range args {
		name := fmt.Sprintf("hard-%d", i)
		err := os.Link(target, name)
		t.note("linked "+target, err)
		if err == nil {
			t.read(name)
			_ = os.Remove(name)
		}
		fd, err := unix.Open(target, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.note(target, err)
			continue
		}
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
		t.note("linked "+target+" by its descriptor", err)
		_ = os.Remove(name)
		_ = unix.Close(fd)
	}
	return t.verdict()
}

// renameOut moves a file of the worktree into the folder given, under the name given.
func renameOut(args []string) verdict {
	var t tries
	for _, to := range args {
		if err := os.WriteFile("going-out", []byte("out\n"), 0o600); err != nil {
			return untested("%v", err)
		}
		t.note("moved a file to "+to, unix.Rename("going-out", to))
		t.note("linked a file to "+to, unix.Link("going-out", to))
	}
	_ = os.Remove("going-out")
	return t.verdict()
}

func renameIn(args []string) verdict {
	var t tries
	for i, from := range args {
		name := fmt.Sprintf("in-%d", i)
		err := unix.Rename(from, name)
		t.note("moved "+from+" in", err)
		if err == nil {
			t.read(name)
			_ = os.Remove(name)
		}
	}
	return t.verdict()
}

func exchange(args []string) verdict {
	var t tries
	for _, other := range args {
		if err := os.WriteFile("exchanged", []byte("from inside\n"), 0o600); err != nil {
			return untested("%v", err)
		}
		err := unix.Renameat2(unix.AT_FDCWD, "exchanged", unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		t.note("exchanged "+other, err)
		t.read("exchanged")
		t.through = withoutRead(t.through)
	}
	_ = os.Remove("exchanged")
	return t.verdict()
}

// withoutRead leaves out that the own file could be read.
func withoutRead(through []string) []string {
	var kept []string
	for _, way := range through {
		if !strings.HasPrefix(way, "read ") {
			kept = append(kept, way)
		}
	}
	return kept
}

// makeFiles makes files, folders above them included. A private place in the stead of the real one is fine, so
// whether it had an effect is seen from outside.
func makeFiles(args []string) verdict {
	t := tries{only: wordDone}
	for _, path := range args {
		_ = os.MkdirAll(filepath.Dir(path), 0o777)
		t.note("made "+path, os.WriteFile(path, []byte("from inside\n"), 0o666))
		t.note("made a link "+path, os.Symlink("/etc/passwd", path+"-link"))
		t.note("made a folder "+path, os.Mkdir(path+"-folder", 0o777))
	}
	return t.verdict()
}

func writeExisting(args []string, flags int) verdict {
	t := tries{only: wordDone}
	for _, path := range args {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fd, []byte("from inside\n"))
			_ = unix.Close(fd)
		}
		t.note("wrote to "+path, err)
	}
	return t.verdict()
}

func truncate(args []string) verdict {
	t := tries{only: wordDone}
	for _, path := range args {
		t.note("truncated "+path, unix.Truncate(path, 1))
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		t.note("truncated "+path+" by opening it", err)
	}
	return t.verdict()
}

func remove(args []string) verdict {
	t := tries{only: wordDone}
	for _, path := range args {
		t.note("removed "+path, os.Remove(path))
	}
	return t.verdict()
}

// byDescriptor are the names of a file for calls that take a path: its own, and that of a descriptor opened without rights.
func byDescriptor(path string) []string {
	names := []string{path}
	if fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
		names = append(names, fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	return names
}

func chmod(args []string) verdict {
	var t tries
	for _, path := range args {
		for _, name := range byDescriptor(path) {
			t.note("changed the mode of "+path, unix.Chmod(name, 0o777))
			t.note("changed the mode of "+path, fchmodat2(name))
		}
	}
	return t.verdict()
}

func utime(args []string) verdict {
	var t tries
	for _, path := range args {
		for _, name := range byDescriptor(path) {
			past := unix.NsecToTimeval(time.Unix(1e9, 0).UnixNano())
			t.note("changed the times of "+path, unix.Utimes(name, []unix.Timeval{past, past}))
			now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
			t.note("touched "+path, unix.UtimesNanoAt(unix.AT_FDCWD, name, now, 0))
		}
	}
	return t.verdict()
}

func xattr(args []string) verdict {
	var t tries
	for _, path := range args {
		for _, name := range byDescriptor(path) {
			t.note("set an attribute of "+path, unix.Setxattr(name, "user.escaped", []byte("1"), 0))
			t.note("removed an attribute of "+path, unix.Removexattr(name, "user.planted"))
		}
	}
	return t.verdict()
}

func chown(args []string) verdict {
	var t tries
	for _, path := range args {
		for _, name := range byDescriptor(path) {
			t.note("changed the owner of "+path, unix.Chown(name, os.Getuid(), os.Getgid()))
		}
	}
	return t.verdict()
}

// mknod makes devices where files may be made, and opens them.
func mknod([]string) verdict {
	var t tries
	places := []string{".", os.TempDir(), os.Getenv("HOME"), "/dev/shm"}
	devices := map[string]struct {
		mode uint32
		dev  int
	}{
		"kmsg":  {unix.S_IFCHR | 0o666, int(unix.Mkdev(1, 11))},
		"mem":   {unix.S_IFCHR | 0o666, int(unix.Mkdev(1, 1))},
		"disk":  {unix.S_IFBLK | 0o666, int(unix.Mkdev(254, 0))},
		"loop0": {unix.S_IFBLK | 0o666, int(unix.Mkdev(7, 0))},
	}
	for _, place := range places {
		for name, d := range devices {
			path := filepath.Join(place, "device-"+name)
			err := unix.Mknod(path, d.mode, d.dev)
			t.note("made "+path, err)
			_ = os.Remove(path)
		}
	}
	return t.verdict()
}

// openDevice opens device files that are more than the listed few.
func openDevice([]string) verdict {
	var t tries
	for _, pattern := range []string{"/dev/vd*", "/dev/sd*", "/dev/nvme*", "/dev/loop*", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/port", "/dev/ptmx", "/dev/console", "/dev/vhost*", "/dev/vsock"} {
		paths, _ := filepath.Glob(pattern) // a good pattern
		for _, path := range paths {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOMEDIUM) {
				continue // there is nothing behind it
			}
			if err == nil {
				_ = unix.Close(fd)
			}
			t.note("opened "+path, err)
		}
	}
	return t.verdict()
}

// setUID runs programs that would run as another user, or with more rights.
func setUID(args []string) verdict {
	var t tries
	for _, path := range args {
		out, err := exec.Command(path, "who").Output()
		if err != nil {
			t.note(path, err)
			continue
		}
		var euid int
		var effective uint64
		if _, err := fmt.Sscanf(string(out), "euid %d effective %x", &euid, &effective); err != nil {
			t.note(path, err)
			continue
		}
		switch {
		case euid != os.Getuid():
			t.note(fmt.Sprintf("%s ran as user %d", path, euid), nil)
		case os.Getuid() != 0 && effective != 0:
			t.note(fmt.Sprintf("%s ran with capabilities %x", path, effective), nil)
		default:
			t.note(path, errors.New("no gain"))
		}
	}
	return t.verdict()
}

// who says as whom it runs.
func who([]string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "CapEff:"); ok {
			_, err = fmt.Printf("euid %d effective %s\n", os.Geteuid(), strings.TrimSpace(rest))
		}
	}
	return err
}

// fchmodat2 is the newer call (Linux 6.6), which a filter that names only the old ones would miss.
func fchmodat2(path string) error {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(at), uintptr(unsafe.Pointer(name)), 0o777, 0, 0, 0)
	return errnoOrNil(errno)
}
