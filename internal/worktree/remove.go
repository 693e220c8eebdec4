package worktree

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// holdDepth is how many folders removeAll keeps open; deeper ones are moved up first, so
// that no nesting exhausts descriptors or the stack.
const holdDepth = 64

// removeAll removes a name and what is below it; that it is not there is fine. Links are
// removed, never followed. Folders made unreadable are opened to their owner first.
func removeAll(dir int, name string) error {
	pending := []string{name}
	for len(pending) > 0 {
		last := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		moved, err := removeTree(dir, dir, last, 0)
		pending = append(pending, moved...)
		if err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes below top/…/dir what it can reach within holdDepth and returns the
// names under which it has moved the rest into top.
func removeTree(top, dir int, name string, depth int) (moved []string, err error) {
	err = unix.Unlinkat(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	st, statErr := lstatAt(dir, name)
	if statErr != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil, &os.PathError{Op: "remove", Path: name, Err: err}
	}
	fd, err := openat(dir, name, openFolderFlags, 0)
	if errors.Is(err, unix.EACCES) || err == nil && st.Mode&0o700 != 0o700 {
		if err == nil {
			_ = unix.Close(fd)
		}
		if err := chmodAt(dir, name, 0o700); err != nil {
			return nil, &os.PathError{Op: "remove", Path: name, Err: err}
		}
		fd, err = openat(dir, name, openFolderFlags, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "remove", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var names []string
	err = eachName(fd, make([]byte, 1<<15), func(name []byte, _ uint8) error {
		names = append(names, string(name))
		return nil
	})
	if err != nil {
		return nil, &os.PathError{Op: "list", Path: name, Err: err}
	}
	for _, below := range names {
		if depth >= holdDepth {
			away := temporaryName()
			if err := unix.Renameat(fd, below, top, away); err != nil {
				return moved, &os.PathError{Op: "remove", Path: below, Err: err}
			}
			moved = append(moved, away)
			continue
		}
		more, err := removeTree(top, fd, below, depth+1)
		moved = append(moved, more...)
		if err != nil {
			return moved, err
		}
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil {
		return moved, &os.PathError{Op: "remove", Path: name, Err: err}
	}
	return moved, nil
}
