//nolint:gosec // bare system calls are what this program is for
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

var kernelAttempts = map[string]func([]string) verdict{
	"unshare":       unshare,
	"clone":         cloneNamespaces,
	"setns":         setns,
	"mount":         mount,
	"mount-new":     mountNew,
	"chroot":        chroot,
	"io-uring":      ioUring,
	"bpf":           bpf,
	"perf":          perf,
	"keyring":       keyring,
	"userfaultfd":   userfaultfd,
	"file-handle":   fileHandle,
	"modules":       modules,
	"terminal":      terminal,
	"shared-memory": sharedMemory,
	"ipc":           ipc,
}

func uintptrOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

var namespaces = map[string]uintptr{
	"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "network": unix.CLONE_NEWNET,
	"ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "time": unix.CLONE_NEWTIME,
}

func unshare([]string) verdict {
	var t tries
	for name, flag := range namespaces {
		t.note("unshared the "+name+" namespace", inFork(unix.SYS_UNSHARE, [3]uintptr{flag}))
		t.note("unshared the "+name+" and user namespaces", inFork(unix.SYS_UNSHARE, [3]uintptr{flag | unix.CLONE_NEWUSER}))
	}
	return t.verdict()
}

func cloneNamespaces([]string) verdict {
	var t tries
	for name, flag := range namespaces {
		if flag == unix.CLONE_NEWTIME {
			continue // clone has no such flag, only clone3
		}
		for _, more := range []uintptr{0, unix.CLONE_NEWUSER} {
			pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flag|more|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if pid == 0 && errno == 0 {
				exit(0)
			}
			t.note("cloned into a "+name+" namespace", errnoOrNil(errno))
			if errno == 0 {
				_, _ = unix.Wait4(int(pid), nil, 0, nil)
			}
		}
	}
	// clone3, whose flags a filter cannot see.
	args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{
		flags: unix.CLONE_NEWUSER, exitSignal: uint64(unix.SIGCHLD),
	}
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptrOf(&args), unsafe.Sizeof(args), 0)
	if pid == 0 && errno == 0 {
		exit(0)
	}
	t.note("cloned into a user namespace with clone3", errnoOrNil(errno))
	return t.verdict()
}

