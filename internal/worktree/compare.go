package worktree

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A difference is a path that is not as in the first snapshot.
type difference struct {
	path   string
	first  *entry    // nil: it was not there
	base   *baseFile // nil: untracked
	now    state     // KindNone: it is not there
	inside string    // path of the submodule it is in
}

// found is what a comparison finds.
type found struct {
	differences []difference
	newFolders  []string
	goneFolders []*folder
	modes       []*folder // whose permission bits differ
}

func (f *found) size() int {
	return len(f.differences) + len(f.newFolders) + len(f.goneFolders)
}

// A comparison of the worktree with the first snapshot. It only builds what differs: the
// usual case, nothing, is three system calls a folder and one a file.
type comparison struct {
	tree   *Tree
	walk   walk
	all    bool         // untracked files of the first snapshot too
	budget atomic.Int64 // bytes of content that may still be kept
}

// compare lists the differences, sorted by path. With all, those of files that setup left
// untracked as well.
func (t *Tree) compare(ctx context.Context, all bool) (*found, error) {
	c := &comparison{tree: t, all: all}
	c.budget.Store(keepChange)
	c.walk = walk{root: t.fd, visit: c.visit}
	t.stop = ctx
	crew, err := c.walk.run(ctx, task{folder: t.first})
	if err != nil {
		return nil, err
	}
	var sum found
	for _, w := range crew {
		sum.differences = append(sum.differences, w.found.differences...)
		sum.newFolders = append(sum.newFolders, w.found.newFolders...)
		sum.goneFolders = append(sum.goneFolders, w.found.goneFolders...)
		sum.modes = append(sum.modes, w.found.modes...)
	}
	slices.Sort(sum.newFolders)
	slices.SortFunc(sum.goneFolders, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	slices.SortFunc(sum.modes, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	sum.differences = merge(sum.differences)
	return &sum, nil
}

// merge sorts, and joins the two halves of a submodule's folder that became a file.
func merge(list []difference) []difference {
	slices.SortStableFunc(list, func(a, b difference) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(string(a.now.kind), string(b.now.kind)))
	})
	merged := list[:0]
	for _, d := range list {
		if n := len(merged); n > 0 && merged[n-1].path == d.path {
			merged[n-1].now = d.now
			if merged[n-1].first == nil {
				merged[n-1].first, merged[n-1].base = d.first, d.base
			}
			continue
		}
		merged = append(merged, d)
	}
	return merged
}

func (c *comparison) visit(w *worker, at task) error {
	f := at.folder
	return c.walk.inFolder(f.path, func(dir int, st *unix.Stat_t) error {
		now, id := time.Now(), identityOf(st)
		if !at.fresh && id.mode != f.id.mode {
			w.found.modes = append(w.found.modes, f)
		}
		if !at.fresh && id == f.id && !f.racy {
			return c.sameNames(w, dir, f)
		}
		before := w.found.size()
		if err := c.list(w, dir, f); err != nil {
			return err
		}
		if !at.fresh && id.mode == f.id.mode && w.found.size() == before {
			f.id, f.racy = id, id.racyAt(now) // only ignored names came or went
		}
		return nil
	})
}

// list compares the names in a folder with those it had.
func (c *comparison) list(w *worker, dir int, f *folder) error {
	seen := w.marks(len(f.entries) + len(f.folders))
	nextEntry, nextFolder := 0, 0
	err := eachName(dir, w.buf, func(name []byte, kind uint8) error {
		if kind == unix.DT_DIR {
			if i, ok := f.findFolder(name, nextFolder); ok && i >= len(f.entries) {
				seen[i] = true
				nextFolder = i - len(f.entries) + 1
				w.added = append(w.added, task{folder: f.folders[nextFolder-1]})
				return nil
			}
		}
		i, ok := f.find(name, nextEntry)
		if !ok || i >= len(f.entries) {
			return c.fresh(w, dir, f, string(name), kind)
		}
		nextEntry = i + 1
		e := &f.entries[i]
		if kind == unix.DT_DIR && e.kind != KindRepository && !e.isDeepFolder() {
			return c.fresh(w, dir, f, e.name, kind) // a file became a folder
		}
		seen[i] = true
		return c.again(w, dir, f, e)
	})
	if err != nil {
		return err
	}
	for i, ok := range seen {
		switch {
		case ok:
		case i < len(f.entries):
			c.gone(w, f, &f.entries[i])
		default:
			c.goneFolder(w, f.folders[i-len(f.entries)])
		}
	}
	return nil
}

