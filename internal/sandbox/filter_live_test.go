package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A confinement is what a helper process, this test binary started again, puts one of its threads into, and what it tries there.
type confinement struct {
	Files   fileRules
	ABI     int  // of the Landlock domain; 0 for none
	TCP     bool // left open
	Filter  bool
	Try     []string // names in attempts
	Folders []string // for the attempts
	Other   int      // a process outside, to try things on
	Port    int      // of a server outside
}

const confinementVar = "ISSUESMITH_TEST_CONFINEMENT"

// confined makes the attempts in a helper and returns their errors.
func confined(t *testing.T, c confinement) map[string]syscall.Errno {
	t.Helper()
	job, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestConfinedHelper$")
	// Under the race detector a process would wait a second before it ends.
	cmd.Env = append(os.Environ(), confinementVar+"="+string(job), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the helper: %v: %s", err, out)
	}
	results := map[string]syscall.Errno{}
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("the helper said %q: %v", out, err)
	}
	return results
}

// TestConfinedHelper is the helper; without its order it has nothing to do.
func TestConfinedHelper(t *testing.T) {
	job, ok := os.LookupEnv(confinementVar)
	if !ok {
		return
	}
	var c confinement
	err := json.Unmarshal([]byte(job), &c)
	results := map[string]syscall.Errno{}
	if err == nil {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends here
			done <- c.attempt(results)
		}()
		err = <-done
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(results)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// attempt confines the calling thread and tries.
func (c confinement) attempt(results map[string]syscall.Errno) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if c.ABI > 0 {
		ruleset, err := newRuleset(c.ABI, c.Files, c.TCP)
		if err != nil {
			return err
		}
		if err := restrict(ruleset); err != nil {
			return err
		}
	}
	if c.Filter {
		program, err := filter(nativeArch(), filterOptions{})
		if err != nil {
			return err
		}
		if _, err := install(program, false); err != nil {
			return err
		}
	}
	for _, name := range c.Try {
		err := attempts[name](c)
		var errno syscall.Errno
		if err != nil && !errors.As(err, &errno) {
			return fmt.Errorf("%s: %w", name, err)
		}
		results[name] = errno
	}
	return nil
}

// raw is a system call whose success has no consequence.
func raw(number uintptr, args ...uintptr) func(confinement) error {
	var a [6]uintptr
	copy(a[:], args)
	return func(confinement) error {
		got, _, e := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if e != 0 {
			return e
		}
		if number == unix.SYS_SOCKET {
			return unix.Close(int(got))
		}
		return nil
	}
}

// onOther is a system call with a process outside as the argument at index.
func onOther(index int, number uintptr, args ...uintptr) func(confinement) error {
	return func(c confinement) error {
		with := append([]uintptr{}, args...)
		with[index] = uintptr(c.Other)
		return raw(number, with...)(c)
	}
}

// What the attempts pass to the kernel; package variables, so that they stay where they are.
var (
	coreLimit = &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}
	zeros     = new([256]byte)
	allowAll  = []unix.SockFilter{{Code: 0x06, K: unix.SECCOMP_RET_ALLOW}}
	listening = &unix.SockFprog{Len: 1, Filter: &allowAll[0]}
)

// filterAttempts are refused by the filter and not by the kernel. As they are tried without the filter too, they change nothing
// outside of the helper.
var filterAttempts = map[string]struct {
	try  func(confinement) error
	want syscall.Errno
}{
	// Of nobody: a process that is traced would stop at the next signal that Go sends to itself.
	"ptrace":             {raw(unix.SYS_PTRACE, unix.PTRACE_PEEKDATA, 1<<30), unix.EPERM},
	"process_vm_readv":   {raw(unix.SYS_PROCESS_VM_READV), unix.EPERM},
	"kcmp":               {onOther(0, unix.SYS_KCMP, 0, 0, 99), unix.EPERM},
	"userfaultfd":        {raw(unix.SYS_USERFAULTFD, 1<<30|1), unix.EPERM},
	"bpf":                {raw(unix.SYS_BPF, 9999), unix.EPERM},
	"keyctl":             {raw(unix.SYS_KEYCTL, 9999), unix.EPERM},
	"unshare":            {raw(unix.SYS_UNSHARE, 0), unix.EPERM},
	"clone":              {raw(unix.SYS_CLONE, unix.CLONE_NEWNS|unix.CLONE_FS), unix.EPERM}, // the kernel: EINVAL
	"clone3":             {raw(unix.SYS_CLONE3), unix.ENOSYS},
	"io_uring_setup":     {raw(unix.SYS_IO_URING_SETUP), unix.ENOSYS},
	"newer call":         {raw(lastCall + 1), unix.ENOSYS},
	"open_by_handle_at":  {raw(unix.SYS_OPEN_BY_HANDLE_AT), unix.EPERM},
	"mount_setattr":      {raw(unix.SYS_MOUNT_SETATTR), unix.EPERM},
	"shmget":             {raw(unix.SYS_SHMGET, 0, 0, 0), unix.EPERM},
	"mq_open":            {raw(unix.SYS_MQ_OPEN), unix.EPERM},
	"personality":        {raw(unix.SYS_PERSONALITY, 0x400000), unix.EPERM},
	"closed memory":      {raw(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0), unix.EPERM},
	"TIOCSTI":            {raw(unix.SYS_IOCTL, ^uintptr(0), 1<<32|unix.TIOCSTI), unix.EPERM},
	"listener":           {raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(listening))), unix.EPERM},
	"prlimit":            {onOther(0, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(coreLimit))), unix.EPERM},
	"setpriority":        {onOther(1, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 1), unix.EPERM},
	"setpriority of all": {raw(unix.SYS_SETPRIORITY, unix.PRIO_USER|1<<32, 1<<30, 0), unix.EPERM},                      // of a user who has none
	"sched_setaffinity":  {onOther(0, unix.SYS_SCHED_SETAFFINITY, 0, 256, uintptr(unsafe.Pointer(zeros))), unix.EPERM}, // the kernel: EINVAL
	"unix datagram":      {raw(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM), unix.EPERM},
	"unix raw":           {raw(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_RAW), unix.EPERM},
	"unix datagram pair": {raw(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM), unix.EPERM},
	"udp":                {raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM), unix.EPROTONOSUPPORT},
	"netlink":            {raw(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW), unix.EAFNOSUPPORT},
	"TCP_FASTOPEN_CONNECT": {
		raw(unix.SYS_SETSOCKOPT, ^uintptr(0), unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT), unix.EPERM,
	},
	"sendto fast open":   {raw(unix.SYS_SENDTO, ^uintptr(0), 0, 0, unix.MSG_FASTOPEN), unix.EPERM},
	"sendmsg fast open":  {raw(unix.SYS_SENDMSG, ^uintptr(0), 0, unix.MSG_FASTOPEN), unix.EPERM},
	"sendmmsg fast open": {raw(unix.SYS_SENDMMSG, ^uintptr(0), 0, 0, unix.MSG_FASTOPEN), unix.EPERM},
}

