package sandbox

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// swap puts our connected socket in the place of the caller's.
func (s *session) swap(c *request, fd int) error {
	if c.to.family != unix.AF_UNIX {
		// Programs that want their small writes sent at once often say so before they connect, and that went with the socket.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // only speed depends on it
	}
	if err := unix.SetNonblock(fd, c.nonBlocking); err != nil {
		return err
	}
	return s.listener.put(c.id, fd, c.fd, c.closeOnExec)
}

// connectTarget swaps in a socket that the action connected. Its family is the target's, so a caller of an IPv4-mapped address
// gets an IPv4 socket: the action is told which target and nothing else.
func (s *session) connectTarget(ctx context.Context, c *request, i int) error {
	type result struct {
		fd  int
		err error
	}
	done := make(chan result, 1)
	go func() {
		fd, err := s.dial(i)
		done <- result{fd, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return r.err
		}
		defer closeSocket(r.fd)
		return s.swap(c, r.fd)
	case <-ctx.Done():
		// The answer comes when it comes; nobody wants it any more.
		go func() {
			if r := <-done; r.err == nil {
				closeSocket(r.fd)
			}
		}()
		return unix.ETIMEDOUT
	}
}

// connectInside swaps in a socket of our own, which is in the same network namespace as the command. Where that is the host's, only
// ports that a process of this sandbox listens on are reached.
func (s *session) connectInside(ctx context.Context, c *request) error {
	if !s.isolated {
		switch s.listening(c.to.inet) {
		case listensNobody:
			return unix.ECONNREFUSED
		case listensOther:
			return s.refuse(c.to)
		case listensMember:
		}
	}
	domain, to := c.to.sockaddr()
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeSocket(fd)
	if err := connectWithin(ctx, fd, func() error { return unix.Connect(fd, to) }); err != nil {
		return err
	}
	if !s.isolated { // the port may have changed hands meanwhile
		switch s.reached(fd, c.to.inet) {
		case listensNobody:
			return unix.ECONNRESET
		case listensOther:
			return s.refuse(c.to)
		case listensMember:
		}
	}
	return s.swap(c, fd)
}

// connectOpen connects the caller's own socket, which keeps its kind and its options. Where a container's filter refuses to borrow
// it, the kernel is left to do the call: then a second thread could still change the address, from one that is allowed to any
// other, and only file permissions keep it from the unix sockets of others.
func (s *session) connectOpen(ctx context.Context, c *request) error {
	fd, err := borrow(c.thread, c.fd)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		if s.dedicated {
			return errContinue
		}
		return s.refuse(c.to)
	}
	if err != nil {
		return err
	}
	defer closeSocket(fd)
	if !s.listener.valid(c.id) {
		return unix.ENOENT
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	if domain != unix.AF_INET && domain != unix.AF_INET6 {
		return unix.EACCES
	}
	return connectWithin(ctx, fd, func() error {
		_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&c.raw[0])), uintptr(len(c.raw))) // #nosec G103,G115 -- the kernel reads our copy
		if e != 0 {
			return e
		}
		return nil
	})
}

// borrow returns a descriptor of ours for the same open file as a thread's.
func borrow(thread, fd int) (int, error) {
	pidfd, err := unix.PidfdOpen(thread, unix.PIDFD_THREAD)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.9 only processes have them; the threads of one share descriptors
		pidfd, err = unix.PidfdOpen(leader(thread), 0)
	}
	if err != nil {
		return -1, err
	}
	defer closeSocket(pidfd)
	return unix.PidfdGetfd(pidfd, fd, 0)
}

// leader is the process of a thread, or 0.
func leader(thread int) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/status") // unread it is empty
	for line := range strings.Lines(string(status)) {
		if number, found := strings.CutPrefix(line, "Tgid:"); found {
			pid, _ := strconv.Atoi(strings.TrimSpace(number)) // 0, which no process has
			return pid
		}
	}
	return 0
}

// connectWithin runs connect on an internet socket and breaks it off when ctx ends: the kernel's own limit is above two minutes. The
// socket stays blocking and without a time limit, since the file may be the caller's too.
func connectWithin(ctx context.Context, fd int, connect func() error) error {
	returned, ended := make(chan struct{}), make(chan struct{})
	disarm := context.AfterFunc(ctx, func() {
		defer close(ended)
		for { // again, lest it came before the connect
			_ = unix.Shutdown(fd, unix.SHUT_RDWR) // it makes a connect that waits return
			select {
			case <-returned:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	err := ctx.Err()
	if err == nil {
		for err = connect(); errors.Is(err, unix.EINTR); err = connect() {
			continue
		}
	}
	close(returned)
	if !disarm() {
		<-ended // fd is not ours to touch afterwards
		return unix.ETIMEDOUT
	}
	return err
}

func closeSocket(fd int) { _ = unix.Close(fd) } // nothing was written
