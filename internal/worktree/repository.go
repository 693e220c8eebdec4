package worktree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// maxRead is the size in bytes up to which a file of a commit is handed out whole.
const maxRead = 64 << 20

// A Repository is the object database of a checkout, read only, with the objects
// of this run kept beside it in memory. Its methods are safe for concurrent reads.
type Repository struct {
	layout  layout
	partial bool     // objects may be missing by design
	names   []string // the object folders on disk, for a local remote to borrow from

	refMu sync.Mutex // dotgit keeps state while it reads refs
	refs  *dotgit.DotGit

	mu      sync.RWMutex
	folders []*objectFolder                          // the checkout's, then what was fetched
	created map[plumbing.Hash]plumbing.EncodedObject // made by this run: what a push has to send
	cache   cache.Object
}

// Open finds the checkout's object database from any folder of it: a normal, shallow,
// bare or linked (worktree file) repository, alternates included. It reads
// no configuration that could run anything. An *UnsupportedError names a form that
// cannot be worked on.
func Open(dir string) (*Repository, error) {
	at, err := discover(dir)
	if err != nil {
		return nil, err
	}
	partial, err := readForm(at.commonDir)
	if err != nil {
		return nil, err
	}
	shared := cache.NewObjectLRU(cacheSize)
	folders, names, err := openObjects(filepath.Join(at.commonDir, "objects"), shared)
	if err != nil {
		return nil, err
	}
	var view dotgit.RepositoryFilesystem
	if at.commonDir == at.gitDir {
		view = *dotgit.NewRepositoryFilesystem(osfs.New(at.gitDir), nil)
	} else {
		view = *dotgit.NewRepositoryFilesystem(osfs.New(at.gitDir), osfs.New(at.commonDir))
	}
	return &Repository{
		layout:  at,
		partial: partial,
		names:   names,
		refs:    dotgit.New(readOnly{&view}),
		folders: folders,
		created: map[plumbing.Hash]plumbing.EncodedObject{},
		cache:   shared,
	}, nil
}

// Head is what is checked out. ErrNoCommits when there is no commit.
func (r *Repository) Head() (Head, error) {
	r.refMu.Lock()
	defer r.refMu.Unlock()
	ref, err := r.refs.Ref(plumbing.HEAD)
	if err != nil {
		return Head{}, fmt.Errorf("read what is checked out: %w", err)
	}
	if ref.Type() == plumbing.HashReference {
		return Head{Commit: ref.Hash().String()}, nil
	}
	name := ref.Target()
	target, err := r.resolve(ref)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return Head{}, ErrNoCommits
	}
	if err != nil {
		return Head{}, fmt.Errorf("read the branch %s: %w", name, err)
	}
	return Head{Commit: target.Hash().String(), Branch: name.Short()}, nil
}

// resolve follows a symbolic ref; refMu is held.
func (r *Repository) resolve(ref *plumbing.Reference) (*plumbing.Reference, error) {
	var err error
	for range storer.MaxResolveRecursion {
		if ref.Type() != plumbing.SymbolicReference {
			return ref, nil
		}
		if ref, err = r.refs.Ref(ref.Target()); err != nil {
			return nil, err
		}
	}
	return nil, storer.ErrMaxResolveRecursion
}

// Branches holding the commit as their tip, short names, local and remote-tracking.
// The remote's name is left out: a checkout of a pull request or of a detached head
// knows its branch as refs/remotes/origin/main only, and it is called main here.
func (r *Repository) Branches(commit string) ([]string, error) {
	r.refMu.Lock()
	defer r.refMu.Unlock()
	refs, err := r.refs.Refs()
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	var names []string
	for _, ref := range refs {
		name := ref.Name().Short()
		if ref.Name().IsRemote() {
			_, name, _ = strings.Cut(name, "/")
			if name == "HEAD" {
				continue
			}
		} else if !ref.Name().IsBranch() {
			continue
		}
		target, err := r.resolve(ref)
		if err != nil {
			continue // a dangling symbolic ref holds nothing
		}
		if target.Hash().String() == commit {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ReadFile returns a file of a commit; fs.ErrNotExist when it is not there. A link's
// content is its target.
func (r *Repository) ReadFile(commit, path string) ([]byte, error) {
	data, err := r.readFile(commit, path)
	if err != nil {
		return nil, fmt.Errorf("read %s of commit %s: %w", path, commit, err)
	}
	return data, nil
}

func (r *Repository) readFile(commit, path string) ([]byte, error) {
	c, err := r.commit(commit)
	if err != nil {
		return nil, err
	}
	hash, mode := c.TreeHash, filemode.Dir
	for name := range strings.SplitSeq(path, "/") {
		if mode != filemode.Dir {
			return nil, fs.ErrNotExist
		}
		entries, err := r.tree(hash)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(entries, func(e object.TreeEntry) bool { return e.Name == name })
		if i < 0 {
			return nil, fs.ErrNotExist
		}
		hash, mode = entries[i].Hash, entries[i].Mode
	}
	if mode == filemode.Dir || mode == filemode.Submodule {
		return nil, fs.ErrNotExist
	}
	return r.blob(hash, maxRead)
}

// Commit reads one commit.
func (r *Repository) Commit(hash string) (*CommitInfo, error) {
	c, err := r.commit(hash)
	if err != nil {
		return nil, err
	}
	info := &CommitInfo{
		Hash:      c.Hash.String(),
		Author:    Person(c.Author),
		Committer: Person(c.Committer),
		Message:   c.Message,
		Tree:      c.TreeHash.String(),
	}
	for _, parent := range c.ParentHashes {
		info.Parents = append(info.Parents, parent.String())
	}
	return info, nil
}

func (r *Repository) commit(hash string) (*object.Commit, error) {
	if !plumbing.IsHash(hash) {
		return nil, fmt.Errorf("%q is not a commit hash of 40 hex digits", hash)
	}
	encoded, err := r.object(plumbing.CommitObject, plumbing.NewHash(hash))
	if err != nil {
		return nil, err
	}
	c, err := object.DecodeCommit(nil, encoded)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", hash, err)
	}
	return c, nil
}

func (r *Repository) tree(hash plumbing.Hash) ([]object.TreeEntry, error) {
	encoded, err := r.object(plumbing.TreeObject, hash)
	if err != nil {
		return nil, err
	}
	t, err := object.DecodeTree(nil, encoded)
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", hash, err)
	}
	return t.Entries, nil
}

// blob reads the content of a file of at most limit bytes.
func (r *Repository) blob(hash plumbing.Hash, limit int64) ([]byte, error) {
	encoded, err := r.object(plumbing.BlobObject, hash)
	if err != nil {
		return nil, err
	}
	if encoded.Size() > limit {
		return nil, &TooLargeError{Size: encoded.Size(), Limit: limit}
	}
	reader, err := encoded.Reader()
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", hash, err)
	}
	defer func() { _ = reader.Close() }()
	data := make([]byte, encoded.Size())
	if _, err := io.ReadFull(reader, data); err != nil {
		return nil, fmt.Errorf("read object %s: %w", hash, err)
	}
	return data, nil
}

