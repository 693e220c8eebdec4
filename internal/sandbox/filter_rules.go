package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refusedCalls fail with EPERM whatever their arguments are. No build and no test needs them; a caller with rights could leave the
// sandbox by them, and for one without rights they are the parts of the kernel where its errors have been.
var refusedCalls = []string{
	// Other processes' memory and descriptors. Landlock refuses these towards processes outside of the domain; between the commands'
	// own processes they would hide who makes a call from the broker.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
	// Parts of the kernel that programs load code into or that watch it.
	"bpf", "perf_event_open", "userfaultfd", "fanotify_init", "fanotify_mark", "lookup_dcookie", "syslog",
	// Keys belong to the user, not to the process: other processes' keys can be among them.
	"add_key", "request_key", "keyctl",
	// Mounts and namespaces. What statmount and listmount tell stands in /proc/self/mountinfo as well.
	"mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "open_tree", "open_tree_attr", "move_mount",
	"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
	// Files by number instead of by path.
	"name_to_handle_at", "open_by_handle_at",
	// Memory and queues that belong to the machine, have no path, and outlive every process.
	"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
	"mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
	// The machine itself.
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff", "acct",
	"quotactl", "quotactl_fd", "nfsservctl", "sethostname", "setdomainname", "settimeofday", "clock_settime", "adjtimex",
	"clock_adjtime", "iopl", "ioperm", "vhangup",
	// The same as writing to /proc/self/attr, which is closed.
	"lsm_set_self_attr",
}

// missingCalls fail with ENOSYS, so that programs do without: a filter sees neither what an io_uring is asked to do nor the flags
// of clone3, which lie in memory.
var missingCalls = []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"}

// newNamespaces are the flags of clone(2) that make namespaces. CLONE_NEWTIME is not among them: clone takes that bit for a part
// of the exit signal.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// personalities are the execution domains that Docker allows (PER_LINUX, PER_LINUX32, UNAME26 with both, and the question), and
// ADDR_NO_RANDOMIZE, with which programs built with ThreadSanitizer start themselves again and which debuggers set.
var personalities = []uint32{0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff}

// filterRules are the calls that are not simply allowed, by name, with the code that answers them.
func filterRules(o filterOptions) map[string]code {
	eperm := deny(unix.EPERM)
	rules := map[string]code{
		"clone":       seq(low(0), when(bpf.JumpBitsSet, newNamespaces, eperm), allow),
		"personality": seq(low(0), among(personalities, allow), eperm),
		// These type into the terminal of whoever started the program.
		"ioctl": seq(low(1), among([]uint32{unix.TIOCSTI, unix.TIOCLINUX}, eperm), allow),
		"prctl": seq(low(0),
			// A process that closes its memory is closed to the executor too, which has no more rights than it: the broker could not
			// read where it wants to connect, and the watch could not measure it.
			when(bpf.JumpEqual, unix.PR_SET_DUMPABLE, seq(low(1), when(bpf.JumpEqual, 0, eperm), allow)),
			when(bpf.JumpEqual, unix.PR_SET_MM, eperm), allow),
		// Of two listeners the newer one answers (seccomp_unotify(2)). Kernels up to now allow one in a line of processes; a command's
		// own could let its connects pass the broker. Filters without a listener can only take away.
		"seccomp": seq(low(0), when(bpf.JumpEqual, unix.SECCOMP_SET_MODE_FILTER,
			seq(low(1), when(bpf.JumpBitsSet, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, eperm), allow)), allow),

		// What these do to other processes of the same user, Landlock does not cover. A filter cannot tell a thread of the caller from
		// another process, so only 0, the caller, is allowed. A JVM, Node and Go never name a thread; OpenMP does when OMP_PROC_BIND
		// asks for it, and fails.
		"prlimit64": seq(low(0), when(bpf.JumpEqual, 0, allow),
			low(2), when(bpf.JumpNotEqual, 0, eperm), high(2), when(bpf.JumpNotEqual, 0, eperm), allow), // reading is harmless
		"setpriority":        own(unix.PRIO_USER),
		"ioprio_set":         own(ioprioUser),
		"sched_setaffinity":  self(),
		"sched_setscheduler": self(),
		"sched_setparam":     self(),
		"sched_setattr":      self(),
		"migrate_pages":      self(),
		"move_pages":         self(),

		"socket":     socketRule(o),
		"socketpair": seq(low(0), when(bpf.JumpEqual, unix.AF_UNIX, unixRule()), deny(unix.EAFNOSUPPORT)),
		"setsockopt": optionRule(),
		// Both connect and send, past connect(2).
		"sendto":   fastOpenRule(3),
		"sendmsg":  fastOpenRule(2),
		"sendmmsg": fastOpenRule(3),
	}
	if o.Broker {
		rules["connect"] = notify
	}
	for _, name := range refusedCalls {
		rules[name] = eperm
	}
	for _, name := range missingCalls {
		rules[name] = deny(unix.ENOSYS)
	}
	return rules
}

