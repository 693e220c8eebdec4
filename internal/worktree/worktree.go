// Package worktree makes a clean copy of a commit on disk, tells what was changed
// in it, and turns the change into a commit that can be pushed. It works on git
// objects with go-git and never starts git.
//
// The commands that run in a worktree are not trusted: every path below it is walked
// folder by folder without following a link, and nothing in it is opened that could
// block or lead outside.
package worktree

import (
	"errors"
	"time"
)

// Errors that callers tell apart.
var (
	ErrNoCommits = errors.New("the repository has no commit")
	// ErrNoRepository: the folder lies in no git repository.
	ErrNoRepository = errors.New("not in a git repository")
	ErrMoved        = errors.New("the remote ref is not what was expected") // lost race on a push
)

// An UnsupportedError names a repository form that cannot be worked on (SHA-256
// objects, a blob-less checkout) and what to do about it.
type UnsupportedError struct{ Form, Remedy string }

func (e *UnsupportedError) Error() string { return e.Form + ": " + e.Remedy }

// A Head says what is checked out.
type Head struct {
	Commit string // 40 hex digits
	Branch string // short name, "" when detached
}

// CommitInfo is what a commit says.
type CommitInfo struct {
	Hash      string
	Parents   []string
	Author    Person
	Committer Person
	Message   string
	Tree      string
}

// A Person is a name, an address and a time on a commit.
type Person struct {
	Name, Email string
	When        time.Time
}

// Op is what happened to a file.
type Op string

// The operations of a change.
const (
	Added    Op = "added"
	Modified Op = "modified"
	Deleted  Op = "deleted"
)

// A Kind is what a path is. KindOther covers devices, sockets and named pipes, and
// folders nested too deep to be looked into.
type Kind string

// The kinds of entries.
const (
	KindNone       Kind = ""
	KindFile       Kind = "file"
	KindExecutable Kind = "executable"
	KindSymlink    Kind = "symlink"
	KindSubmodule  Kind = "submodule"
	KindRepository Kind = "repository" // a .git that appeared, or a submodule's folder that was filled
	KindOther      Kind = "other"
)

// A Side is a path before or after.
type Side struct {
	Kind      Kind
	Size      int64
	Hash      string // blob hash, "" when Kind has no content
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
// setup left are not in it. It holds the contents it was judged by.
type Change struct {
	Files []File
	Tree  string // hash of the git tree that base plus change would be: the candidate's identity

	states  map[string]state // what Files looked like, contents included
	folders map[string]bool  // folders that were new (true) or gone (false)
}

// Lines is the sum of added and removed lines.
func (c *Change) Lines() int {
	n := 0
	for _, f := range c.Files {
		n += f.Added + f.Removed
	}
	return n
}

// A Line is an added line: its number in the new file (from 1) and its text without the line end.
type Line struct {
	Number int
	Text   string
}

// A Restored says what Restore had to do.
type Restored struct {
	Altered []string // files of the change that had been altered or removed since
	Tracked []string // other tracked files that were put back
	Removed []string // new files outside ignored paths that were taken away
	Left    []string // altered files of setup's making that were too large to have been kept
}
