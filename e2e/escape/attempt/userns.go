//nolint:gosec // bare system calls are what this program is for
package main

import (
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutUserNamespaces becomes the program given, in a place that refuses user namespaces as a hardened machine or a
// container does.
func withoutUserNamespaces(args []string) error {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		bits  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
		// Offsets in struct seccomp_data.
		number, firstArgument = 0, 16
	)
	program := []unix.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: uint32(unix.SYS_CLONE3), Jt: 5},
		{Code: equal, K: uint32(unix.SYS_CLONE), Jt: 1},
		{Code: equal, K: uint32(unix.SYS_UNSHARE), Jf: 2},
		{Code: load, K: firstArgument},
		{Code: bits, K: unix.CLONE_NEWUSER, Jt: 2},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}, // the library falls back to clone
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// TSYNC: every thread of this runtime, so that it does not matter which one becomes the program.
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		return errno
	}
	return unix.Exec(path, args, os.Environ()) //nolint:forbidigo // of the tests, not of the program
}
