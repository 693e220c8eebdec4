// Package worktree makes a clean copy of a commit on disk, tells what was changed
// in it, and turns the change into a commit that can be pushed. It works on git
// objects with go-git and never starts git.
package worktree

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Errors that callers tell apart.
var (
	ErrNoCommits = errors.New("the repository has no commit")
	ErrMoved     = errors.New("the remote ref is not what was expected") // lost race on a push
)

// An UnsupportedError names a repository form that cannot be worked on (SHA-256
// objects, a blob-less checkout) and what to do about it.
type UnsupportedError struct{ Form, Remedy string }

func (e *UnsupportedError) Error() string { return e.Form + ": " + e.Remedy }

// A Repository is the object database of a checkout, read only, with the objects
// of this run kept beside it in memory. Its methods are safe for concurrent reads.
type Repository struct{}

// A Head says what is checked out.
type Head struct {
	Commit string // 40 hex digits
	Branch string // short name, "" when detached
}

// Open finds the checkout's object database from any folder of it: a normal, shallow,
// bare or linked (worktree file) repository, alternates included. It reads
// no configuration that could run anything.
func Open(dir string) (*Repository, error) { panic("not built") }

// Head is what is checked out. ErrNoCommits when there is no commit.
func (r *Repository) Head() (Head, error) { panic("not built") }

// Branches holding the commit as their tip, short names, local and remote-tracking.
func (r *Repository) Branches(commit string) ([]string, error) { panic("not built") }

// ReadFile returns a file of a commit; fs.ErrNotExist when it is not there.
func (r *Repository) ReadFile(commit, path string) ([]byte, error) { panic("not built") }

// CommitInfo is what a commit says.
type CommitInfo struct {
	Hash        string
	Parents     []string
	Author      Person
	Committer   Person
	Message     string
	Tree        string
}

// A Person is a name, an address and a time on a commit.
type Person struct {
	Name, Email string
	When        time.Time
}

// Commit reads one commit.
func (r *Repository) Commit(hash string) (*CommitInfo, error) { panic("not built") }

// Options for Checkout.
type Options struct {
	UID, GID int  // owner of every file when Chown
	Chown    bool // give files to UID, GID: commands run as that user
}

// Checkout writes the commit's tree into dir (made, must be empty): no .git, no
// credentials, modes kept, links as links (never followed), submodules as empty folders,
// LFS pointers as they are.
func (r *Repository) Checkout(ctx context.Context, commit, dir string, o Options) (*Tree, error) {
	panic("not built")
}

// A Tree is a worktree on disk made from a base commit.
type Tree struct{}

// Dir is its folder.
func (t *Tree) Dir() string { panic("not built") }

// Base is the commit it was made from.
func (t *Tree) Base() string { panic("not built") }

// LFS and Submodules list what is not really there, for the model to be told.
func (t *Tree) LFS() []string { panic("not built") }

// Submodules lists the submodule entries of the base commit.
func (t *Tree) Submodules() []string { panic("not built") }

// Open, ReadFile, WriteFile, Remove work below Dir only (os.Root) and follow no link out of it.
// WriteFile makes parents, keeps the mode of an existing file and gives new files to the owner of Options.
func (t *Tree) ReadFile(path string) ([]byte, error) { panic("not built") }

// OpenFile opens a regular file for reading.
func (t *Tree) OpenFile(path string) (io.ReadCloser, error) { panic("not built") }

// WriteFile replaces or creates a file.
func (t *Tree) WriteFile(path string, data []byte) error { panic("not built") }

// Files yields the slash-separated paths of the regular files, sorted, without ignored ones.
func (t *Tree) Files(ctx context.Context) ([]string, error) { panic("not built") }

// Begin takes the first snapshot (after setup): what changes are measured against.
// Untracked files that exist now are not part of any later change.
func (t *Tree) Begin(ctx context.Context) error { panic("not built") }

// Op is what happened to a file.
type Op string

// The operations of a change.
const (
	Added    Op = "added"
	Modified Op = "modified"
	Deleted  Op = "deleted"
)

// A Kind is what a path is. KindOther covers devices, sockets and named pipes.
type Kind string

