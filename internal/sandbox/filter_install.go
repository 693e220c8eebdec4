package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// install puts the filter on the calling thread, which must be locked and have no-new-privs. With listen it returns the
// listener that connects are reported to (close-on-exec), else -1.
func install(program []unix.SockFilter, listen bool) (listener int, err error) {
	if len(program) == 0 || len(program) > 0xffff {
		return -1, fmt.Errorf("a system call filter of %d instructions", len(program))
	}
	if !listen {
		_, err := setFilter(program, 0)
		return -1, err
	}
	// With this flag a signal no longer interrupts a call that the broker works on, so that nothing is connected twice.
	listener, err = setFilter(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) { // before Linux 5.19
		listener, err = setFilter(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	if errors.Is(err, unix.EBUSY) {
		return -1, fmt.Errorf("whoever started this process listens to its system calls already (seccomp_unotify), and there can be one listener only: %w", err)
	}
	return listener, err
}

func setFilter(program []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}                                             // #nosec G115 -- checked by install
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog))) // #nosec G103 -- the kernel reads it
	runtime.KeepAlive(program)
	if e != 0 {
		return -1, fmt.Errorf("seccomp: %w", e)
	}
	return int(fd), nil // #nosec G115 -- a descriptor
}
