package escape

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Attempts lists the attempts that a command makes by itself. Those of row 25, 28 and 30 are made by the test.
func Attempts() []Attempt {
	var all []Attempt
	for _, group := range [][]Attempt{memoryAttempts(), fileAttempts(), kernelAttempts(), processAttempts(), networkAttempts(), lifetimeAttempts()} {
		all = append(all, group...)
	}
	return all
}

// onOthers tries something on all processes inside, and only on the sibling outside.
func onOthers(row int, name, attempt string) Attempt {
	return Attempt{Row: row, Name: name, Args: []string{attempt, "all", "$sibling"}, Control: []string{attempt, "$sibling"}}
}

func memoryAttempts() []Attempt {
	return []Attempt{
		onOthers(1, "environ of every process", "environ"),
		onOthers(1, "environ of every task", "environ-tasks"),
		onOthers(2, "mem", "mem"),
		onOthers(2, "maps, smaps, auxv, stack, pagemap", "maps"),
		onOthers(2, "cwd, root, exe, descriptors", "links"),
		onOthers(3, "PTRACE_SEIZE", "seize"),
		onOthers(3, "process_vm_readv", "vm-read"),
		onOthers(3, "process_vm_writev", "vm-write"),
		onOthers(3, "pidfd_getfd", "pidfd-getfd"),
		{Row: 4, Name: "secrets in the product's cmdlines", Args: []string{"cmdline", "$secret", "argument"}, Control: []string{"cmdline", "$secret"}},
		{Row: 4, Name: "secrets in other cmdlines", Args: []string{"cmdline", "$secret"}, Open: "command lines of other processes"},
		{Row: 6, Name: "own environment and descriptors", Args: []string{"own"}},
	}
}

func reads(what string, paths ...string) Attempt {
	return Attempt{Row: 5, Name: what, Args: append([]string{"read"}, paths...)}
}

func writes(row int, name string, attempt string, paths ...string) Attempt {
	return Attempt{Row: row, Name: name, Args: append([]string{attempt}, paths...)}
}

func fileAttempts() []Attempt {
	made := func(name, path string) Attempt {
		return Attempt{Row: 9, Name: name, Args: []string{"make", path}, Gone: []string{path, path + "-link", path + "-folder"}}
	}
	metadata := func(name, attempt string) Attempt {
		return Attempt{Row: 10, Name: name, Args: []string{attempt, "$dir/outside/file", "$dir/outside/everybody", "$dir/outside"}, Open: "chmod, utime and xattr"}
	}
	return []Attempt{
		reads("checkout's .git/config", "$dir/job/checkout/.git/config"),
		reads("event file", "$dir/job/event.json"),
		reads("runner's registration", "$dir/runner/.runner"),
		reads("netrc, git and npm credentials", "$dir/home/.netrc", "$dir/home/.git-credentials", "$dir/home/.npmrc"),
		reads("docker's configuration", "$dir/home/.docker/config.json"),
		reads("ssh keys", "$dir/home/.ssh/id_ed25519", "$dir/home/.ssh"),
		reads("step scripts and command files", "$dir/job/workflow/0.sh", "$dir/job/workflow/set_env", "$dir/job/workflow/set_output"),
		reads("other actions' folders", "$dir/job/actions/other/.git/config", "$dir/job/actions/other/state"),
		reads("/etc/shadow", "/etc/shadow", "/etc/gshadow"),
		{Row: 7, Name: "symlink to a secret", Args: []string{"symlink", "$dir/home/.netrc", "$dir/job/event.json"}},
		{Row: 8, Name: "hard link in", Args: []string{"hard-link", "$dir/outside/file", "$dir/home/.netrc"}},
		writes(8, "rename in", "rename-in", "$dir/outside/file"),
		writes(8, "rename out", "rename-out", "$dir/outside/moved", "/var/tmp/escape-moved-$secret"),
		writes(8, "exchange", "exchange", "$dir/outside/file"),
		made("make files in /usr", "/usr/escape-$secret"),
		made("make files in /etc", "/etc/escape-$secret"),
		made("make files in /tmp", "/tmp/escape-$secret"),
		made("make files in /var/tmp", "/var/tmp/escape-$secret"),
		made("make files in the home", "$dir/home/.escape-$secret"),
		made("make files in caches", "$dir/home/.cache/go-build/escape-$secret"),
		made("make hooks", "$dir/job/checkout/.git/hooks/escape"),
		writes(9, "write to command files", "append", "$dir/job/workflow/set_env", "$dir/job/workflow/set_output", "$dir/job/workflow/0.sh"),
		writes(9, "write to the program and profiles", "append", "$dir/bin/issuesmith", "$dir/home/.bashrc", "$dir/home/.ssh/id_ed25519"),
		writes(9, "truncate", "truncate", "$dir/outside/file", "$dir/outside/everybody"),
		writes(9, "remove", "remove", "$dir/outside/file"),
		metadata("chmod", "chmod"),
		metadata("utime", "utime"),
		metadata("xattr", "xattr"),
		{Row: 10, Name: "chown", Args: []string{"chown", "$dir/outside/file", "$dir/outside/everybody"}, Open: "chmod, utime and xattr"},
		{Row: 11, Name: "mknod", Args: []string{"mknod"}},
		{Row: 11, Name: "open block and other devices", Args: []string{"open-device"}},
		{Row: 12, Name: "set-uid and capable files", Args: []string{"set-uid", "./set-uid", "./capable"}, Root: true, Prepare: plantSetUID},
	}
}