// self allows a call on the calling thread only, which its first argument names as 0.
func self() code { return seq(low(0), when(bpf.JumpEqual, 0, allow), deny(unix.EPERM)) }

// ioprioUser is IOPRIO_WHO_USER of ioprio_set(2).
const ioprioUser = 3

// own allows a call on the calling thread or its process group, which is the command's: the second argument is 0. The first says
// which of them; "all processes of the user" reaches further than the command.
func own(user uint32) code {
	return seq(low(0), when(bpf.JumpEqual, user, deny(unix.EPERM)), low(1), when(bpf.JumpEqual, 0, allow), deny(unix.EPERM))
}

// typeMask is the part of a socket's type that is not flags (SOCK_TYPE_MASK of the kernel).
const typeMask = 0xf

// socketRule is for socket(2): local and TCP. What is refused gives the errors of a kernel that lacks it, which programs are
// written for: glibc's getaddrinfo does without netlink, Go's listeners without Multipath TCP.
func socketRule(o filterOptions) code {
	inet := seq(low(1), mask(typeMask),
		when(bpf.JumpEqual, unix.SOCK_STREAM, seq(low(2), among([]uint32{0, unix.IPPROTO_TCP}, allow), deny(unix.EPROTONOSUPPORT))))
	if o.Datagrams {
		inet = seq(inet, when(bpf.JumpEqual, unix.SOCK_DGRAM,
			seq(low(2), among([]uint32{0, unix.IPPROTO_UDP}, allow), deny(unix.EPROTONOSUPPORT))))
	}
	inet = seq(inet, deny(unix.EPROTONOSUPPORT))
	rule := seq(low(0),
		when(bpf.JumpEqual, unix.AF_UNIX, unixRule()),
		when(bpf.JumpEqual, unix.AF_INET, inet),
		when(bpf.JumpEqual, unix.AF_INET6, inet))
	if o.Datagrams {
		// What addresses this machine has decides which of a name's addresses a resolver tries.
		rule = seq(rule, when(bpf.JumpEqual, unix.AF_NETLINK, seq(
			low(2), when(bpf.JumpNotEqual, unix.NETLINK_ROUTE, deny(unix.EPROTONOSUPPORT)),
			low(1), mask(typeMask), among([]uint32{unix.SOCK_RAW, unix.SOCK_DGRAM}, allow), deny(unix.ESOCKTNOSUPPORT))))
	}
	return seq(rule, deny(unix.EAFNOSUPPORT))
}

// unixRule is for local sockets. Each message of a datagram socket may have an address of its own, one end of a pair included,
// which no connect tells; and for these the kernel takes SOCK_RAW as SOCK_DGRAM.
func unixRule() code {
	return seq(low(1), mask(typeMask), among([]uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}, allow), deny(unix.EPERM))
}

// fastOpenRule is for calls that send, with the argument that holds their flags: MSG_FASTOPEN connects.
func fastOpenRule(flags int) code {
	return seq(low(flags), when(bpf.JumpBitsSet, unix.MSG_FASTOPEN, deny(unix.EPERM)), allow)
}

// optionRule is for setsockopt(2): what makes a TCP socket another kind of socket, opens a connection without connect, or gives
// the packets of an allowed connection another host to go to first.
func optionRule() code {
	refuse := func(level uint32, options ...uint32) code {
		return when(bpf.JumpEqual, level, seq(low(2), among(options, deny(unix.EPERM)), allow))
	}
	return seq(low(1),
		refuse(unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, unix.TCP_ULP, unix.TCP_REPAIR),
		refuse(unix.IPPROTO_IP, unix.IP_OPTIONS),
		refuse(unix.IPPROTO_IPV6, unix.IPV6_RTHDR, unix.IPV6_2292RTHDR, unix.IPV6_2292PKTOPTIONS),
		allow)
}
