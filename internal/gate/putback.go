package gate

import (
	"context"
	"path"
	"slices"

	"issuesmith/internal/redact"
	"issuesmith/internal/worktree"
)

// maxDiscarded bounds the diff of what was put back, in bytes.
const maxDiscarded = 12000

// PutBack returns files under path, protected, kind and temporary findings to the base
// commit and notes them in the verdict with the diff discarded.
func (g *Gate) PutBack(ctx context.Context, v *Verdict) error {
	if v.Change == nil {
		return nil
	}
	gone := map[string]bool{}
	for _, stray := range slices.Concat(strays(v.Findings), v.strays) {
		gone[stray] = true
	}
	if len(gone) == 0 {
		return nil
	}
	inTheWay(v.Change.Files, gone)
	part := &worktree.Change{}
	var paths []string
	for _, f := range v.Change.Files {
		if gone[f.Path] {
			part.Files = append(part.Files, f)
			paths = append(paths, f.Path)
		}
	}
	diff, err := g.Tree.Patch(part)
	if err != nil {
		return ours("show what is put back", err)
	}
	if err := g.Tree.PutBack(ctx, tops(v.Change.Files, gone)); err != nil {
		return ours("put files back to the base commit", err)
	}
	// Known values first: half a secret at the cut would not be known any more.
	if g.Redact != nil {
		diff = g.Redact.Values(diff)
	}
	v.PutBack = paths
	v.Discarded = redact.Cut(diff, maxDiscarded)
	return nil
}

// inTheWay adds what stands where a file is put back: files below a path that was a file, and a file
// where a folder of the path was.
func inTheWay(files []worktree.File, gone map[string]bool) {
	back, stands := map[string]bool{}, map[string]bool{} // what comes back, and what stands there now
	for _, f := range files {
		if gone[f.Path] && f.Old.Kind != worktree.KindNone {
			back[f.Path] = true
		}
		if f.New.Kind != worktree.KindNone {
			stands[f.Path] = true
		}
	}
	for _, f := range files {
		for above := path.Dir(f.Path); above != "." && above != "/"; above = path.Dir(above) {
			if stands[f.Path] && back[above] {
				gone[f.Path] = true
			}
			if back[f.Path] && stands[above] {
				gone[above] = true
			}
		}
	}
}

// tops names what is put back by folders where everything that changed in a folder is: an
// unpacked archive or an install makes tens of thousands of files in few folders.
func tops(files []worktree.File, gone map[string]bool) []string {
	stays := map[string]bool{} // folders with a changed file that is not put back
	for _, f := range files {
		if gone[f.Path] {
			continue
		}
		for dir := path.Dir(f.Path); !stays[dir]; dir = path.Dir(dir) {
			stays[dir] = true
		}
	}
	var list []string
	for _, f := range files {
		if !gone[f.Path] {
			continue
		}
		top := f.Path
		for dir := path.Dir(top); dir != "." && dir != "/" && !stays[dir]; dir = path.Dir(dir) {
			top = dir
		}
		list = append(list, top)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
