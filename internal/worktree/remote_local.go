package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"golang.org/x/sys/unix"
)

// A localRemote is a bare repository in a folder that borrows objects from the checkout.
type localRemote struct{ dir string }

// NewLocalRemote is a bare repository in a folder (made when missing, with alternates to source's objects).
func NewLocalRemote(dir string, source *Repository) (Remote, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make the local remote: %w", err)
	}
	if !isGitDir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("make the local remote: %w", err)
		}
		if len(entries) > 0 {
			return nil, fmt.Errorf("make the local remote: %s is neither empty nor a bare repository; name another folder", dir)
		}
	}
	if err := makeBare(dir, source); err != nil {
		return nil, fmt.Errorf("make the local remote %s: %w", dir, err)
	}
	return &localRemote{dir}, nil
}

func makeBare(dir string, source *Repository) error {
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return err
		}
	}
	head := "refs/heads/main"
	if h, err := source.Head(); err == nil && h.Branch != "" {
		head = "refs/heads/" + h.Branch
	}
	files := map[string]string{
		"config":                  "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n",
		"objects/info/alternates": strings.Join(source.names, "\n") + "\n",
		"HEAD":                    "ref: " + head + "\n", // last: with it the folder is a repository
	}
	// The checkout's missing parents are missing here as well.
	if shallow, err := os.ReadFile(filepath.Join(source.layout.commonDir, "shallow")); err == nil {
		files["shallow"] = string(shallow)
	}
	for _, name := range []string{"config", "objects/info/alternates", "shallow", "HEAD"} {
		text, ok := files[name]
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(path); !ok || err == nil && (name == "config" || name == "HEAD") {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (r *localRemote) storage() *filesystem.Storage {
	return filesystem.NewStorage(osfs.New(r.dir), cache.NewObjectLRU(cache.MiByte))
}

// Refs lists the refs.
func (r *localRemote) Refs(context.Context) (map[string]string, error) {
	refs, err := refsIn(r.storage())
	if err != nil {
		return nil, fmt.Errorf("list the refs of %s: %w", r.dir, err)
	}
	return refs, nil
}

func refsIn(s *filesystem.Storage) (map[string]string, error) {
	iter, err := s.IterReferences()
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	err = iter.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && strings.HasPrefix(ref.Name().String(), "refs/") {
			refs[ref.Name().String()] = ref.Hash().String()
		}
		return nil
	})
	return refs, err
}

// Fetch makes the objects here readable for into.
func (r *localRemote) Fetch(ctx context.Context, into *Repository, ref, commit string) error {
	refs, err := r.Refs(ctx)
	if err != nil {
		return err
	}
	if commit == "" || refs[ref] != commit {
		return fmt.Errorf("fetch %s: it is not at %s any more: %w", ref, commit, ErrMoved)
	}
	f, err := openObjectFolder(newObjectView(filepath.Join(r.dir, "objects")), into.cache)
	if err == nil {
		err = into.addFolder(f, plumbing.NewHash(commit))
	}
	if err != nil {
		return fmt.Errorf("fetch %s from %s: %w", ref, r.dir, err)
	}
	return nil
}

// Push writes the objects and moves the refs, all or none, under a lock.
func (r *localRemote) Push(_ context.Context, from *Repository, updates ...Update) (err error) {
	if err := check(updates); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(r.dir, "issuesmith.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", r.dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // which also unlocks
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", r.dir, err)
	}
	s := r.storage()
	refs, err := refsIn(s)
	if err != nil {
		return fmt.Errorf("push to %s: %w", r.dir, err)
	}
	for _, u := range updates {
		if refs[u.Ref] != u.Old {
			return moved(u, refs[u.Ref])
		}
	}
	objects, err := from.ours(updates)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if _, err := s.SetEncodedObject(o); err != nil {
			return fmt.Errorf("write the objects to %s: %w", r.dir, err)
		}
	}
	for i, u := range updates {
		if err := setRef(s, u); err != nil {
			for _, done := range updates[:i] {
				err = errors.Join(err, setRef(s, Update{Ref: done.Ref, Old: done.New, New: done.Old}))
			}
			return fmt.Errorf("move %s in %s: %w", u.Ref, r.dir, err)
		}
	}
	return nil
}

func setRef(s *filesystem.Storage, u Update) error {
	name := plumbing.ReferenceName(u.Ref)
	if u.New == "" {
		return s.RemoveReference(name)
	}
	return s.SetReference(plumbing.NewHashReference(name, plumbing.NewHash(u.New)))
}