// plantSetUID puts programs into the worktree that run as root, and with root's rights.
func plantSetUID(s *Scene) error {
	program, err := os.ReadFile(s.path("bin/attempt"))
	if err != nil {
		return err
	}
	for _, name := range []string{"set-uid", "capable"} {
		path := filepath.Join(s.work(), name)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.WriteFile(path, program, 0o755); err != nil {
			return err
		}
	}
	// struct vfs_cap_data, revision 2, effective: all of the lower 32.
	data := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	for _, word := range []uint32{^uint32(0), 0, 0, 0} {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	if err := unix.Setxattr(filepath.Join(s.work(), "capable"), "security.capability", data, 0); err != nil {
		return fmt.Errorf("a file with capabilities: %w", err)
	}
	return os.Chmod(filepath.Join(s.work(), "set-uid"), 0o755|os.ModeSetuid)
}

func kernelAttempts() []Attempt {
	simple := func(row int, name, attempt string) Attempt {
		return Attempt{Row: row, Name: name, Args: []string{attempt}}
	}
	return []Attempt{
		simple(13, "unshare", "unshare"),
		simple(13, "clone into namespaces, clone3", "clone"),
		simple(13, "setns", "setns"),
		simple(13, "mount, umount, remount", "mount"),
		simple(13, "open_tree, fsopen, mount_setattr", "mount-new"),
		simple(13, "chroot, pivot_root", "chroot"),
		simple(14, "io_uring", "io-uring"),
		simple(14, "bpf", "bpf"),
		simple(14, "perf_event_open", "perf"),
		{Row: 14, Name: "keyrings", Args: []string{"keyring", "$key"}},
		simple(14, "userfaultfd", "userfaultfd"),
		{Row: 14, Name: "open_by_handle_at", Args: []string{"file-handle", "$dir/home/.netrc"}},
		simple(14, "modules, kexec, swap, reboot, accounting", "modules"),
		simple(27, "TIOCSTI", "terminal"),
		{Row: 27, Name: "planted SysV segment", Args: []string{"shared-memory", "$segment"}},
		simple(27, "make SysV objects", "ipc"),
		{Row: 27, Name: "leave a file in /dev/shm", Args: []string{"make", "/dev/shm/escape-$secret"}, Gone: []string{"/dev/shm/escape-$secret", "/dev/shm/escape-$secret-link", "/dev/shm/escape-$secret-folder"}},
		{Row: 27, Name: "read others' files in /dev/shm", Args: []string{"read", "/dev/shm/planted-$secret"}, Open: "/dev/shm is shared"},
		simple(29, "i386 program, int 0x80", "foreign"),
		simple(29, "x32 system call", "foreign-x32"),
	}
}

func processAttempts() []Attempt {
	signal := func(name, attempt string) Attempt {
		a := onOthers(15, name, attempt)
		a.Open = "Landlock version 6 is needed"
		return a
	}
	return []Attempt{
		signal("kill", "kill"),
		signal("tgkill every task", "tgkill"),
		signal("pidfd_send_signal", "pidfd-signal"),
		{Row: 15, Name: "kill executor and action", Args: []string{"kill-parents"}, Open: "Landlock version 6 is needed"},
		{Row: 16, Name: "kill -9 -1", Args: []string{"kill-all"}, Own: true, ControlAt: PlaceUser, Open: "Landlock version 6 is needed"},
		onOthers(17, "prlimit", "prlimit"),
		{Row: 17, Name: "setpriority", Args: []string{"priority", "all", "$sibling", "user"}, Control: []string{"priority", "$sibling"}},
		onOthers(17, "sched_setaffinity", "affinity"),
		onOthers(17, "sched_setscheduler", "scheduler"),
		onOthers(17, "ioprio_set", "io-priority"),
	}
}

func networkAttempts() []Attempt {
	to := func(row int, name, attempt string, where ...string) Attempt {
		return Attempt{Row: row, Name: name, Args: append([]string{attempt}, where...)}
	}
	unlisted := []string{"$loopback", "$port"}
	return []Attempt{
		to(18, "connect: other loopback address, other port", "connect", unlisted...),
		to(18, "connect: the machine's address, same port", "connect", "$machine"),
		to(18, "connect: IPv6 loopback, same port", "connect", "$six"),
		to(18, "connect: IPv4 in IPv6, odd lengths", "connect-mapped", unlisted...),
		to(18, "connect: non-blocking", "connect-nonblocking", unlisted...),
		to(18, "connect: bound, and a second time", "bind-connect", unlisted...),
		{Row: 18, Name: "listen at the machine's address", Args: []string{"listen", "$address:0"}, Open: "listen on this machine's addresses"},
		to(19, "MPTCP", "mptcp", unlisted...),
		to(20, "MSG_FASTOPEN by sendto", "fastopen-sendto", unlisted...),
		to(20, "MSG_FASTOPEN by sendmsg", "fastopen-sendmsg", unlisted...),
		to(20, "MSG_FASTOPEN by sendmmsg", "fastopen-sendmmsg", unlisted...),
		to(20, "TCP_FASTOPEN_CONNECT", "fastopen-connect", unlisted...),
		to(21, "UDP, UDP-Lite, ping", "udp", "$udp"),
		to(21, "raw", "raw"),
		to(21, "netlink", "netlink"),
		to(21, "packet", "packet"),
		to(21, "vsock", "vsock"),
		to(21, "every other family and protocol", "families"),
		to(22, "docker.sock, ssh-agent", "unix", "$docker.sock", "$agent.sock"),
		to(22, "the same through links", "unix-link", "$docker.sock", "$agent.sock"),
		to(22, "abstract socket", "abstract", "$abstract"),
		to(22, "unix datagram", "unix-datagram", "$log.sock"),
		{Row: 23, Name: "threads change the address", Args: []string{"race-address", "$listed", "$loopback"}},
		{Row: 23, Name: "threads change the path", Args: []string{"race-path", "$docker.sock"}},
	}
}

func lifetimeAttempts() []Attempt {
	limit := func(name, limit, value, named string, args ...string) Attempt {
		return Attempt{Row: 26, Name: name, Args: args, Flags: []string{limit, value}, Limit: named, Seconds: 30, ControlAt: PlaceUser}
	}
	return []Attempt{
		{Row: 24, Name: "daemon: setsid, double fork, holds stdout", Args: []string{"daemon", "$mark", "./beat", "30"}, Control: []string{"daemon", "$mark", "./beat", "6"}, Beat: true, Seconds: 5},
		{Row: 24, Name: "daemon that kills its executor", Args: []string{"outlive", "$mark", "./beat", "30"}, Killed: true, Control: []string{"daemon", "$mark", "./beat", "6"}, Beat: true, Seconds: 5},
		{Row: 24, Name: "endless fork chain", Args: []string{"chain", "./beat", "20"}, Control: []string{"chain", "./beat", "7"}, Beat: true, Seconds: 5},
		limit("fork bomb", "--process-limit", "64", "process-limit", "fork-bomb", "300"),
		limit("2 GiB of memory", "--memory-limit", "512MiB", "memory-limit", "allocate", "2048"),
		limit("2 GiB in 8 processes", "--memory-limit", "512MiB", "memory-limit", "allocate-many", "8", "256"),
		limit("2 GiB of shared mapping", "--memory-limit", "512MiB", "memory-limit", "share", "2048"),
		limit("2 GiB in a memory file", "--memory-limit", "512MiB", "memory-limit", "memory-file", "2048"),
		limit("2 GiB in /dev/shm", "--memory-limit", "512MiB", "memory-limit", "fill", "2048", "/dev/shm"),
		limit("spin", "--cpu-limit", "2s", "cpu-limit", "spin", "4"),
		limit("100 MiB file", "--file-size-limit", "10MiB", "file-size-limit", "big-file", "100", "./big"),
		limit("full tmp", "--disk-limit", "100MiB", "disk-limit", "fill", "300", "$$TMPDIR"),
		limit("full worktree", "--disk-limit", "100MiB", "disk-limit", "fill", "300", "."),
		limit("output without end", "--output-limit", "16MiB", "output-limit", "flood", "40"),
		limit("9000 descriptors", "--open-files-limit", "8192", "open-files-limit", "many-files", "9000"),
	}
}