// sameNames looks at a folder in which no name came, went or was replaced since it was
// listed last: that would have changed its times.
func (c *comparison) sameNames(w *worker, dir int, f *folder) error {
	for i := range f.entries {
		if err := c.again(w, dir, f, &f.entries[i]); err != nil {
			return err
		}
	}
	for _, child := range f.folders {
		w.added = append(w.added, task{folder: child})
	}
	return nil
}

// again looks at a name of the first snapshot.
func (c *comparison) again(w *worker, dir int, f *folder, e *entry) error {
	if e.kind == KindRepository || e.base == nil && (!c.all || e.kind == KindOther) {
		return nil
	}
	st, err := lstatAt(dir, e.name)
	if err != nil {
		return pathError("look at", join(f.path, e.name), err)
	}
	id := identityOf(&st)
	if id == e.id && (!e.racy || !e.known) {
		return nil
	}
	d := difference{path: join(f.path, e.name), first: e, base: e.base}
	now := time.Now()
	if err := c.look(dir, e.name, &st, &d.now); err != nil {
		return pathError("read", d.path, err)
	}
	if e.known && d.now.same(&e.state) && d.now.perm == e.perm {
		e.id, e.racy = id, id.racyAt(now) // the same after all: no need to read it again
		return nil
	}
	w.found.differences = append(w.found.differences, d)
	return nil
}

// look finds out what a path holds now.
func (c *comparison) look(dir int, name string, st *unix.Stat_t, s *state) error {
	*s = state{kind: kindOf(st.Mode), perm: st.Mode & 0o7777, size: st.Size, links: uint64(st.Nlink)} //nolint:unconvert // 32 bits on arm64
	if isDotGit(name) {
		s.kind = KindRepository
	}
	if s.kind == KindOther || s.kind == KindRepository {
		return nil
	}
	limit := int64(keepFile)
	if s.size <= limit && c.budget.Add(-s.size) < 0 {
		limit = 0
	}
	return c.tree.read(dir, name, s, limit)
}

// fresh looks at a name that is not in the first snapshot as what it is now.
func (c *comparison) fresh(w *worker, dir int, f *folder, name string, kind uint8) error {
	path := join(f.path, name)
	if kind == unix.DT_DIR && !isDotGit(name) {
		child := c.tree.child(f, name)
		if child == nil {
			return nil
		}
		if tooDeep(path) {
			w.found.differences = append(w.found.differences, difference{path: path, now: state{kind: KindOther}, inside: f.above})
			return nil
		}
		w.found.newFolders = append(w.found.newFolders, path)
		w.added = append(w.added, task{folder: child, fresh: true})
		return nil
	}
	base, ok := f.counts(name)
	if !ok {
		return nil
	}
	st, err := lstatAt(dir, name)
	if err != nil {
		return pathError("look at", path, err)
	}
	d := difference{path: path, base: base, inside: f.above}
	if err := c.look(dir, name, &st, &d.now); err != nil {
		return pathError("read", path, err)
	}
	w.found.differences = append(w.found.differences, d)
	return nil
}

func (c *comparison) gone(w *worker, f *folder, e *entry) {
	if e.base != nil || c.all && e.kind != KindRepository && e.kind != KindOther {
		w.found.differences = append(w.found.differences, difference{path: join(f.path, e.name), first: e, base: e.base})
	}
}

func (c *comparison) goneFolder(w *worker, f *folder) {
	w.found.goneFolders = append(w.found.goneFolders, f)
	if f.submodule != nil && f.above == f.path {
		w.found.differences = append(w.found.differences, difference{path: f.path, first: f.submodule, base: f.submodule.base})
	}
	for i := range f.entries {
		c.gone(w, f, &f.entries[i])
	}
	for _, child := range f.folders {
		c.goneFolder(w, child)
	}
}
