package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A copy made by a bare fork has no runtime: none of its threads but the one, no garbage collector. What it does may not
// allocate, so it is system calls only.

// fork is fork(2).
func fork() (pid uintptr, errno unix.Errno) {
	pid, _, errno = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

func exit(code uintptr) {
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}

// inFork makes one system call in a copy of this process, which has one thread, and returns its error.
func inFork(number uintptr, args [3]uintptr) error {
	pid, errno := fork()
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, errno := unix.RawSyscall(number, args[0], args[1], args[2])
		exit(uintptr(errno) & 0xff)
	}
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(int(pid), &status, 0, nil)
		if err != unix.EINTR {
			break
		}
	}
	if status.Signaled() {
		return fmt.Errorf("killed by %s", unix.SignalName(status.Signal()))
	}
	return errnoOrNil(unix.Errno(status.ExitStatus()))
}

// chain forks until the given time of the monotonic clock: each copy writes a byte, makes the next one and ends. Nothing that looks
// at processes one by one can catch it.
func chain(beat int, until unix.Timespec) {
	one := [1]byte{'.'}
	var now unix.Timespec
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(beat), uintptrOf(&one), 1)
		_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptrOf(&now), 0)
		if now.Sec >= until.Sec {
			exit(0)
		}
		if pid, errno := fork(); errno == 0 && pid != 0 {
			exit(0)
		}
	}
}

// nap sleeps without the runtime, which would need its threads.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	for {
		// What is left when a signal comes, which the end of a child is, stands in the same place.
		_, _, errno := unix.RawSyscall(unix.SYS_NANOSLEEP, uintptrOf(&left), uintptrOf(&left), 0)
		if errno != unix.EINTR {
			return
		}
	}
}
