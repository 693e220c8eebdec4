package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Options for Checkout.
type Options struct {
	UID, GID int  // owner of every file when Chown
	Chown    bool // give files to UID, GID: commands run as that user
}

// backdated is how much older than their making the files of a checkout are. Tools that tell a changed file by its size and
// the second it was written in (git's index, Python's bytecode) would miss a change made in the second of the checkout.
const backdated = 2 * time.Second

// filesPerJob splits large folders among the workers of a checkout.
const filesPerJob = 128

// Checkout writes the commit's tree into dir (made, must be empty): no .git, no
// credentials, modes kept, links as links (never followed), submodules as empty folders,
// LFS pointers as they are. Hooks, filters and attributes of the repository are not
// honoured. Names that could leave dir or that some system takes for .git are refused.
// An *UnsupportedError when the checkout lacks objects by design.
func (r *Repository) Checkout(ctx context.Context, commit, dir string, o Options) (*Tree, error) {
	t, err := r.checkout(ctx, commit, dir, o)
	r.rest()
	if err != nil {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
		return nil, fmt.Errorf("check out commit %s: %w", commit, err)
	}
	return t, nil
}

func (r *Repository) checkout(ctx context.Context, commit, dir string, o Options) (*Tree, error) {
	dir, err := filepath.Abs(dir) // commands run in it, whatever the current folder is
	if err != nil {
		return nil, err
	}
	c, err := r.commit(commit)
	if err != nil {
		return nil, err
	}
	base, err := r.readBase(ctx, c.TreeHash, "", 0)
	if err != nil {
		return nil, err
	}
	t := &Tree{
		repo: r, commit: commit, dir: dir, options: o, base: base, written: time.Now().Add(-backdated),
		rules: map[*baseFolder]*rules{}, held: map[plumbing.Hash]weak.Pointer[content]{},
	}
	if err := t.readRules(base, nil); err != nil {
		return nil, err
	}
	if err := t.openEmpty(); err != nil {
		return nil, err
	}
	return t, t.write(ctx)
}

// openEmpty makes the worktree's folder.
func (t *Tree) openEmpty() error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return fmt.Errorf("make the worktree: %w", err)
	}
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return fmt.Errorf("make the worktree: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("make the worktree: %s is not empty; give it a folder of its own", t.dir)
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return fmt.Errorf("open the worktree: %w", err)
	}
	t.root = root
	if t.handle, err = root.Open("."); err != nil {
		return errors.Join(fmt.Errorf("open the worktree: %w", err), root.Close())
	}
	t.fd = int(t.handle.Fd())
	if t.options.Chown {
		if err := unix.Fchown(t.fd, t.options.UID, t.options.GID); err != nil {
			return errors.Join(fmt.Errorf("give the worktree to user %d: %w", t.options.UID, err), t.Close())
		}
	}
	return nil
}

// write makes all folders and then, in parallel, the files.
func (t *Tree) write(ctx context.Context) error {
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(workers())
	var found sync.Mutex
	err := t.base.each(func(f *baseFolder) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.path != "" {
			if err := t.makeFolder(f.path); err != nil {
				return err
			}
		}
		for start := 0; start < len(f.files); start += filesPerJob {
			part := f.files[start:min(start+filesPerJob, len(f.files))]
			jobs.Go(func() error {
				lfs, submodules, err := t.writeFiles(ctx, f.path, part)
				found.Lock()
				t.lfs, t.submodules = append(t.lfs, lfs...), append(t.submodules, submodules...)
				found.Unlock()
				return err
			})
		}
		return nil
	})
	if failed := jobs.Wait(); failed != nil {
		err = failed
	}
	slices.Sort(t.lfs)
	slices.Sort(t.submodules)
	done := time.Now()
	return errors.Join(err, t.base.each(func(f *baseFolder) error {
		for i := range f.files {
			f.files[i].racy = f.files[i].written.racyAt(done)
		}
		return nil
	}))
}

func (t *Tree) makeFolder(path string) error {
	above, name := split(path)
	dir, err := openBelow(t.fd, above, openFolderFlags)
	if err != nil {
		return pathError("make the folder", path, err)
	}
	defer func() { _ = unix.Close(dir) }()
	if err := t.mkdirAt(dir, name, 0o755); err != nil {
		return pathError("make the folder", path, err)
	}
	return nil
}