// setns enters the namespaces of this process and of what it can see.
func setns([]string) verdict {
	var t tries
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/*") // a good pattern
	paths = append([]string{"/proc/self/ns/uts", "/proc/self/ns/net", "/proc/self/ns/ipc"}, paths...)
	for _, path := range paths[:min(len(paths), 400)] {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.note(path, err)
			continue
		}
		t.note("entered "+path, inFork(unix.SYS_SETNS, [3]uintptr{uintptr(fd), 0}))
		_ = unix.Close(fd)
	}
	return t.verdict()
}

// mount mounts with the old calls, and takes away again what worked.
func mount([]string) verdict {
	var t tries
	if err := os.MkdirAll("mounted", 0o755); err != nil {
		return untested("%v", err)
	}
	defer os.Remove("mounted") //nolint:errcheck // a mount point
	for _, m := range []struct {
		source, kind string
		flags        uintptr
	}{{"none", "tmpfs", 0}, {"proc", "proc", 0}, {"/", "", unix.MS_BIND}, {"/etc", "", unix.MS_BIND | unix.MS_REC}} {
		err := unix.Mount(m.source, "mounted", m.kind, m.flags, "")
		t.note("mounted "+m.source, err)
		if err == nil {
			_ = unix.Unmount("mounted", unix.MNT_DETACH)
		}
	}
	for _, place := range []string{"/tmp", "/proc", "/dev/shm", "/etc/hosts"} {
		if len(t.through) == 0 {
			t.note("unmounted "+place, unix.Unmount(place, unix.MNT_DETACH))
			t.note("made "+place+" writable", unix.Mount("", place, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
		}
	}
	return t.verdict()
}

// mountNew mounts with the calls of Linux 5.2 and later.
func mountNew([]string) verdict {
	var t tries
	fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err == nil {
		_ = unix.Close(fd)
	}
	t.note("cloned the mount tree", err)
	fd, err = unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err == nil {
		_ = unix.Close(fd)
	}
	t.note("opened a file system", err)
	fd, err = unix.Fspick(unix.AT_FDCWD, "/proc", unix.FSPICK_CLOEXEC)
	if err == nil {
		_ = unix.Close(fd)
	}
	t.note("picked a file system", err)
	if len(t.through) == 0 {
		t.note("changed a mount", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	}
	return t.verdict()
}

func chroot([]string) verdict {
	var t tries
	here := []byte(".\x00")
	t.note("changed the root", inFork(unix.SYS_CHROOT, [3]uintptr{uintptrOf(&here[0])}))
	t.note("pivoted the root", inFork(unix.SYS_PIVOT_ROOT, [3]uintptr{uintptrOf(&here[0]), uintptrOf(&here[0])}))
	runtime.KeepAlive(here)
	// pivot_root answers EINVAL to whoever may call it.
	return t.verdict()
}

func ioUring([]string) verdict {
	var t tries
	params := make([]byte, 120)
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 2, uintptrOf(&params[0]), 0)
	if errno == 0 {
		_ = unix.Close(int(fd))
	}
	t.note("set up a ring", errnoOrNil(errno))
	return t.verdict()
}

func bpf([]string) verdict {
	var t tries
	// BPF_MAP_CREATE of an array of one 4-byte value.
	attr := [16]uint32{2, 4, 4, 1}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, 0, uintptrOf(&attr), unsafe.Sizeof(attr))
	if errno == 0 {
		_ = unix.Close(int(fd))
	}
	t.note("made a map", errnoOrNil(errno))
	return t.verdict()
}

func perf([]string) verdict {
	var t tries
	for _, pid := range []int{0, -1, os.Getppid()} {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
		attr.Size = uint32(unsafe.Sizeof(attr))
		cpu := -1
		if pid == -1 {
			cpu = 0
		}
		fd, err := unix.PerfEventOpen(&attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err == nil {
			_ = unix.Close(fd)
		}
		t.note(fmt.Sprintf("opened an event on %d", pid), err)
	}
	return t.verdict()
}

// keyring reads the session's keyring and adds to it. args: serial numbers of planted keys.
func keyring(args []string) verdict {
	var t tries
	id, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
	t.note(fmt.Sprintf("found the user's keyring %d", id), err)
	_, err = unix.AddKey("user", "escaped", []byte("x"), unix.KEY_SPEC_USER_KEYRING)
	t.note("added a key", err)
	_, err = unix.RequestKey("user", "planted", "", 0)
	if err == nil || !errors.Is(err, unix.ENOKEY) {
		t.note("asked for a key", err)
	}
	for _, arg := range args {
		serial, err := strconv.Atoi(arg)
		if err != nil {
			continue
		}
		data := make([]byte, 256)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, serial, data, 0)
		if err == nil {
			show("key "+arg, data[:min(n, len(data))])
		}
		t.note("read key "+arg, err)
	}
	return t.verdict()
}

func userfaultfd([]string) verdict {
	var t tries
	for _, flags := range []uintptr{unix.O_CLOEXEC, unix.O_CLOEXEC | 1} { // 1: UFFD_USER_MODE_ONLY
		fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, flags, 0, 0)
		if errno == 0 {
			_ = unix.Close(int(fd))
		}
		t.note("made a userfaultfd", errnoOrNil(errno))
	}
	return t.verdict()
}

// fileHandle opens a file by its handle, which no path rule sees.
func fileHandle(args []string) verdict {
	var t tries
	for _, path := range args {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
		if err != nil {
			t.note(path, err)
			continue
		}
		for _, on := range []string{".", "/"} {
			mount, err := unix.Open(on, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.note(on, err)
				continue
			}
			fd, err := unix.OpenByHandleAt(mount, handle, unix.O_RDONLY|unix.O_CLOEXEC)
			if err == nil {
				data := make([]byte, 1<<12)
				n, _ := unix.Read(fd, data)
				show(path, data[:max(n, 0)])
				_ = unix.Close(fd)
			}
			t.note("opened "+path+" by its handle", err)
			_ = unix.Close(mount)
		}
	}
	return t.verdict()
}

// modules tries what changes the whole machine, in forms that would do nothing if they were let through.
func modules([]string) verdict {
	var t tries
	behind := func(errno unix.Errno) error {
		switch errno {
		case 0, unix.EINVAL, unix.ENOEXEC, unix.EFAULT:
			return nil // refused for its arguments, behind the question who asks
		}
		return errno
	}
	// Calls that ask who wants it before they look at their arguments.
	for name, call := range map[string][4]uintptr{
		"init_module":   {unix.SYS_INIT_MODULE},
		"delete_module": {unix.SYS_DELETE_MODULE},
		"kexec_load":    {unix.SYS_KEXEC_LOAD, 0, 1 << 20},
		"swapon":        {unix.SYS_SWAPON},
		"reboot":        {unix.SYS_REBOOT},
		"acct":          {unix.SYS_ACCT, 1},
		"sethostname":   {unix.SYS_SETHOSTNAME, 1, 1},
	} {
		_, _, errno := unix.Syscall(call[0], call[1], call[2], call[3])
		t.note(name, behind(errno))
	}
	return t.verdict()
}

// terminal types into a terminal (TIOCSTI): the one it was started on, where there is one, and one of its own.
func terminal([]string) verdict {
	var t tries
	for _, path := range []string{"/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"} {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			t.note(path, err)
			continue
		}
		t.note("typed into "+path, typeInto(fd))
		_ = unix.Close(fd)
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.note("/dev/ptmx", err)
		return t.verdict()
	}
	_ = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.note("a terminal of its own", errno)
		return t.verdict()
	}
	_ = unix.IoctlSetInt(int(slave), unix.TIOCSCTTY, 0)
	t.note("typed into a terminal of its own", typeInto(int(slave)))
	return t.verdict()
}

func typeInto(fd int) error {
	key := byte('x')
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptrOf(&key))
	return errnoOrNil(errno)
}

// sharedMemory attaches a planted segment, by its number.
func sharedMemory(args []string) verdict {
	var t tries
	for _, arg := range args {
		id, err := strconv.Atoi(arg)
		if err != nil {
			continue
		}
		data, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
		if err == nil {
			show("segment "+arg, data[:min(len(data), 256)])
			err = unix.SysvShmDetach(data)
		}
		t.note("attached segment "+arg, err)
	}
	return t.verdict()
}

// ipc makes objects of System V and POSIX that outlive their process.
func ipc([]string) verdict {
	var t tries
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	t.note("made shared memory", err)
	for name, call := range map[string][2]uintptr{"queue": {unix.SYS_MSGGET, unix.SYS_MSGCTL}, "semaphore": {unix.SYS_SEMGET, unix.SYS_SEMCTL}} {
		var id uintptr
		var errno unix.Errno
		if name == "queue" {
			id, _, errno = unix.Syscall(call[0], unix.IPC_PRIVATE, unix.IPC_CREAT|0o600, 0)
		} else {
			id, _, errno = unix.Syscall(call[0], unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600)
		}
		if errno == 0 && name == "queue" {
			_, _, _ = unix.Syscall(call[1], id, unix.IPC_RMID, 0)
		} else if errno == 0 {
			_, _, _ = unix.Syscall(call[1], id, 0, unix.IPC_RMID)
		}
		t.note("made a "+name, errnoOrNil(errno))
	}
	return t.verdict()
}