// The kinds of entries.
const (
	KindNone       Kind = ""
	KindFile       Kind = "file"
	KindExecutable Kind = "executable"
	KindSymlink    Kind = "symlink"
	KindSubmodule  Kind = "submodule"
	KindRepository Kind = "repository" // a folder with a .git that appeared
	KindOther      Kind = "other"
)

// A Side is a path before or after.
type Side struct {
	Kind Kind
	Size int64
	Hash string // blob hash, "" when Kind has no content
	HardLinks uint64 // number of names, after side only; 1 is usual
}

// A File is one changed path.
type File struct {
	Path           string // slash-separated, relative
	Op             Op
	Old, New       Side
	Added, Removed int  // lines
	Binary         bool // NUL byte in either side's first 8000 bytes, as git decides
}

// A Change is everything the agent changed, sorted by path. Ignored paths and what
// setup left are not in it.
type Change struct {
	Files []File
	Tree  string // hash of the git tree that base plus change would be: the candidate's identity
}

// Lines is the sum of added and removed lines.
func (c *Change) Lines() int { panic("not built") }

// Change compares the worktree with the first snapshot. Contents are read once and kept, so that
// what was judged can be committed and restored whatever happens on disk afterwards.
func (t *Tree) Change(ctx context.Context) (*Change, error) { panic("not built") }

// Normalise removes trailing blanks from lines the change added, in text files only,
// line ends kept, writes the files and returns the change as it is then.
func (t *Tree) Normalise(ctx context.Context, c *Change) (*Change, error) { panic("not built") }

// Content returns the bytes of a side (a link's target for links).
func (t *Tree) Content(s Side) ([]byte, error) { panic("not built") }

// A Line is an added line: its number in the new file (from 1) and its text without the line end.
type Line struct {
	Number int
	Text   string
}

// AddedLines lists the lines the change adds to a text file.
func (t *Tree) AddedLines(f File) ([]Line, error) { panic("not built") }

// Patch is the change as a unified diff that git apply takes, binary files as a note.
func (t *Tree) Patch(c *Change) (string, error) { panic("not built") }

// PutBack returns paths to the state of the first snapshot.
func (t *Tree) PutBack(ctx context.Context, paths []string) error { panic("not built") }

// A Restored says what Restore had to do.
type Restored struct {
	Altered []string // files of the change that had been altered or removed since
	Tracked []string // other tracked files that were put back
	Removed []string // new files outside ignored paths that were taken away
}

// Restore makes the worktree exactly first snapshot plus change again; ignored paths are left alone.
func (t *Tree) Restore(ctx context.Context, c *Change) (*Restored, error) { panic("not built") }

// CommitChange builds a commit on the base commit's tree from the change alone and
// keeps it among the objects of this run. Returns its hash.
func (t *Tree) CommitChange(c *Change, author Person, message string) (string, error) { panic("not built") }

// Close removes the folder.
func (t *Tree) Close() error { panic("not built") }

// A Remote is a repository that refs can be listed on, fetched from and pushed to.
type Remote interface {
	// Refs lists all refs with their hashes (peeled entries left out).
	Refs(ctx context.Context) (map[string]string, error)
	// Fetch brings one commit with its whole tree, without parents, into the repository.
	// ref is a full ref name that points at it.
	Fetch(ctx context.Context, into *Repository, ref, commit string) error
	// Push updates refs; each only if it is Old now. The objects of this run go along. A lost
	// race is ErrMoved (wrapped), whatever words the server uses.
	Push(ctx context.Context, from *Repository, updates ...Update) error
}

// An Update moves a ref. An empty Old creates, an empty New deletes.
type Update struct{ Ref, Old, New string }

// NewHTTPRemote speaks git's smart HTTP with the token in memory (user "issuesmith", password token).
// The client decides about redirects and certificates.
func NewHTTPRemote(url, token string, client *http.Client) Remote { panic("not built") }

// NewLocalRemote is a bare repository in a folder (made when missing, with alternates to source's objects).
func NewLocalRemote(dir string, source *Repository) (Remote, error) { panic("not built") }

// EmptyCommit makes a commit on the empty tree, unique by its message, for claims. Returns its hash.
func (r *Repository) EmptyCommit(author Person, message string) (string, error) { panic("not built") }
