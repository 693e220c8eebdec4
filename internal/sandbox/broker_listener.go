package sandbox

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The structures of <linux/seccomp.h>. Their sizes are part of the ioctl numbers, and alike on amd64 and arm64.
type (
	notification struct {
		id    uint64
		pid   uint32 // of the calling thread, as seen from here
		flags uint32
		nr    int32
		arch  uint32
		ip    uint64
		args  [6]uint64
	}
	notificationAnswer struct {
		id    uint64
		value int64
		errno int32 // negative
		flags uint32
	}
	notificationDescriptor struct {
		id    uint64
		flags uint32
		from  uint32
		to    uint32
		open  uint32 // O_CLOEXEC or 0
	}
)

// A listener is what connects are reported to. It is an os.File because that can be closed while others use it.
type listener struct {
	file *os.File
	raw  syscall.RawConn
}

// newListener takes the descriptor over.
func newListener(fd int) *listener {
	// Non-blocking only for Go's poller to take it: the kernel's RECV knows no such thing.
	_ = unix.SetNonblock(fd, true)                  // cannot fail for an open descriptor
	file := os.NewFile(uintptr(fd), "system calls") // #nosec G115 -- a descriptor
	raw, err := file.SyscallConn()
	if err != nil { // never, for a file that is not nil
		panic(err)
	}
	return &listener{file, raw}
}

// close may be called more than once; who still waits for an answer gets ENOSYS.
func (l *listener) close() { _ = l.file.Close() } // nothing is written that could be lost

// receive returns the next connect. It fails when the listener is closed, or no process is left that could connect.
func (l *listener) receive() (*notification, error) {
	n := &notification{}
	var failure error
	err := l.raw.Read(func(fd uintptr) bool {
		for {
			// RECV waits without end when there is nothing to receive, so it is asked first. Only this goroutine receives: what
			// the kernel has shown it keeps, if only to say that the caller is gone (ENOENT).
			ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} // #nosec G115 -- a descriptor
			_, err := unix.Poll(ready, 0)
			switch events := ready[0].Revents; {
			case err != nil && !errors.Is(err, unix.EINTR):
				failure = err
				return true
			case events&unix.POLLIN != 0:
			case events&(unix.POLLHUP|unix.POLLNVAL) != 0:
				failure = io.EOF
				return true
			case err != nil, events&unix.POLLERR != 0: // a signal came while the kernel looked
				continue
			default:
				return false
			}
			*n = notification{}                                                          // the kernel insists
			switch e := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)); e { // #nosec G103 -- the kernel fills it
			case 0:
				return true
			case unix.EINTR, unix.ENOENT:
			default:
				failure = e
				return true
			}
		}
	})
	return n, errors.Join(err, failure)
}

// valid reports whether the call still waits: until then its thread lives, and its number is nobody else's.
func (l *listener) valid(id uint64) bool {
	return l.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0 // #nosec G103 -- the kernel reads it
}

// put replaces the caller's descriptor to by a copy of ours.
func (l *listener) put(id uint64, ours, to int, closeOnExec bool) error {
	d := notificationDescriptor{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, from: uint32(ours), to: uint32(to)} // #nosec G115 -- descriptors
	if closeOnExec {
		d.open = unix.O_CLOEXEC
	}
	if e := l.control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&d)); e != 0 { // #nosec G103 -- the kernel reads it
		return e
	}
	return nil
}

// errContinue lets the kernel do the call itself, with what is then in the caller's memory.
var errContinue = errors.New("left to the kernel")

// answer ends the caller's wait: with success, or with err's errno.
func (l *listener) answer(id uint64, err error) {
	a := notificationAnswer{id: id}
	switch {
	case errors.Is(err, errContinue):
		a.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case err != nil:
		a.errno = -int32(replyErrno(err)) // #nosec G115 -- an errno
	}
	// Fails only when the caller was killed.
	_ = l.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a)) // #nosec G103 -- the kernel reads it
}

// replyErrno is err's errno, and never 0, which would say that there is a connection.
func replyErrno(err error) syscall.Errno {
	if e := errnoOf(err); e != 0 {
		return e
	}
	return unix.EHOSTUNREACH
}

// control runs an ioctl unless the listener is closed.
func (l *listener) control(request uintptr, argument unsafe.Pointer) syscall.Errno {
	e := unix.EBADF
	_ = l.raw.Control(func(fd uintptr) { // it fails when closed: e says so
		for e = unix.EINTR; e == unix.EINTR; {
			e = ioctl(fd, request, argument)
		}
	})
	return e
}

func ioctl(fd, request uintptr, argument unsafe.Pointer) syscall.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument))
	return e
}
