package worktree

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

const (
	// largeObject is the size in bytes above which objects are streamed from disk.
	largeObject = 8 << 20
	// cacheSize bounds the delta bases kept while many objects are read.
	cacheSize = 32 * cache.MiByte
	// maxAlternates is how far alternates of alternates are followed, as git does.
	maxAlternates = 5
)

// An objectFolder reads one folder of loose objects and packs. go-git's own storage
// may not be used by several goroutines; the parts it is made of may, with the pack
// index shared and one pack reader each.
type objectFolder struct {
	dir   *dotgit.DotGit
	files billy.Filesystem
	cache cache.Object

	mu    sync.RWMutex
	packs []*pack // only ever replaced
}

type pack struct {
	hash  plumbing.Hash
	index *idxfile.MemoryIndex
	mu    sync.Mutex
	idle  []*packfile.Packfile
}

func openObjectFolder(files billy.Filesystem, shared cache.Object) (*objectFolder, error) {
	f := &objectFolder{dir: dotgit.New(files), files: files, cache: shared}
	// The first miss makes dotgit look for a quarantine folder and remember the answer:
	// done here, later lookups only read.
	if file, err := f.dir.Object(plumbing.ZeroHash); err == nil {
		_ = file.Close()
	}
	return f, f.listPacks()
}

// listPacks looks which packs there are. Git may repack a repository at any time, so it is done again for an object
// that is missing, as git does.
func (f *objectFolder) listPacks() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	hashes, err := f.dir.ObjectPacks()
	if err != nil {
		return fmt.Errorf("list the packs: %w", err)
	}
	packs := make([]*pack, 0, len(hashes))
	for _, hash := range hashes {
		if i := slices.IndexFunc(f.packs, func(p *pack) bool { return p.hash == hash }); i >= 0 {
			packs = append(packs, f.packs[i])
			continue
		}
		index, err := f.readIndex(hash)
		if errors.Is(err, dotgit.ErrPackfileNotFound) {
			continue // a pack without an index: git ignores it as well
		}
		if err != nil {
			return fmt.Errorf("read the index of pack %s: %w", hash, err)
		}
		packs = append(packs, &pack{hash: hash, index: index})
	}
	for _, p := range f.packs {
		if !slices.Contains(packs, p) {
			p.rest()
		}
	}
	f.packs = packs
	return nil
}

func (f *objectFolder) known() []*pack {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.packs
}

func (f *objectFolder) readIndex(hash plumbing.Hash) (*idxfile.MemoryIndex, error) {
	file, err := f.dir.ObjectPackIdx(hash)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	index := idxfile.NewMemoryIndex()
	return index, idxfile.NewDecoder(bufio.NewReaderSize(file, 1<<16)).Decode(index)
}

// object returns plumbing.ErrObjectNotFound when it is not in this folder.
func (f *objectFolder) object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, p := range f.known() {
		if ok, err := p.index.Contains(hash); err != nil || !ok {
			continue
		}
		object, err := f.packed(p, hash)
		if errors.Is(err, dotgit.ErrPackfileNotFound) {
			continue // repacked since
		}
		return object, err
	}
	return f.loose(hash)
}

func (f *objectFolder) has(hash plumbing.Hash) bool {
	for _, p := range f.known() {
		if ok, err := p.index.Contains(hash); err == nil && ok {
			return true
		}
	}
	file, err := f.dir.Object(hash)
	if err != nil {
		return false
	}
	_ = file.Close()
	return true
}

func (f *objectFolder) packed(p *pack, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	reader, err := f.reader(p)
	if err != nil {
		return nil, err
	}
	object, err := reader.Get(hash)
	if err != nil {
		_ = reader.Close()
		return nil, fmt.Errorf("read %s from pack %s: %w", hash, p.hash, err)
	}
	p.mu.Lock()
	p.idle = append(p.idle, reader)
	p.mu.Unlock()
	return object, nil
}

func (f *objectFolder) reader(p *pack) (*packfile.Packfile, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		reader := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return reader, nil
	}
	p.mu.Unlock()
	file, err := f.dir.ObjectPack(p.hash)
	if err != nil {
		return nil, fmt.Errorf("open pack %s: %w", p.hash, err)
	}
	return packfile.NewPackfileWithCache(p.index, f.files, file, f.cache, largeObject), nil
}

func (f *objectFolder) loose(hash plumbing.Hash) (object plumbing.EncodedObject, err error) {
	file, err := f.dir.Object(hash)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, plumbing.ErrObjectNotFound
		}
		return nil, fmt.Errorf("open object %s: %w", hash, err)
	}
	defer func() { _ = file.Close() }()
	r, err := objfile.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", hash, err)
	}
	defer func() { _ = r.Close() }()
	kind, size, err := r.Header()
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", hash, err)
	}
	if size > largeObject {
		return dotgit.NewEncodedObject(f.dir, hash, kind, size), nil
	}
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", hash, err)
	}
	if int64(len(data)) != size || r.Hash() != hash {
		return nil, fmt.Errorf("object %s is damaged: check the repository out again", hash)
	}
	return newObject(kind, data), nil
}

// rest closes the pack readers and drops cached objects: called after the many reads of
// a checkout, since a run goes on for long after it.
func (f *objectFolder) rest() {
	f.cache.Clear()
	for _, p := range f.known() {
		p.rest()
	}
}

func (p *pack) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, reader := range p.idle {
		_ = reader.Close()
	}
	p.idle = nil
}

func newObject(kind plumbing.ObjectType, data []byte) plumbing.EncodedObject {
	object := &plumbing.MemoryObject{}
	object.SetType(kind)
	_, _ = object.Write(data) // cannot fail: appends to memory
	return object
}

// openObjects opens an object folder and, as git does, the alternates it names.
func openObjects(folder string, shared cache.Object) ([]*objectFolder, []string, error) {
	var opened []*objectFolder
	var names []string
	seen := map[string]bool{}
	var add func(name string, depth int) error
	add = func(name string, depth int) error {
		name = filepath.Clean(name)
		if seen[name] || depth > maxAlternates {
			return nil
		}
		seen[name] = true
		f, err := openObjectFolder(newObjectView(name), shared)
		if err != nil {
			return fmt.Errorf("open the objects in %s: %w", name, err)
		}
		opened, names = append(opened, f), append(names, name)
		alternates, err := readAlternates(name)
		if err != nil {
			return err
		}
		for _, alternate := range alternates {
			if info, err := os.Stat(alternate); err != nil || !info.IsDir() {
				continue // git warns and goes on; an object that is missed is named later
			}
			if err := add(alternate, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return opened, names, add(folder, 0)
}

func readAlternates(folder string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(folder, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the alternates of %s: %w", folder, err)
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(folder, line)
		}
		list = append(list, line)
	}
	return list, nil
}