// mkdirAt makes one folder whatever the umask is, for the worktree's owner.
func (t *Tree) mkdirAt(dir int, name string, perm uint32) error {
	if err := unix.Mkdirat(dir, name, 0o700); err != nil {
		return err
	}
	fd, err := openat(dir, name, openFolderFlags, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if t.options.Chown {
		if err := unix.Fchown(fd, t.options.UID, t.options.GID); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, perm)
}

// lfsPointer is how a Git LFS pointer file starts (git-lfs spec); they are at most 1024 bytes.
var lfsPointer = []byte("version https://git-lfs.github.com/spec/")

func (t *Tree) writeFiles(ctx context.Context, folder string, files []baseFile) (lfs, submodules []string, err error) {
	dir, err := openBelow(t.fd, folder, openFolderFlags)
	if err != nil {
		return nil, nil, pathError("write into the folder", folder, err)
	}
	defer func() { _ = unix.Close(dir) }()
	for i := range files {
		if err := ctx.Err(); err != nil {
			return lfs, submodules, err
		}
		f := &files[i]
		path := join(folder, f.name)
		if f.mode == modeSubmodule {
			submodules = append(submodules, path)
			if err := t.mkdirAt(dir, f.name, 0o755); err != nil {
				return lfs, submodules, pathError("make the folder", path, err)
			}
			continue
		}
		pointer, err := t.writeFile(dir, f)
		if err != nil {
			return lfs, submodules, pathError("write", path, err)
		}
		if pointer {
			lfs = append(lfs, path)
		}
	}
	return lfs, submodules, nil
}

// writeFile writes one file of the base commit and remembers its identity. It says
// whether the file is an LFS pointer.
func (t *Tree) writeFile(dir int, f *baseFile) (pointer bool, err error) {
	if f.kind() == KindSymlink {
		return false, t.writeLink(dir, f)
	}
	encoded, err := t.repo.object(plumbing.BlobObject, f.hash)
	if err != nil {
		return false, err
	}
	reader, err := encoded.Reader()
	if err != nil {
		return false, err
	}
	defer func() { _ = reader.Close() }()
	head := make([]byte, min(encoded.Size(), 1024))
	if _, err := io.ReadFull(reader, head); err != nil {
		return false, err
	}
	content := io.MultiReader(bytes.NewReader(head), reader)
	if err := t.createAt(dir, f.name, content, permOf(f.kind())); err != nil {
		return false, err
	}
	return encoded.Size() <= 1024 && bytes.HasPrefix(head, lfsPointer), t.backdate(dir, f)
}

func (t *Tree) writeLink(dir int, f *baseFile) error {
	target, err := t.repo.blob(f.hash, unix.PathMax-1)
	if err != nil {
		return err
	}
	if err := t.linkAt(dir, f.name, target); err != nil {
		return err
	}
	return t.backdate(dir, f)
}

// backdate gives a file that was just written the time all files of the checkout have, and remembers its identity.
func (t *Tree) backdate(dir int, f *baseFile) error {
	at := unix.NsecToTimespec(t.written.UnixNano())
	if err := unix.UtimesNanoAt(dir, f.name, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	st, err := lstatAt(dir, f.name)
	f.written = identityOf(&st)
	return err
}

func permOf(k Kind) uint32 {
	if k == KindExecutable {
		return 0o755
	}
	return 0o644
}

// createAt makes a new file; it fails when the name is taken.
func (t *Tree) createAt(dir int, name string, content io.Reader, perm uint32) (err error) {
	fd, err := openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, content); err != nil {
		return err
	}
	if t.options.Chown {
		if err := unix.Fchown(fd, t.options.UID, t.options.GID); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, perm)
}

// linkAt makes a new symbolic link; it fails when the name is taken.
func (t *Tree) linkAt(dir int, name string, target []byte) error {
	if err := unix.Symlinkat(string(target), dir, name); err != nil {
		return err
	}
	if t.options.Chown {
		return unix.Fchownat(dir, name, t.options.UID, t.options.GID, unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}
