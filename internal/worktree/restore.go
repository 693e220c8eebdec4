package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Restore makes the worktree exactly first snapshot plus change again; ignored paths are
// left alone. Files of setup's making are put back when they were small enough to be kept
// (1 MiB each, 64 MiB together); others are listed in Left. A *TooLargeError names a file
// of the change whose content was too large to be kept.
func (t *Tree) Restore(ctx context.Context, c *Change) (*Restored, error) {
	r, err := t.reconcile(ctx, c, func(string) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("restore the worktree: %w", err)
	}
	return r, nil
}

// PutBack returns paths to the state of the first snapshot: a file to its content, a
// path that was not there to nothing, a folder with everything below it.
func (t *Tree) PutBack(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	_, err := t.reconcile(ctx, &Change{}, func(path string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return within(path, p) })
	})
	if err != nil {
		return fmt.Errorf("put files back: %w", err)
	}
	return nil
}

// A target is a path that is not as it should be.
type target struct {
	path     string
	now      state
	want     state
	ofChange bool
	tracked  bool
}

// reconcile makes the chosen paths first snapshot plus change.
func (t *Tree) reconcile(ctx context.Context, c *Change, chosen func(path string) bool) (*Restored, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		return nil, errors.New("Begin has not taken the first snapshot")
	}
	found, err := t.compare(ctx, true)
	if err != nil {
		return nil, err
	}
	targets := t.targets(found, c, chosen)
	r := &Restored{}
	for _, path := range slices.Backward(targets) { // below before above
		if path.want.kind != KindNone {
			continue
		}
		if err := t.takeAway(path); err != nil {
			return nil, pathError("remove", path.path, err)
		}
		if path.ofChange {
			r.Altered = append(r.Altered, path.path)
		} else {
			r.Removed = append(r.Removed, path.path)
		}
	}
	if err := t.folders(found, c, chosen); err != nil {
		return nil, err
	}
	for _, path := range targets {
		if path.want.kind == KindNone {
			continue
		}
		if err := t.putTarget(path, r); err != nil {
			return nil, err
		}
	}
	for _, f := range found.modes {
		if chosen(f.path) {
			if err := t.chmodFolder(f); err != nil {
				return nil, pathError("set the mode of", f.path, err)
			}
		}
	}
	slices.Sort(r.Removed)
	slices.Sort(r.Altered)
	return r, nil
}

// targets lists, sorted by path, what has to be done.
func (t *Tree) targets(found *found, c *Change, chosen func(string) bool) []target {
	list := map[string]target{}
	files := make(map[string]bool, len(c.Files))
	for _, f := range c.Files {
		files[f.Path] = true
	}
	for i := range found.differences {
		d := &found.differences[i]
		want, ofChange := c.states[d.path]
		if !ofChange && d.first != nil && d.first.kind != KindSubmodule {
			want = d.first.state
		}
		list[d.path] = target{d.path, d.now, want, ofChange && files[d.path], d.base != nil}
	}
	for path, want := range c.states {
		if _, ok := list[path]; !ok { // on disk as in the first snapshot, not as judged
			now := state{}
			if e := t.first.lookup(path); e != nil {
				now = e.state
			}
			list[path] = target{path, now, want, files[path], t.base.lookup(path) != nil}
		}
	}
	var targets []target
	for path, one := range list {
		if chosen(path) && (!one.now.same(&one.want) || one.now.perm != one.want.perm) {
			targets = append(targets, one)
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.path, b.path) })
	return targets
}

// lookup finds an entry of the first snapshot by its path.
func (f *folder) lookup(path string) *entry {
	for {
		name, rest, deeper := strings.Cut(path, "/")
		i, ok := f.findAnywhere([]byte(name))
		switch {
		case !ok, deeper != (i >= len(f.entries)):
			return nil
		case !deeper:
			return &f.entries[i]
		}
		f, path = f.folders[i-len(f.entries)], rest
	}
}

// takeAway removes one path that should not be there.
func (t *Tree) takeAway(path target) error {
	above, name := split(path.path)
	dir, err := openBelow(t.fd, above, openFolderFlags)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // went with its folder
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	if path.now.kind == KindRepository || path.now.kind == KindOther {
		return removeAll(dir, name)
	}
	err = unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// folders removes new folders that are empty now and makes those again that are gone,
// unless the change has it so.
func (t *Tree) folders(found *found, c *Change, chosen func(string) bool) error {
	for _, path := range slices.Backward(found.newFolders) {
		if !chosen(path) || c.folders[path] {
			continue
		}
		above, name := split(path)
		dir, err := openBelow(t.fd, above, openFolderFlags)
		if err != nil {
			continue // went with its parent
		}
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		_ = unix.Close(dir)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		case errors.Is(err, unix.ENOTDIR): // something of the change stands there
		default:
			return pathError("remove the folder", path, err)
		}
	}
	for _, f := range found.goneFolders {
		if _, judged := c.folders[f.path]; judged || !chosen(f.path) {
			continue
		}
		dir, err := t.clearWay(f.path)
		if err != nil {
			return pathError("make the folder", f.path, err)
		}
		err = unix.Fchmod(dir, f.perm())
		_ = unix.Close(dir)
		if err != nil {
			return pathError("make the folder", f.path, err)
		}
	}
	return nil
}

// putTarget writes one path that should be there.
func (t *Tree) putTarget(path target, r *Restored) error {
	if path.want.kind == KindOther || path.want.kind == KindRepository {
		if path.now.kind != path.want.kind {
			r.Left = append(r.Left, path.path)
		}
		return nil
	}
	if path.now.same(&path.want) { // only the mode
		above, name := split(path.path)
		dir, err := openBelow(t.fd, above, openFolderFlags)
		if err == nil {
			err = chmodAt(dir, name, path.want.perm)
			_ = unix.Close(dir)
		}
		if err != nil {
			return pathError("set the mode of", path.path, err)
		}
		return nil
	}
	data, err := t.wanted(path.path, &path.want)
	var large *TooLargeError
	if errors.As(err, &large) && !path.ofChange {
		r.Left = append(r.Left, path.path)
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.put(path.path, &path.want, data); err != nil {
		return pathError("put back", path.path, err)
	}
	switch {
	case path.ofChange:
		r.Altered = append(r.Altered, path.path)
	case path.tracked:
		r.Tracked = append(r.Tracked, path.path)
	}
	return nil
}

func (t *Tree) chmodFolder(f *folder) error {
	dir, err := openBelow(t.fd, f.path, openFolderFlags)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	return unix.Fchmod(dir, f.perm())
}
