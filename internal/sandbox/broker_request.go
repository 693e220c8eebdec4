package sandbox

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A request is one connect, with all that is ever read of its caller.
type request struct {
	id          uint64
	thread      int    // of the caller
	proc        string // its folder in /proc
	fd          int    // the caller's descriptor
	nonBlocking bool
	closeOnExec bool
	raw         []byte // the address, copied once
	to          address
	folder      string // working directory, for a relative path
}

// read copies what the decision needs. All of it is read before the last line makes sure that the caller still waits, and so that
// it was the caller's; none of it is read again, since a thread beside the caller could have changed it.
func (s *session) read(n *notification) (*request, error) {
	// The kernel takes descriptor and length as int and so looks at the low halves only.
	fd, length := int32(n.args[0]), int32(n.args[2]) // #nosec G115 -- cut as the kernel does
	c := &request{id: n.id, thread: int(n.pid), proc: "/proc/" + strconv.Itoa(int(n.pid)), fd: int(fd)}
	if err := c.readDescriptor(); err != nil {
		return nil, err
	}
	if length < 2 || length > addressLimit {
		return nil, unix.EINVAL
	}
	var err error
	if c.raw, err = copyMemory(c.thread, n.args[1], int(length)); err != nil {
		return nil, err
	}
	if c.to, err = parseAddress(c.raw); err != nil {
		return nil, err
	}
	if c.to.family == unix.AF_UNIX && !c.to.abstract && !strings.HasPrefix(c.to.path, "/") {
		if c.folder, err = os.Readlink(c.proc + "/cwd"); err != nil {
			return nil, unix.EACCES
		}
	}
	if !s.listener.valid(n.id) {
		return nil, unix.ENOENT // nobody is there to see it
	}
	return c, nil
}

// readDescriptor makes sure that a socket is what would be replaced, which a program that mixes its descriptors up relies on. One
// that changes them meanwhile spoils nothing but its own table.
func (c *request) readDescriptor() error {
	number := strconv.Itoa(c.fd)
	link, err := os.Readlink(c.proc + "/fd/" + number)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return unix.EBADF
	case err != nil:
		return unix.EACCES
	case !strings.HasPrefix(link, "socket:"):
		return unix.ENOTSOCK
	}
	info, err := os.ReadFile(c.proc + "/fdinfo/" + number)
	if err != nil {
		return unix.EBADF
	}
	for line := range strings.Lines(string(info)) {
		if octal, found := strings.CutPrefix(line, "flags:"); found {
			flags, err := strconv.ParseUint(strings.TrimSpace(octal), 8, 32)
			if err != nil {
				return unix.EBADF
			}
			c.nonBlocking, c.closeOnExec = flags&unix.O_NONBLOCK != 0, flags&unix.O_CLOEXEC != 0
			return nil
		}
	}
	return unix.EBADF
}

// copyMemory reads from a thread's memory.
func copyMemory(thread int, from uint64, length int) ([]byte, error) {
	to := make([]byte, length)
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(length)
	n, err := unix.ProcessVMReadv(thread, local, []unix.RemoteIovec{{Base: uintptr(from), Len: length}}, 0)
	switch {
	case err == nil && n == length:
		return to, nil
	case err == nil, errors.Is(err, unix.EFAULT):
		return nil, unix.EFAULT
	}
	// A container's own filter may refuse the call; the file asks the kernel the same question.
	memory, err := os.Open("/proc/" + strconv.Itoa(thread) + "/mem")
	if err != nil {
		return nil, unix.EACCES
	}
	defer func() { _ = memory.Close() }()                     // nothing was written
	if _, err := memory.ReadAt(to, int64(from)); err != nil { // #nosec G115 -- no address of a program is negative; one that is gives an error
		return nil, unix.EFAULT
	}
	return to, nil
}
