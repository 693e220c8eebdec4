package sandbox

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A tree goes through folders that commands made and may be changing meanwhile. Links are not followed, nothing in it can
// block, and its depth costs no descriptors: it goes back by "..", if that leads to where it came from.
type tree struct {
	file    func(dir int, name string, st *unix.Stat_t) // everything but folders
	enter   func(dir int, name string) (fd int, err error)
	folder  func(st *unix.Stat_t)         // on entering one
	left    func(parent int, name string) // when everything below name was seen; nil for nothing
	ended   func() bool                   // breaks off
	until   time.Time                     // breaks off; a command can make folders faster than they can be seen
	pending int                           // bytes of names kept
	hidden  bool                          // something was not seen
	buffer  []byte                        // of getdents(2)
}

// treeMemory bounds what a tree keeps in names and folders, in bytes. Beyond it folders are passed over.
const treeMemory = 16 << 20

type fileID struct{ dev, inode uint64 }

// idOf names a file.
func idOf(st *unix.Stat_t) fileID { return fileID{st.Dev, st.Ino} }

// A treeLevel is a folder on the way from the root to where the tree is.
type treeLevel struct {
	id    fileID
	name  string
	below []string // folders not yet entered
}

// levelCost is about what a level or a name takes beside its text.
const levelCost = 64

// walk goes through the folder fd, which it closes.
func (t *tree) walk(fd int) {
	defer func() { _ = unix.Close(fd) }()
	t.buffer = make([]byte, 32<<10)
	first, err := t.list(fd, "")
	if err != nil {
		t.hidden = true
		return
	}
	for levels := []treeLevel{first}; len(levels) > 0; {
		if t.ended() || !t.until.IsZero() && time.Now().After(t.until) {
			t.hidden = true
			return
		}
		top := &levels[len(levels)-1]
		if n := len(top.below); n > 0 {
			name := top.below[n-1]
			top.below = top.below[:n-1]
			t.pending -= len(name) + levelCost
			if next, below, ok := t.down(fd, name); ok {
				_ = unix.Close(fd)
				fd = next
				levels = append(levels, below)
			}
			continue
		}
		name := top.name
		t.pending -= len(name) + levelCost
		levels = levels[:len(levels)-1]
		if len(levels) == 0 {
			return
		}
		parent, err := back(fd, levels[len(levels)-1].id)
		if err != nil {
			t.hidden = true // it was moved: what is still to be seen above cannot be found from here
			return
		}
		_ = unix.Close(fd)
		fd = parent
		if t.left != nil {
			t.left(fd, name)
		}
	}
}

// down enters a folder. One that has no folders itself is left again at once, and ok is false.
func (t *tree) down(dir int, name string) (fd int, level treeLevel, ok bool) {
	fd, err := t.enter(dir, name)
	if err == nil {
		level, err = t.list(fd, name)
		if err == nil && len(level.below) > 0 {
			return fd, level, true
		}
		t.pending -= len(name) + levelCost
		_ = unix.Close(fd)
	}
	switch {
	case err == nil && t.left != nil:
		t.left(dir, name)
	case err != nil && !errors.Is(err, unix.ENOENT):
		t.hidden = true
	}
	return -1, treeLevel{}, false
}

// list sees what is in a folder. t.pending counts the level even when there is an error.
func (t *tree) list(fd int, name string) (treeLevel, error) {
	t.pending += len(name) + levelCost
	level := treeLevel{name: name}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return level, err
	}
	level.id = idOf(&st)
	t.folder(&st)
	var names []string
	for !t.ended() {
		n, err := unix.ReadDirent(fd, t.buffer)
		if err != nil {
			return level, err
		}
		if n <= 0 {
			return level, nil
		}
		_, _, names = unix.ParseDirent(t.buffer[:n], -1, names[:0])
		for _, entry := range names {
			if unix.Fstatat(fd, entry, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // removed meanwhile, or the folder may be listed and not searched
			}
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				t.file(fd, entry, &st)
				continue
			}
			if t.pending += len(entry) + levelCost; t.pending > treeMemory {
				t.pending -= len(entry) + levelCost
				t.hidden = true
				continue
			}
			level.below = append(level.below, entry)
		}
	}
	return level, nil
}

// back opens the folder above fd, which must be the one that was left for it.
func back(fd int, want fileID) (int, error) {
	parent, err := unix.Openat(fd, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(parent, &st); err == nil && idOf(&st) != want {
		err = unix.ESTALE
	}
	if err != nil {
		_ = unix.Close(parent)
		return -1, err
	}
	return parent, nil
}

// emptyFolder removes everything in a folder of dead commands: trees of any depth, folders without permissions and whatever
// kind of file. Places where something is mounted stay.
func emptyFolder(dir string) error {
	var failed error
	for {
		fd, err := openOwn(unix.AT_FDCWD, dir)
		if err != nil {
			return fmt.Errorf("emptying %s: %w", dir, err)
		}
		removed := 0
		failed = nil
		remove := func(dir int, name string, flags int) {
			switch err := unix.Unlinkat(dir, name, flags); {
			case err == nil:
				removed++
			case errors.Is(err, unix.EBUSY), errors.Is(err, unix.ENOENT):
			case failed == nil || errors.Is(failed, unix.ENOTEMPTY):
				failed = err
			}
		}
		t := &tree{
			file:   func(dir int, name string, _ *unix.Stat_t) { remove(dir, name, 0) },
			enter:  openOwn,
			folder: func(*unix.Stat_t) {},
			left:   func(parent int, name string) { remove(parent, name, unix.AT_REMOVEDIR) },
			ended:  func() bool { return false },
		}
		t.walk(fd)
		switch {
		case removed > 0 && (t.hidden || failed != nil):
			// A file system may pass over entries of a folder that shrinks meanwhile: again, until nothing goes any more.
		case failed != nil:
			return fmt.Errorf("emptying %s: %w", dir, failed)
		case t.hidden:
			return fmt.Errorf("emptying %s: something in it cannot be opened", dir)
		default:
			return nil
		}
	}
}

// openOwn opens a folder to change it, whatever its permissions are. It does not follow a link.
func openOwn(dir int, name string) (int, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|flags, 0)
	if errors.Is(err, unix.EACCES) {
		place, placeErr := unix.Openat(dir, name, unix.O_PATH|flags, 0)
		if placeErr != nil {
			return -1, placeErr
		}
		err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", place), 0o700)
		_ = unix.Close(place)
		if err != nil {
			return -1, err
		}
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|flags, 0)
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&0o700 != 0o700 {
		err = unix.Fchmod(fd, 0o700)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
