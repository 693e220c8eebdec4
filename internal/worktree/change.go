package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// Change compares the worktree with the first snapshot. Contents are read once and kept, so that
// what was judged can be committed and restored whatever happens on disk afterwards: up to 8 MiB
// a file and 64 MiB together; of larger files only the hash is known.
//
// Old sides are those of the base commit, since that is what the commit will be read
// against: a file that setup modified and the agent then touched shows both.
func (t *Tree) Change(ctx context.Context) (*Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.change(ctx)
}

func (t *Tree) change(ctx context.Context) (*Change, error) {
	if t.first == nil {
		return nil, errors.New("compare the worktree: Begin has not taken the first snapshot")
	}
	found, err := t.compare(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("compare the worktree: %w", err)
	}
	c := &Change{states: map[string]state{}, folders: map[string]bool{}}
	for _, path := range found.newFolders {
		c.folders[path] = true
	}
	for _, gone := range found.goneFolders {
		c.folders[gone.path] = false
	}
	submodules := map[string]bool{}
	for i := range found.differences {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := &found.differences[i]
		if d.first != nil && d.now.same(&d.first.state) {
			continue // permission bits alone: git has no place for them, Restore puts them back
		}
		d.now.perm &= 0o777
		c.states[d.path] = d.now
		if d.inside != "" {
			if !submodules[d.inside] {
				submodules[d.inside] = true
				c.Files = append(c.Files, filledSubmodule(d.inside, t.base.lookup(d.inside)))
			}
			continue
		}
		file, changed, err := t.file(d)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", d.path, err)
		}
		if changed {
			c.Files = append(c.Files, file)
		}
	}
	sortFiles(c.Files)
	if c.Tree, err = t.candidate(c); err != nil {
		return nil, fmt.Errorf("compute the tree of the change: %w", err)
	}
	return c, nil
}

// filledSubmodule is how files that appeared in a submodule's folder are shown: they
// cannot be part of a commit, and must not go unnoticed.
func filledSubmodule(path string, base *baseFile) File {
	return File{
		Path: path, Op: Modified,
		Old: Side{Kind: KindSubmodule, Hash: base.hash.String()},
		New: Side{Kind: KindRepository, HardLinks: 1},
	}
}

// file turns a difference on disk into a change against the base commit, if it is one.
func (t *Tree) file(d *difference) (File, bool, error) {
	gone := d.now.kind == KindNone
	switch {
	case d.first != nil && d.first.base == nil: // setup's, not the agent's
		return File{}, false, nil
	case d.first == nil && gone:
		return File{}, false, nil
	case d.base == nil && gone:
		return File{}, false, nil
	}
	f := File{Path: d.path, Op: Modified}
	if d.base == nil {
		f.Op = Added
	} else {
		if d.now.kind == d.base.kind() && d.now.hash == d.base.hash {
			return File{}, false, nil // back to what the base commit has
		}
		size, err := t.sizeOf(d.base)
		if err != nil {
			return File{}, false, err
		}
		f.Old = Side{Kind: d.base.kind(), Size: size, Hash: d.base.hash.String()}
	}
	if gone {
		f.Op = Deleted
	} else {
		f.New = Side{Kind: d.now.kind, Size: d.now.size, HardLinks: d.now.links}
		if !d.now.hash.IsZero() {
			f.New.Hash = d.now.hash.String()
		}
	}
	if f.New.Hash != "" && d.now.data == nil {
		f.Binary = true // its content was not kept, so it cannot be looked at line by line
		return f, true, nil
	}
	return f, true, t.count(&f)
}

func (t *Tree) sizeOf(b *baseFile) (int64, error) {
	if b.mode == modeSubmodule {
		return 0, nil
	}
	encoded, err := t.repo.object(plumbing.BlobObject, b.hash)
	if err != nil {
		return 0, err
	}
	return encoded.Size(), nil
}

// count fills in the line counts.
func (t *Tree) count(f *File) error {
	before, after, err := t.sides(*f)
	var large *TooLargeError
	if errors.As(err, &large) {
		f.Binary = true // too large to be looked at line by line
		return nil
	}
	if err != nil {
		return err
	}
	if f.Binary = isBinary(before) || isBinary(after); f.Binary {
		return nil
	}
	if f.Old.Kind == f.New.Kind || isFile(f.Old.Kind) && isFile(f.New.Kind) {
		d := diffLines(before, after)
		f.Added, f.Removed = d.counts()
		return nil
	}
	f.Added, f.Removed = len(splitLines(after)), len(splitLines(before))
	return nil
}

func (t *Tree) sides(f File) (before, after []byte, err error) {
	if before, err = t.Content(f.Old); err != nil {
		return nil, nil, err
	}
	after, err = t.Content(f.New)
	return before, after, err
}

func isFile(k Kind) bool { return k == KindFile || k == KindExecutable }

// isBinary decides as git does.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}

// AddedLines lists the lines the change adds to a text file; none for a binary file.
func (t *Tree) AddedLines(f File) ([]Line, error) {
	if f.Binary || f.Op == Deleted {
		return nil, nil
	}
	before, after, err := t.sides(f)
	if err != nil {
		return nil, fmt.Errorf("list the added lines of %s: %w", f.Path, err)
	}
	if isFile(f.Old.Kind) != isFile(f.New.Kind) {
		before = nil
	}
	d := diffLines(before, after)
	var lines []Line
	for _, s := range d.spans {
		for i := s.newStart; i < s.newEnd; i++ {
			text := bytes.TrimSuffix(bytes.TrimSuffix(d.after[i], []byte("\n")), []byte("\r"))
			lines = append(lines, Line{Number: i + 1, Text: string(text)})
		}
	}
	return lines, nil
}
