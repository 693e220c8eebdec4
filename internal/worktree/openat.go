package worktree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Everything below a worktree is reached through descriptors of folders, never through
// a path that a planted link could bend.

const openFolderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// openBelow opens something below root; no element of the path may be a link.
func openBelow(root int, path string, flags int) (fd int, err error) {
	if path == "" {
		path = "."
	}
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC), //nolint:gosec // flags are constants, never negative
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	err = retry(func() error {
		fd, err = unix.Openat2(root, path, &how)
		return err
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) {
		return openStepwise(root, path, flags) // before Linux 5.6, or hidden by a seccomp filter
	}
	return fd, err
}

func openStepwise(root int, path string, flags int) (int, error) {
	at := root
	for {
		name, rest, deeper := strings.Cut(path, "/")
		want := flags | unix.O_NOFOLLOW
		if deeper {
			want = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW
		}
		fd, err := openat(at, name, want, 0)
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil || !deeper {
			return fd, err
		}
		at, path = fd, rest
	}
}

func lstatAt(dir int, name string) (st unix.Stat_t, err error) {
	err = retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// chmodAt sets the permission bits of something that is not a link. The path through
// /proc is there since fchmodat follows links before Linux 6.6.
func chmodAt(dir int, name string, mode uint32) error {
	fd, err := openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode&0o7777)
}

func readlinkAt(dir int, name string) ([]byte, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return nil, err
		}
		if n < size {
			return buf[:n], nil
		}
	}
}

// eachName calls visit for the names in a folder, "." and ".." left out. The name is
// only valid during the call. kind is a unix.DT_ value.
func eachName(dir int, buf []byte, visit func(name []byte, kind uint8) error) error {
	const header = 19 // linux_dirent64: inode 8, offset 8, length 2, kind 1, then the name
	for {
		var n int
		err := retry(func() (err error) { n, err = unix.Getdents(dir, buf); return err })
		if err != nil || n <= 0 {
			return err
		}
		for rest := buf[:n]; len(rest) > header; {
			length := int(binary.NativeEndian.Uint16(rest[16:]))
			if length <= header || length > len(rest) {
				return io.ErrUnexpectedEOF
			}
			name := rest[header:length]
			kind := rest[18]
			rest = rest[length:]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			if len(name) == 0 || name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.') {
				continue
			}
			if kind == unix.DT_UNKNOWN {
				st, err := lstatAt(dir, string(name))
				if err != nil {
					return err
				}
				kind = uint8(st.Mode & unix.S_IFMT >> 12)
			}
			if err := visit(name, kind); err != nil {
				return err
			}
		}
	}
}

// openRegular opens a regular file for reading and nothing else: a named pipe cannot
// block it and a link is not followed. A file made unreadable is made readable again
// once, which works for its owner and for root.
func openRegular(dir int, name string) (*os.File, unix.Stat_t, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	var st unix.Stat_t
	fd, err := openat(dir, name, flags, 0)
	if errors.Is(err, unix.EACCES) {
		if st, err = lstatAt(dir, name); err == nil {
			if err = chmodAt(dir, name, st.Mode|0o400); err == nil {
				fd, err = openat(dir, name, flags, 0)
			}
		}
	}
	if err != nil {
		return nil, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return nil, st, errors.New("is not a regular file any more")
	}
	return os.NewFile(uintptr(fd), name), st, nil
}

// openReadable opens a folder below root for listing, made readable again once when
// its mode forbids it to its owner.
func openReadable(root int, path string) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := openBelow(root, path, openFolderFlags)
	if errors.Is(err, unix.EACCES) && path == "" {
		if chmodErr := unix.Fchmod(root, 0o700); chmodErr == nil {
			fd, err = openBelow(root, path, openFolderFlags)
		}
	} else if errors.Is(err, unix.EACCES) {
		parent, name := split(path)
		above, openErr := openBelow(root, parent, openFolderFlags)
		if openErr != nil {
			return -1, st, err
		}
		if chmodErr := chmodAt(above, name, 0o700); chmodErr == nil {
			fd, err = openBelow(root, path, openFolderFlags)
		}
		_ = unix.Close(above)
	}
	if err != nil {
		return -1, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	if st.Mode&0o500 != 0o500 && os.Geteuid() != 0 {
		if err := unix.Fchmod(fd, st.Mode&0o7777|0o700); err != nil {
			_ = unix.Close(fd)
			return -1, st, err
		}
	}
	return fd, st, nil
}

// pathError says which path of the worktree a system call failed on and what it means.
func pathError(doing, path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s %q in the worktree: %w: its mode or owner forbids it and could not be changed", doing, path, err)
	}
	return fmt.Errorf("%s %q in the worktree: %w", doing, path, err)
}
