package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What one cache may bring. The copies count against disk-limit.
const (
	maxCacheSize  = 2 << 30
	maxCacheFiles = 500_000
)

// A copyBudget copies folders for the commands' user until it is used up. Files are cloned where the file system can
// (FICLONE: Btrfs, XFS), else copied inside of the kernel; never linked, since a command would change the original with its copy.
type copyBudget struct {
	bytes int64
	files int
	owner Owner
}

// once copies source to target, which lies below home, unless that is there. The copy appears when it is complete.
func (c *copyBudget) once(home, source, target string) error {
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	if _, err := os.Stat(source); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// Another sandbox of the run may use this home already: nothing a command has put into the way is followed.
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	below, err := filepath.Rel(home, target)
	if err != nil {
		return err
	}
	if err := c.folders(root, filepath.Dir(below)); err != nil {
		return err
	}
	unfinished := below + ".part"
	if err := root.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := c.tree(source, root, unfinished); err != nil {
		return errors.Join(err, root.RemoveAll(unfinished))
	}
	return root.Rename(unfinished, below)
}

// folders makes dir and what is missing above it.
func (c *copyBudget) folders(root *os.Root, dir string) error {
	if _, err := root.Stat(dir); err == nil || dir == "." {
		return err
	}
	if err := c.folders(root, filepath.Dir(dir)); err != nil {
		return err
	}
	return c.folder(root, dir)
}

func (c *copyBudget) folder(root *os.Root, dir string) error {
	if err := root.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return c.own(root, dir)
}

func (c *copyBudget) own(root *os.Root, path string) error {
	if !c.owner.Drop {
		return nil
	}
	return root.Lchown(path, c.owner.UID, c.owner.GID)
}

// tree copies folders and files; links, which lead out of a cache or into what is copied anyway, are left out, as is what cannot be
// read: to a tool it is not in the cache.
func (c *copyBudget) tree(source string, root *os.Root, target string) error {
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path != source && passing(err) {
				return nil
			}
			return err
		}
		below, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		to := filepath.Join(target, below)
		switch {
		case d.IsDir():
			return c.folder(root, to)
		case d.Type().IsRegular():
			return c.file(path, root, to)
		}
		return nil
	})
}

// passing reports whether an error means that something is not in the cache, or no longer.
func passing(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)
}

func (c *copyBudget) file(source string, root *os.Root, target string) (err error) {
	from, err := os.OpenFile(source, os.O_RDONLY|unix.O_NOFOLLOW, 0) // #nosec G304 -- below a configured cache
	if passing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if c.files--; c.files < 0 {
		return fmt.Errorf("it has more than %d files: clean it, or do not name it", maxCacheFiles)
	}
	if c.bytes -= info.Size(); c.bytes < 0 {
		return fmt.Errorf("it is larger than %d MiB: clean it, or do not name it", maxCacheSize>>20)
	}
	to, err := root.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600|info.Mode().Perm()&0o100)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := unix.IoctlFileClone(int(to.Fd()), int(from.Fd())); err != nil { // #nosec G115 -- descriptors
		if _, err := io.Copy(to, io.LimitReader(from, info.Size())); err != nil {
			return err
		}
	}
	if c.owner.Drop {
		if err := to.Chown(c.owner.UID, c.owner.GID); err != nil {
			return err
		}
	}
	// Go forgets what was not used for days, by this time.
	return root.Chtimes(target, info.ModTime(), info.ModTime())
}
