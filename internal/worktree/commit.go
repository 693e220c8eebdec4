package worktree

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const modeSubmodule = filemode.Submodule

func sortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// An edit is what becomes of one path in a tree.
type edit struct {
	path string
	mode filemode.FileMode // 0: taken away
	hash plumbing.Hash
}

// edits lists what a change does to the base tree, sorted by path. What git cannot hold is
// left out; CommitChange refuses it.
func (c *Change) edits() []edit {
	var list []edit
	for _, f := range c.Files {
		if f.Op == Deleted {
			list = append(list, edit{path: f.Path})
			continue
		}
		if mode, ok := modeOf(f.New.Kind); ok {
			list = append(list, edit{f.Path, mode, plumbing.NewHash(f.New.Hash)})
		}
	}
	slices.SortFunc(list, func(a, b edit) int { return strings.Compare(a.path, b.path) })
	return list
}

func modeOf(k Kind) (filemode.FileMode, bool) {
	switch k {
	case KindFile:
		return filemode.Regular, true
	case KindExecutable:
		return filemode.Executable, true
	case KindSymlink:
		return filemode.Symlink, true
	default:
		return 0, false
	}
}

// candidate is the hash of the tree that base plus change is.
func (t *Tree) candidate(c *Change) (string, error) {
	hash, err := t.build(t.base.hash, true, c.edits(), func(plumbing.EncodedObject) {})
	return hash.String(), err
}

// build rewrites a tree and the trees below it that edits touch, and nothing else. Paths
// of edits are relative to the tree. made receives every new tree.
func (t *Tree) build(from plumbing.Hash, exists bool, edits []edit, made func(plumbing.EncodedObject)) (plumbing.Hash, error) {
	entries := map[string]object.TreeEntry{}
	if exists {
		list, err := t.repo.tree(from)
		if err != nil {
			return from, err
		}
		for _, e := range list {
			entries[e.Name] = e
		}
	}
	below := map[string][]edit{}
	for _, e := range edits {
		if name, rest, deeper := strings.Cut(e.path, "/"); deeper {
			below[name] = append(below[name], edit{rest, e.mode, e.hash})
		} else if e.mode == 0 {
			delete(entries, name)
		}
	}
	for name, inside := range below {
		old, ok := entries[name]
		ok = ok && old.Mode == filemode.Dir
		hash, err := t.build(old.Hash, ok, inside, made)
		if err != nil {
			return from, err
		}
		switch {
		case hash != emptyTree:
			entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash}
		case ok:
			delete(entries, name)
		}
	}
	for _, e := range edits {
		if e.mode != 0 && !strings.Contains(e.path, "/") {
			entries[e.path] = object.TreeEntry{Name: e.path, Mode: e.mode, Hash: e.hash}
		}
	}
	encoded, err := encodeTree(entries)
	if err != nil {
		return from, err
	}
	made(encoded)
	return encoded.Hash(), nil
}

// emptyTree is the hash of a tree without entries; git keeps no empty folders.
var emptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

func encodeTree(entries map[string]object.TreeEntry) (plumbing.EncodedObject, error) {
	tree := object.Tree{Entries: make([]object.TreeEntry, 0, len(entries))}
	for _, e := range entries {
		tree.Entries = append(tree.Entries, e)
	}
	sort.Sort(object.TreeEntrySorter(tree.Entries))
	encoded := &plumbing.MemoryObject{}
	return encoded, tree.Encode(encoded)
}

// CommitChange builds a commit on the base commit's tree from the change alone and
// keeps it among the objects of this run. Returns its hash. A *TooLargeError names a file
// whose content was too large to be kept.
func (t *Tree) CommitChange(c *Change, author Person, message string) (string, error) {
	for _, f := range c.Files {
		if _, ok := modeOf(f.New.Kind); f.Op != Deleted && !ok {
			return "", fmt.Errorf("commit the change: %s is a %s, which a commit cannot hold", f.Path, f.New.Kind)
		}
		if f.Op == Deleted {
			continue
		}
		s := c.states[f.Path]
		if s.data == nil {
			return "", fmt.Errorf("commit the change: %w", &TooLargeError{Path: f.Path, Size: f.New.Size, Limit: keepFile})
		}
		// Kept even when the checkout has the same blob somewhere: it may be one that
		// the remote does not have.
		t.repo.keep(newObject(plumbing.BlobObject, s.data.bytes))
	}
	tree, err := t.build(t.base.hash, true, c.edits(), func(o plumbing.EncodedObject) { t.repo.keep(o) })
	if err != nil {
		return "", fmt.Errorf("build the tree of the change: %w", err)
	}
	return t.repo.newCommit(tree, []plumbing.Hash{plumbing.NewHash(t.commit)}, author, message)
}

// EmptyCommit makes a commit on the empty tree, unique by its message, for claims. Returns its hash.
func (r *Repository) EmptyCommit(author Person, message string) (string, error) {
	return r.newCommit(r.keep(newObject(plumbing.TreeObject, nil)), nil, author, message)
}

func (r *Repository) newCommit(tree plumbing.Hash, parents []plumbing.Hash, author Person, message string) (string, error) {
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	author.Name, author.Email = clean(author.Name), clean(author.Email)
	encoded := &plumbing.MemoryObject{}
	made := object.Commit{
		Author: object.Signature(author), Committer: object.Signature(author),
		Message: strings.ReplaceAll(message, "\x00", ""), TreeHash: tree, ParentHashes: parents,
	}
	if err := made.Encode(encoded); err != nil {
		return "", fmt.Errorf("build the commit: %w", err)
	}
	return r.keep(encoded).String(), nil
}

// clean takes out what would end a name or address early in a commit's header.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || r < ' ' {
			return -1
		}
		return r
	}, text))
}
