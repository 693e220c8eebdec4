package worktree

import (
	"os"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
)

// readOnly is a file system that go-git can look at and cannot change: the checkout
// belongs to the job, and a refreshed index or a rewritten config would be seen there.
type readOnly struct{ billy.Filesystem }

func (readOnly) Create(string) (billy.File, error)           { return nil, billy.ErrReadOnly }
func (readOnly) TempFile(string, string) (billy.File, error) { return nil, billy.ErrReadOnly }
func (readOnly) Rename(string, string) error                 { return billy.ErrReadOnly }
func (readOnly) Remove(string) error                         { return billy.ErrReadOnly }
func (readOnly) MkdirAll(string, os.FileMode) error          { return billy.ErrReadOnly }
func (readOnly) Symlink(string, string) error                { return billy.ErrReadOnly }

func (v readOnly) OpenFile(name string, flag int, mode os.FileMode) (billy.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC) != 0 {
		return nil, billy.ErrReadOnly
	}
	return v.Filesystem.OpenFile(name, flag, mode)
}

// objectView shows one object folder as the "objects" of a repository of its own.
// Alternates are followed by openObjects instead: go-git reads their indexes anew for
// every object, and confines relative ones to the repository.
type objectView struct{ readOnly }

func newObjectView(folder string) objectView {
	return objectView{readOnly{osfs.New(folder)}}
}

func (v objectView) below(name string) string {
	name = strings.TrimPrefix(name, "objects")
	if name = strings.TrimPrefix(name, "/"); name == "" {
		return "."
	}
	return name
}

func (v objectView) Open(name string) (billy.File, error) {
	f, err := v.readOnly.Open(v.below(name))
	if err != nil {
		return nil, err
	}
	return named{f, name}, nil
}

func (v objectView) Stat(name string) (os.FileInfo, error) { return v.readOnly.Stat(v.below(name)) }

func (v objectView) Lstat(name string) (os.FileInfo, error) { return v.readOnly.Lstat(v.below(name)) }

func (v objectView) ReadDir(name string) ([]os.FileInfo, error) {
	return v.readOnly.ReadDir(v.below(name))
}

// named keeps the name a file was asked for by: go-git opens large objects again by it.
type named struct {
	billy.File
	name string
}

func (n named) Name() string { return n.name }
