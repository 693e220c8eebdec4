package worktree

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// racyWindow is how far a file's times may lag behind the clock: kernels stamp files with
// a clock that ticks every 1 to 10 ms, so a second write within it may leave no trace in
// the times ("racy git").
const racyWindow = 10 * time.Millisecond

const (
	// keepAtBegin is the size in bytes up to which a file of setup's making is kept, so
	// that it can be put back.
	keepAtBegin = 1 << 20
	// keepAllAtBegin bounds them together: a run may keep a few, not a whole vendor folder.
	keepAllAtBegin = 64 << 20
)

// An identity is what lstat tells about a file. While it is the same, so is the content,
// unless the entry is racy.
type identity struct {
	inode        uint64
	size         int64
	mtime, ctime int64 // ns since 1970
	mode         uint32
}

func identityOf(st *unix.Stat_t) identity {
	return identity{inode: st.Ino, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), mode: st.Mode}
}

// racyAt says whether a file may have changed since now without a trace in its times.
func (i *identity) racyAt(now time.Time) bool {
	limit := now.Add(-racyWindow).UnixNano()
	return i.mtime >= limit || i.ctime >= limit
}

// A state is what a path holds.
type state struct {
	kind  Kind
	perm  uint32 // permission bits
	size  int64
	hash  plumbing.Hash
	links uint64
	data  *content // nil when it was not kept
}

func (s *state) same(other *state) bool { return s.kind == other.kind && s.hash == other.hash }

// kindOf is the kind of a mode as lstat returns it; git looks at the owner's x alone.
func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		if mode&0o100 != 0 {
			return KindExecutable
		}
		return KindFile
	case unix.S_IFLNK:
		return KindSymlink
	default:
		return KindOther
	}
}

// An entry is one name of the first snapshot that is not a folder.
type entry struct {
	name string
	base *baseFile // nil: untracked
	id   identity
	state
	known bool // hash is known
	racy  bool
}

// isDeepFolder says that the entry stands for a folder that is not looked into.
func (e *entry) isDeepFolder() bool { return e.kind == KindOther && e.id.mode == 0 }

// A folder is one folder of the first snapshot, its names in the order the file system
// lists them: the next listing of an unchanged folder is the same.
type folder struct {
	path    string
	id      identity // while it is the same, so are the names
	racy    bool
	entries []entry
	folders []*folder
	byName  map[string]int // made when the order has changed; folders follow the entries

	base      *baseFolder // nil: nothing tracked below
	rules     *rules
	ignored   bool   // only tracked names count
	submodule *entry // set in a submodule's folder and below it: nothing can be committed there
	above     string // path of that submodule
}

func (f *folder) perm() uint32 { return f.id.mode & 0o7777 }

// child is a subfolder as the rules see it; nil when it is left out.
func (t *Tree) child(f *folder, name string) *folder {
	c := &folder{
		path: join(f.path, name), base: f.base.folder(name), rules: f.rules, ignored: f.ignored,
		submodule: f.submodule, above: f.above,
	}
	if c.base != nil {
		c.rules = t.rules[c.base]
	}
	if sub := f.base.file(name); sub != nil && sub.mode == modeSubmodule {
		c.submodule = &entry{name: name, base: sub, state: state{kind: KindSubmodule, hash: sub.hash}, known: true}
		c.above = c.path
		return c
	}
	c.ignored = c.ignored || f.rules.ignored(c.path, true)
	if c.ignored && c.base == nil {
		return nil
	}
	return c
}

// counts says whether a name that is not a folder belongs to a snapshot, and what the
// base commit has there.
func (f *folder) counts(name string) (*baseFile, bool) {
	base := f.base.file(name)
	if base != nil && base.mode != modeSubmodule {
		return base, true
	}
	if isDotGit(name) {
		return nil, !f.ignored
	}
	return base, !f.ignored && !f.rules.ignored(join(f.path, name), false)
}

// tooDeep folders are entries of KindOther: nothing useful is nested so deep, and they
// must neither exhaust descriptors nor go unnoticed.
func tooDeep(path string) bool {
	depth := 0
	for i := range len(path) {
		if path[i] == '/' {
			depth++
		}
	}
	return depth >= maxDepth || len(path) > maxPath
}

// find gives the index of a name among entries and then folders. next guesses it.
func (f *folder) find(name []byte, next int) (int, bool) {
	if next < len(f.entries) && f.entries[next].name == string(name) {
		return next, true
	}
	return f.findAnywhere(name)
}

