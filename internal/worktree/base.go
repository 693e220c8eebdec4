package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// maxIgnore is the size in bytes up to which a .gitignore is read.
const maxIgnore = 1 << 20

// A baseFolder is a folder of the base commit.
type baseFolder struct {
	path    string
	hash    plumbing.Hash // of its tree
	files   []baseFile    // sorted by name; everything that is not a folder
	folders []*baseFolder // sorted by name
}

// A baseFile is a file, link or submodule of the base commit.
type baseFile struct {
	name    string
	hash    plumbing.Hash
	mode    filemode.FileMode
	racy    bool     // written so close to the end of the checkout that times prove nothing
	written identity // as the checkout left it
}

func (f *baseFile) kind() Kind {
	switch f.mode {
	case filemode.Executable:
		return KindExecutable
	case filemode.Symlink:
		return KindSymlink
	case filemode.Submodule:
		return KindSubmodule
	default:
		return KindFile
	}
}

// readBase reads a commit's whole tree and refuses names that must not reach the disk.
func (r *Repository) readBase(ctx context.Context, hash plumbing.Hash, path string, depth int) (*baseFolder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if depth > maxDepth || len(path) > maxPath {
		return nil, fmt.Errorf("the folder %.80q… is nested deeper than %d levels or longer than %d bytes: such a tree is refused", path, maxDepth, maxPath)
	}
	entries, err := r.tree(hash)
	if err != nil {
		return nil, err
	}
	folder := &baseFolder{path: path, hash: hash}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if err := checkName(e.Name); err != nil {
			return nil, fmt.Errorf("the commit has %w in folder %q: such a tree is refused", err, path)
		}
		if seen[e.Name] {
			return nil, fmt.Errorf("the commit has %q twice: such a tree is refused", join(path, e.Name))
		}
		seen[e.Name] = true
		if e.Mode != filemode.Dir {
			folder.files = append(folder.files, baseFile{name: e.Name, hash: e.Hash, mode: e.Mode})
			continue
		}
		child, err := r.readBase(ctx, e.Hash, join(path, e.Name), depth+1)
		if err != nil {
			return nil, err
		}
		folder.folders = append(folder.folders, child)
	}
	slices.SortFunc(folder.files, func(a, b baseFile) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(folder.folders, func(a, b *baseFolder) int { return strings.Compare(a.path, b.path) })
	return folder, nil
}

// file looks a name up; nil folders have nothing in them.
func (f *baseFolder) file(name string) *baseFile {
	if f == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(f.files, name, func(e baseFile, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return nil
	}
	return &f.files[i]
}

func (f *baseFolder) folder(name string) *baseFolder {
	if f == nil {
		return nil
	}
	path := join(f.path, name)
	i, ok := slices.BinarySearchFunc(f.folders, path, func(e *baseFolder, path string) int { return strings.Compare(e.path, path) })
	if !ok {
		return nil
	}
	return f.folders[i]
}

// lookup finds a file by its path.
func (f *baseFolder) lookup(path string) *baseFile {
	for f != nil {
		name, rest, deeper := strings.Cut(path, "/")
		if !deeper {
			return f.file(name)
		}
		f, path = f.folder(name), rest
	}
	return nil
}

// each visits every folder, parents first.
func (f *baseFolder) each(visit func(*baseFolder) error) error {
	if err := visit(f); err != nil {
		return err
	}
	for _, child := range f.folders {
		if err := child.each(visit); err != nil {
			return err
		}
	}
	return nil
}

// readRules reads the ignore rules of a folder of the base commit, once at checkout.
func (t *Tree) readRules(f *baseFolder, above *rules) error {
	here := above
	if file := f.file(".gitignore"); file != nil && (file.mode == filemode.Regular || file.mode == filemode.Executable) {
		data, err := t.repo.blob(file.hash, maxIgnore)
		if err != nil {
			return fmt.Errorf("read %s: %w", join(f.path, ".gitignore"), err)
		}
		here = parseIgnore(above, f.path, data)
	}
	t.rules[f] = here
	for _, child := range f.folders {
		if err := t.readRules(child, here); err != nil {
			return err
		}
	}
	return nil
}