// harmless are attempts that must work under the filter.
var harmless = map[string]func(confinement) error{
	"tcp":             raw(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC),
	"unix stream":     raw(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM),
	"own priority":    raw(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 1),
	"own core limit":  raw(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(coreLimit))),
	"reading a limit": onOther(0, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0, uintptr(unsafe.Pointer(zeros))),
	"a child": func(confinement) error {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
		if err == nil {
			_, err = syscall.Wait4(pid, nil, 0, nil)
		}
		return err
	},
}

func TestFilterOnThread(t *testing.T) {
	t.Parallel()
	other := outsider(t)
	var names []string
	for name := range filterAttempts {
		names = append(names, name)
	}
	with := confined(t, confinement{Filter: true, Try: names, Other: other})
	without := confined(t, confinement{Try: names, Other: other})
	for name, a := range filterAttempts {
		if with[name] != a.want {
			t.Errorf("%s with the filter: %v, want %v", name, with[name], a.want)
		}
		if without[name] == a.want && name != "newer call" { // which the kernel may lack as well
			t.Errorf("%s without the filter: %v too, so this shows nothing", name, a.want)
		}
	}
	names = nil
	for name := range harmless {
		names = append(names, name)
	}
	for name, errno := range confined(t, confinement{Filter: true, Try: names, Other: other}) {
		if errno != 0 {
			t.Errorf("%s with the filter: %v", name, errno)
		}
	}
}

// outsider is a process that no confinement contains.
func outsider(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// attempts are all of them, by name.
var attempts = func() map[string]func(confinement) error {
	all := map[string]func(confinement) error{}
	for name, a := range filterAttempts {
		all[name] = a.try
	}
	for _, more := range []map[string]func(confinement) error{harmless, landlockAttempts} {
		for name, try := range more {
			all[name] = try
		}
	}
	return all
}()

// A connect on the filtered thread is reported to the listener, and the answer is what connect returns.
func TestInstallListener(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	port := server.Addr().(*net.TCPAddr).Port
	program, err := filter(nativeArch(), filterOptions{Broker: true})
	if err != nil {
		t.Fatal(err)
	}
	installed, connected := make(chan error), make(chan error)
	var listener int
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			listener, err = install(program, true)
		}
		installed <- err
		if err != nil {
			return
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(s, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
			_ = unix.Close(s)
		}
		connected <- err
	}()
	if err := <-installed; err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(listener) }()
	flags, err := unix.FcntlInt(uintptr(listener), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the listener is inherited by commands: flags %#x, %v", flags, err)
	}
	var notice struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&notice))); e != 0 {
		t.Fatal(e)
	}
	if notice.nr != unix.SYS_CONNECT || notice.arch != nativeArch() || notice.args[2] != unix.SizeofSockaddrInet4 {
		t.Errorf("reported: %+v", notice)
	}
	reply := struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}{id: notice.id, errno: -int32(unix.EHOSTUNREACH)}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&reply))); e != 0 {
		t.Fatal(e)
	}
	if err := <-connected; !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("connect said %v", err)
	}
}

func BenchmarkFilter(b *testing.B) {
	for b.Loop() {
		if _, err := filter(nativeArch(), filterOptions{Broker: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// What a command pays: a thread and its filter.
func BenchmarkInstall(b *testing.B) {
	program, err := filter(nativeArch(), filterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends here
			err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if err == nil {
				_, err = install(program, false)
			}
			done <- err
		}()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