func (f *folder) findFolder(name []byte, next int) (int, bool) {
	if next < len(f.folders) && f.folders[next].isNamed(name) {
		return len(f.entries) + next, true
	}
	return f.findAnywhere(name)
}

func (f *folder) isNamed(name []byte) bool {
	n := len(f.path) - len(name)
	return n >= 0 && f.path[n:] == string(name) && (n == 0 || f.path[n-1] == '/')
}

func (f *folder) findAnywhere(name []byte) (int, bool) {
	if f.byName == nil {
		f.byName = make(map[string]int, len(f.entries)+len(f.folders))
		for i := range f.entries {
			f.byName[f.entries[i].name] = i
		}
		for i, child := range f.folders {
			_, name := split(child.path)
			f.byName[name] = len(f.entries) + i
		}
	}
	i, ok := f.byName[string(name)]
	return i, ok
}

// Begin takes the first snapshot (after setup): what changes are measured against.
// Untracked files that exist now are not part of any later change.
func (t *Tree) Begin(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, err := t.take(ctx, true)
	if err != nil {
		return fmt.Errorf("take the first snapshot: %w", err)
	}
	t.first = first
	return nil
}

// take makes a snapshot; with contents it can be compared with and returned to.
func (t *Tree) take(ctx context.Context, contents bool) (*folder, error) {
	root := &folder{base: t.base, rules: t.rules[t.base]}
	s := &snapshot{tree: t, contents: contents, now: time.Now()}
	s.budget.Store(keepAllAtBegin)
	s.walk = walk{root: t.fd, visit: s.visit}
	t.stop = ctx
	_, err := s.walk.run(ctx, task{folder: root})
	return root, err
}

// A snapshot being taken.
type snapshot struct {
	tree     *Tree
	walk     walk
	contents bool
	now      time.Time
	budget   atomic.Int64 // bytes that may still be kept
}

func (s *snapshot) visit(w *worker, at task) error {
	f := at.folder
	return s.walk.inFolder(f.path, func(dir int, st *unix.Stat_t) error {
		f.id = identityOf(st)
		f.racy = f.id.racyAt(s.now)
		return eachName(dir, w.buf, func(name []byte, kind uint8) error {
			if kind == unix.DT_DIR && !isDotGit(string(name)) {
				child := s.tree.child(f, string(name))
				switch {
				case child == nil:
				case tooDeep(child.path):
					f.entries = append(f.entries, entry{name: string(name), state: state{kind: KindOther}})
				default:
					f.folders = append(f.folders, child)
					w.added = append(w.added, task{folder: child})
				}
				return nil
			}
			e := entry{name: string(name)}
			var ok bool
			if e.base, ok = f.counts(e.name); !ok {
				return nil
			}
			if err := s.fill(dir, f, &e); err != nil {
				return pathError("read", join(f.path, e.name), err)
			}
			f.entries = append(f.entries, e)
			return nil
		})
	})
}

// fill finds out what an entry holds. The hash of a file that is as the checkout left it
// is known from the base commit.
func (s *snapshot) fill(dir int, f *folder, e *entry) error {
	st, err := lstatAt(dir, e.name)
	if err != nil {
		return err
	}
	e.id = identityOf(&st)
	e.racy = e.id.racyAt(s.now)
	e.state = state{kind: kindOf(st.Mode), perm: st.Mode & 0o7777, size: st.Size, links: uint64(st.Nlink)} //nolint:unconvert // 32 bits on arm64
	if isDotGit(e.name) {
		e.kind = KindRepository
	}
	if !s.contents || e.kind == KindOther || e.kind == KindRepository {
		return nil
	}
	if b := e.base; b != nil && !b.racy && e.id == b.written {
		e.hash, e.known = b.hash, true
		return nil
	}
	if e.base == nil && (e.size > keepAtBegin || s.budget.Add(-e.size) < 0) {
		return nil // not part of a change whatever happens to it, and too much to keep
	}
	if err := s.tree.read(dir, e.name, &e.state, keepAtBegin); err != nil {
		return err
	}
	e.known = true
	if e.base != nil && (e.hash == e.base.hash || s.budget.Add(-e.size) < 0) {
		e.data = nil // the base commit has it, or it is too much to keep
	}
	return nil
}
