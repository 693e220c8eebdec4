package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/go-git/go-billy/v5"
	"golang.org/x/sys/unix"
)

// lend lists folders in which commands find the checkout's objects: its own, or others in dir that hold the same.
func (t *Tree) lend(ctx context.Context, dir string, reachable func(path string) bool) ([]string, error) {
	var lent []string
	for i, name := range t.repo.names {
		folder, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil, err
		}
		if reachable(folder) && (!t.options.Chown || openToAll(folder)) {
			lent = append(lent, folder)
			continue
		}
		into := filepath.Join(dir, fmt.Sprintf("lent-%d", i))
		if err := linkObjects(ctx, folder, into); err != nil {
			return nil, err
		}
		lent = append(lent, into)
	}
	return lent, nil
}

// openToAll reports whether everybody may read what lies in a folder of objects: a umask that was another for a while
// leaves some that only their owner can.
func openToAll(folder string) bool {
	closed := errors.New("closed")
	return filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		need := fs.FileMode(0o004)
		if d.IsDir() {
			need = 0o005
		}
		if info.Mode().Perm()&need != need {
			return closed
		}
		return nil
	}) == nil
}

// linkObjects makes into hold the objects of folder, by hard links or else copies. Files of objects are never written to again,
// and a link has the permissions of its file, so commands cannot reach the checkout by it.
func linkObjects(ctx context.Context, folder, into string) error {
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		below, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		target := filepath.Join(into, below)
		switch {
		case d.IsDir():
			return openFolder(target, os.Mkdir)
		case !d.Type().IsRegular() || filepath.Dir(below) == "info":
			return nil // alternates have been followed, and what else is there git can do without
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&0o004 != 0 && os.Link(name, target) == nil {
			return nil
		}
		from, err := os.Open(name)
		if err != nil {
			return err
		}
		return copyObject(from, target)
	})
}

// copyObject writes a file of objects that everybody may read, and closes from.
func copyObject(from io.ReadCloser, to string) (err error) {
	defer func() { _ = from.Close() }() // only read
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, from); err != nil {
		return err
	}
	return unix.Fchmod(int(file.Fd()), 0o444)
}

// addFetched copies the objects that were fetched for this run, which the checkout does not have.
func (t *Tree) addFetched(ctx context.Context, into string) error {
	t.repo.mu.RLock()
	fetched := t.repo.folders[len(t.repo.names):]
	t.repo.mu.RUnlock()
	for _, f := range fetched {
		if err := copyFolder(ctx, f.files, "objects", into); err != nil {
			return err
		}
	}
	return nil
}

// copyFolder copies a folder of objects; those that are there already are the same.
func copyFolder(ctx context.Context, files billy.Filesystem, folder, into string) error {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, to := path.Join(folder, e.Name()), filepath.Join(into, e.Name())
		switch {
		case e.IsDir() && e.Name() != "info":
			if err := openFolder(to, os.MkdirAll); err != nil {
				return err
			}
			if err := copyFolder(ctx, files, from, to); err != nil {
				return err
			}
		case e.Mode().IsRegular():
			file, err := files.Open(from)
			if err != nil {
				return err
			}
			if err := copyObject(file, to); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return nil
}
