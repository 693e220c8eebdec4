//nolint:gosec // bare system calls are what this program is for
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raceTime is long enough for some thousand connects. The first that arrives ends the race.
const raceTime = 1500 * time.Millisecond

// raceAddress connects to the listed address while another thread keeps writing the unlisted one over it.
// args: listed, unlisted.
func raceAddress(args []string) verdict {
	var t tries
	if len(args) != 2 {
		return untested("two addresses are needed")
	}
	listed, _, err := sockaddr(args[0])
	if err != nil {
		return untested("%v", err)
	}
	unlisted, _, err := sockaddr(args[1])
	if err != nil {
		return untested("%v", err)
	}
	// Family, port and address are eight bytes: written at once, so that the kernel sees one or the other.
	values := [2]uint64{*(*uint64)(unsafe.Pointer(&listed[0])), *(*uint64)(unsafe.Pointer(&unlisted[0]))}
	shared := make([]uint64, 2)
	word := &shared[0]
	var stop atomic.Bool
	for range 2 {
		go func() {
			runtime.LockOSThread()
			for i := 0; !stop.Load(); i++ {
				atomic.StoreUint64(word, values[i&1])
			}
		}()
	}
	count := 0
	for end := time.Now().Add(raceTime); time.Now().Before(end) && len(t.through) == 0; count++ {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.note("socket", err)
			break
		}
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptrOf(word), unix.SizeofSockaddrInet4)
		if errno == 0 {
			peer, err := unix.Getpeername(fd)
			if four, ok := peer.(*unix.SockaddrInet4); ok && err == nil && string(four.Addr[:]) != string(listed[4:8]) {
				t.note("arrived at "+args[1], nil)
			}
		} else {
			t.note(args[1], errno)
		}
		_ = unix.Close(fd)
	}
	stop.Store(true)
	v := t.verdict()
	v.what += fmt.Sprintf(", %d connects", count)
	return v
}

// racePath connects to a socket of its own while another thread swaps its name for a link to the one outside.
func racePath(args []string) verdict {
	var t tries
	if len(args) != 1 {
		return untested("a path is needed")
	}
	const name, own, out = "race.sock", "race-own", "race-out"
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		for _, left := range []string{name, own, out} {
			_ = os.Remove(left)
		}
		if err = unix.Bind(listener, &unix.SockaddrUnix{Name: own}); err == nil {
			err = unix.Listen(listener, 4096)
		}
	}
	if err != nil {
		return untested("%v", err)
	}
	go func() {
		for {
			fd, _, err := unix.Accept(listener)
			if err != nil {
				return
			}
			_ = unix.Close(fd)
		}
	}()
	if err := os.Symlink(args[0], out); err != nil {
		return untested("%v", err)
	}
	if err := os.Link(own, name); err != nil {
		return untested("%v", err)
	}
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, out, unix.AT_FDCWD, name, unix.RENAME_EXCHANGE)
		}
	}()
	count := 0
	for end := time.Now().Add(raceTime); time.Now().Before(end) && len(t.through) == 0; count++ {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.note("socket", err)
			break
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err == nil {
			if peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && int(peer.Pid) != os.Getpid() {
				_ = greet(fd)
				t.note("arrived outside", nil)
			}
		} else {
			t.note(args[0], err)
		}
		_ = unix.Close(fd)
	}
	stop.Store(true)
	v := t.verdict()
	v.what += fmt.Sprintf(", %d connects", count)
	return v
}
