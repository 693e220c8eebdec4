package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// connectPath swaps in a socket connected to a unix socket below the folders. Landlock has no say about these (below version 9),
// and the broker has no more rights than the command: what lies in the folders was made there, for a socket from outside cannot be
// linked or moved in (Landlock's REFER, and the protection of hard links to what belongs to others).
func (s *session) connectPath(ctx context.Context, c *request) error {
	if c.to.abstract {
		return s.refuse(c.to)
	}
	path := c.to.path
	if !filepath.IsAbs(path) {
		path = c.folder + "/" + path
	}
	path = filepath.Clean(path)
	file, err := s.openBelow(path)
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES):
		return err
	default: // a link, or a folder that cannot be opened like that
		return s.refuse(c.to)
	}
	if file < 0 {
		return s.outside(c, path)
	}
	defer closeSocket(file)
	var info unix.Stat_t
	if err := unix.Fstat(file, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ECONNREFUSED
	}
	to := &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(file)}
	err = s.connectUnix(ctx, c, unix.SOCK_STREAM, to)
	if errors.Is(err, unix.EPROTOTYPE) {
		err = s.connectUnix(ctx, c, unix.SOCK_SEQPACKET, to)
	}
	return err
}

// openBelow opens a cleaned path that lies below one of the folders, without following links; -1 when it lies below none.
func (s *session) openBelow(path string) (int, error) {
	for _, folder := range s.folders {
		// Not followed either: one folder may lie in another, where commands could have replaced it.
		fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		rest, below := strings.CutPrefix(path, filepath.Clean(folder)+"/")
		if !below { // a working directory has its real name, whatever the folder is called
			name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)) // unread it is empty, and nothing lies below ""
			rest, below = strings.CutPrefix(path, name+"/")
			below = below && name != ""
		}
		if !below {
			closeSocket(fd)
			continue
		}
		file, err := unix.Openat2(fd, rest, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		closeSocket(fd)
		return file, err
	}
	return -1, nil
}

// outside refuses a path. Where nothing is, it says so, which the command could see for itself: libraries look for many a service
// that is not there, and nobody needs to read about them.
func (s *session) outside(c *request, path string) error {
	var info unix.Stat_t
	err := unix.Stat(path, &info)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return err
	}
	return s.refuse(c.to)
}

// connectUnix tries until there is room in the listener's queue, as the kernel does for a blocking caller.
func (s *session) connectUnix(ctx context.Context, c *request, kind int, to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer closeSocket(fd)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := unix.Connect(fd, to)
		switch {
		case err == nil:
			return s.swap(c, fd)
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EAGAIN) || c.nonBlocking:
			return err
		}
		select {
		case <-ctx.Done():
			return unix.ETIMEDOUT
		case <-time.After(wait):
		}
	}
}