// A TooLargeError says that a file's content is not kept or handed out whole.
type TooLargeError struct {
	Path        string // "" when it is not known
	Size, Limit int64  // bytes
}

func (e *TooLargeError) Error() string {
	what := e.Path
	if what == "" {
		what = "the file"
	}
	return fmt.Sprintf("%s has %d bytes, more than the %d that are read at once", what, e.Size, e.Limit)
}

// object looks in what this run made, then in the checkout and what was fetched.
func (r *Repository) object(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	r.mu.RLock()
	found, ok := r.created[hash]
	folders := r.folders
	r.mu.RUnlock()
	if !ok {
		var err error
		found, err = findObject(folders, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			for _, f := range folders {
				if err := f.listPacks(); err != nil {
					return nil, err
				}
			}
			found, err = findObject(folders, hash)
		}
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, r.missing(kind, hash)
		}
		if err != nil {
			return nil, err
		}
	}
	if found.Type() != kind {
		return nil, fmt.Errorf("object %s is a %s, not a %s", hash, found.Type(), kind)
	}
	return found, nil
}

func findObject(folders []*objectFolder, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, f := range folders {
		if found, err := f.object(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return found, err
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

func (r *Repository) has(hash plumbing.Hash) bool {
	r.mu.RLock()
	_, ok := r.created[hash]
	folders := r.folders
	r.mu.RUnlock()
	return ok || slices.ContainsFunc(folders, func(f *objectFolder) bool { return f.has(hash) })
}

// missing explains an object that is not there: by design in a partial clone.
func (r *Repository) missing(kind plumbing.ObjectType, hash plumbing.Hash) error {
	if r.partial {
		return &UnsupportedError{
			Form:   fmt.Sprintf("a partial checkout (%s %s is not in it)", kind, hash),
			Remedy: "check out without a filter: no filter: and no sparse-checkout: in actions/checkout, no --filter in git clone",
		}
	}
	return fmt.Errorf("%s %s is not in the checkout: %w", kind, hash, plumbing.ErrObjectNotFound)
}

// keep adds an object to those of this run.
func (r *Repository) keep(made plumbing.EncodedObject) plumbing.Hash {
	hash := made.Hash()
	r.mu.Lock()
	r.created[hash] = made
	r.mu.Unlock()
	return hash
}

// rest gives back what many reads have cached.
func (r *Repository) rest() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, f := range r.folders {
		f.rest()
	}
}

// Complete looks whether everything a commit's tree names is here. Only a partial clone can lack
// something by design, so only there it looks; the error is an *UnsupportedError then.
func (r *Repository) Complete(commit string) error {
	if !r.partial {
		return nil
	}
	c, err := r.commit(commit)
	if err != nil {
		return err
	}
	seen := map[plumbing.Hash]bool{}
	for open := []plumbing.Hash{c.TreeHash}; len(open) > 0; {
		hash := open[len(open)-1]
		open = open[:len(open)-1]
		entries, err := r.tree(hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch {
			case e.Mode == filemode.Submodule || seen[e.Hash]:
			case e.Mode == filemode.Dir:
				open = append(open, e.Hash)
			case !r.has(e.Hash):
				return r.missing(plumbing.BlobObject, e.Hash)
			}
			seen[e.Hash] = true
		}
	}
	return nil
}
