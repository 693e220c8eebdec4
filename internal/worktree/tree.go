package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"weak"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// A Tree is a worktree on disk made from a base commit. Its methods may be called by
// several goroutines; those that look at the whole worktree wait for each other.
type Tree struct {
	repo    *Repository
	commit  string
	dir     string
	options Options
	base    *baseFolder
	rules   map[*baseFolder]*rules // of the base commit
	written time.Time              // of every file of the checkout

	lfs, submodules []string

	root   *os.Root // for single files: follows links, not out of the worktree
	handle *os.File // keeps fd open
	fd     int      // for everything else: follows no links

	mu    sync.Mutex
	first *folder         // nil until Begin
	stop  context.Context //nolint:containedctx // of the comparison that is running, under mu

	heldMu sync.Mutex
	held   map[plumbing.Hash]weak.Pointer[content]
}

// Dir is its folder.
func (t *Tree) Dir() string { return t.dir }

// Base is the commit it was made from.
func (t *Tree) Base() string { return t.commit }

// LFS lists the Git LFS pointer files of the base commit: their content is not really
// there, for the model to be told.
func (t *Tree) LFS() []string { return slices.Clone(t.lfs) }

// Submodules lists the submodule entries of the base commit, which are empty folders here.
func (t *Tree) Submodules() []string { return slices.Clone(t.submodules) }

// local checks a path given by the model or a caller.
func local(path string) (string, error) {
	if path == "" || !filepath.IsLocal(path) || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%q is not a path inside the worktree: use a relative path that goes down only", path)
	}
	return filepath.Clean(path), nil
}

// OpenFile opens a regular file for reading. Links are followed as long as they stay in
// the worktree.
func (t *Tree) OpenFile(path string) (io.ReadCloser, error) { return t.open(path) }

func (t *Tree) open(path string) (*os.File, error) {
	path, err := local(path)
	if err != nil {
		return nil, err
	}
	// Not blocking: opening a named pipe would wait for its other end.
	f, err := t.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile reads a regular file of at most 64 MiB; a *TooLargeError when it has more.
func (t *Tree) ReadFile(path string) ([]byte, error) {
	f, err := t.open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxRead {
		return nil, &TooLargeError{Path: path, Size: info.Size(), Limit: maxRead}
	}
	return io.ReadAll(io.LimitReader(f, maxRead))
}

// WriteFile replaces or creates a file: makes parents, keeps the mode of an existing file
// and gives new files to the owner of Options. The file is replaced as a whole, so that
// other names of it (hard links) keep their content; a link as the last element is refused.
func (t *Tree) WriteFile(path string, data []byte) error {
	path, err := local(path)
	if err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	info, err := t.root.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.makeParents(filepath.Dir(path)); err != nil {
			return err
		}
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := t.root.Readlink(path)
		return fmt.Errorf("%s is a link to %s: write to that file instead", path, target)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	default:
		perm = info.Mode().Perm()
	}
	return t.replace(path, data, perm)
}

func (t *Tree) replace(path string, data []byte, perm fs.FileMode) (err error) {
	temporary := filepath.Join(filepath.Dir(path), temporaryName())
	f, err := t.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = t.root.Remove(temporary)
		}
	}()
	_, err = f.Write(data)
	if err == nil && t.options.Chown {
		err = f.Chown(t.options.UID, t.options.GID)
	}
	if err == nil {
		err = f.Chmod(perm)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return t.root.Rename(temporary, path)
}

func temporaryName() string { return ".issuesmith-" + rand.Text() }

func (t *Tree) makeParents(path string) error {
	if path == "." {
		return nil
	}
	if info, err := t.root.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", path)
		}
		return nil
	}
	if err := t.makeParents(filepath.Dir(path)); err != nil {
		return err
	}
	if err := t.root.Mkdir(path, 0o755); err != nil {
		return err
	}
	if t.options.Chown {
		return t.root.Lchown(path, t.options.UID, t.options.GID)
	}
	return nil
}

// Files yields the slash-separated paths of the regular files, sorted, without ignored ones.
func (t *Tree) Files(ctx context.Context) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := t.take(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	var paths []string
	var list func(f *folder)
	list = func(f *folder) {
		for i := range f.entries {
			if isFile(f.entries[i].kind) {
				paths = append(paths, join(f.path, f.entries[i].name))
			}
		}
		for _, child := range f.folders {
			list(child)
		}
	}
	list(now)
	slices.Sort(paths)
	return paths, nil
}

// Close removes the folder.
func (t *Tree) Close() error {
	err := errors.Join(t.handle.Close(), t.root.Close())
	above, openErr := unix.Open(filepath.Dir(filepath.Clean(t.dir)), openFolderFlags&^unix.O_NOFOLLOW, 0)
	if openErr != nil {
		return errors.Join(err, fmt.Errorf("remove the worktree: %w", openErr))
	}
	defer func() { _ = unix.Close(above) }()
	if removeErr := removeAll(above, filepath.Base(filepath.Clean(t.dir))); removeErr != nil {
		err = errors.Join(err, fmt.Errorf("remove the worktree %s: %w", t.dir, removeErr))
	}
	return err
}

// put makes path hold a state: a file with its permission bits, or a link. Whatever is in
// the way is removed, a planted link as a parent folder included; nothing is followed.
func (t *Tree) put(path string, s *state, data []byte) error {
	above, name := split(path)
	dir, err := t.clearWay(above)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	if st, err := lstatAt(dir, name); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := removeAll(dir, name); err != nil {
			return err
		}
	}
	temporary := temporaryName()
	if s.kind == KindSymlink {
		err = t.linkAt(dir, temporary, data)
	} else {
		err = t.createAt(dir, temporary, bytes.NewReader(data), s.perm)
	}
	if err == nil {
		err = unix.Renameat(dir, temporary, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0)
	}
	return err
}

// clearWay opens a folder, making it and its parents where they are missing and removing
// what stands in their place.
func (t *Tree) clearWay(path string) (int, error) {
	if dir, err := openBelow(t.fd, path, openFolderFlags); err == nil {
		return dir, nil
	}
	at, err := openBelow(t.fd, "", openFolderFlags)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(path, "/") {
		st, err := lstatAt(at, name)
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = unix.Unlinkat(at, name, 0)
			if err == nil {
				err = unix.ENOENT
			}
		}
		if errors.Is(err, unix.ENOENT) {
			err = t.mkdirAt(at, name, 0o755)
		}
		if err != nil {
			_ = unix.Close(at)
			return -1, err
		}
		next, err := openat(at, name, openFolderFlags, 0)
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}
