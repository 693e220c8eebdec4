package worktree

import (
	"crypto"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// An indexEntry is a file of the base commit with its whole path.
type indexEntry struct {
	path string
	*baseFile
}

// encodeIndex is git's index (index-format(5), version 2) of the base commit, with sizes and times of the files as the
// checkout wrote them: git then reads only what was changed since. go-git's encoder leaves out the trees, without which git
// compares the whole commit with the index at every git status.
func (t *Tree) encodeIndex() ([]byte, error) {
	var entries []indexEntry
	size := 0
	err := t.base.each(func(f *baseFolder) error {
		for i := range f.files {
			e := indexEntry{join(f.path, f.files[i].name), &f.files[i]}
			entries = append(entries, e)
			size += 72 + len(e.path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b indexEntry) int { return strings.Compare(a.path, b.path) })
	b := append(make([]byte, 0, size+1024), "DIRC"...)
	b = binary.BigEndian.AppendUint32(b, 2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(entries))) // #nosec G115 -- bounded by what fits into memory
	for _, e := range entries {
		b = e.append(b)
	}
	if trees, _, whole := t.base.appendTrees(nil, true); whole {
		b = binary.BigEndian.AppendUint32(append(b, "TREE"...), uint32(len(trees))) // #nosec G115 -- less than the entries
		b = append(b, trees...)
	}
	sum := hash.New(crypto.SHA1)
	_, _ = sum.Write(b) // cannot fail
	return sum.Sum(b), nil
}

// append adds an entry. What git is told not to compare is left empty.
func (e indexEntry) append(b []byte) []byte {
	start := len(b)
	for _, field := range []int64{
		0, 0, // changed
		e.written.mtime / 1e9, e.written.mtime % 1e9,
		0, 0, // device, inode
		int64(e.indexMode()),
		0, 0, // owner, group
		e.written.size, // cut as git cuts it
	} {
		b = binary.BigEndian.AppendUint32(b, uint32(field)) // #nosec G115 -- the format's width
	}
	b = append(b, e.hash[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(min(len(e.path), 0xfff))) // #nosec G115 -- bounded
	b = append(b, e.path...)
	end := start + (len(b)-start+8)&^7 // 1 to 8 zeros
	return append(b, make([]byte, end-len(b))...)
}

// indexMode is one of the four modes an index knows; trees may have others for files.
func (f *baseFile) indexMode() filemode.FileMode {
	switch f.kind() {
	case KindExecutable:
		return filemode.Executable
	case KindSymlink:
		return filemode.Symlink
	case KindSubmodule:
		return filemode.Submodule
	default:
		return filemode.Regular
	}
}

// appendTrees adds the tree of a folder and those below it, as the extension TREE has them, and counts the files in them. It is
// not whole where a tree has nothing in it, which an index cannot say.
func (f *baseFolder) appendTrees(b []byte, root bool) (_ []byte, files int, whole bool) {
	files = len(f.files)
	var below []byte
	for _, child := range f.folders {
		var n int
		if below, n, whole = child.appendTrees(below, false); !whole {
			return nil, 0, false
		}
		files += n
	}
	name := ""
	if !root {
		_, name = split(f.path)
	}
	b = fmt.Appendf(b, "%s\x00%d %d\n", name, files, len(f.folders))
	b = append(b, f.hash[:]...)
	return append(b, below...), files, files > 0
}
