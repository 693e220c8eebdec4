package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// historyConfig is all the configuration that git sees: nothing of the checkout's own, which may name programs. Times of
// files alone tell a changed one: inodes and owners are not in the index.
const historyConfig = `[core]
	repositoryformatversion = 0
	bare = false
	fileMode = true
	trustctime = false
	checkStat = minimal
	fsmonitor = false
	hooksPath = /dev/null
	untrackedCache = false
	preloadIndex = true
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	detachedHead = false
`

// WriteHistory writes a repository into dir, which must not exist, by which git can read the history of the base
// commit beside the worktree: the commit on a branch of that name, an index of the files as they were written, and no remotes, hooks
// or credentials. Objects are borrowed from the checkout; where reachable says that the commands' user cannot get there they are
// linked or copied. Everybody may read what it writes.
func (t *Tree) WriteHistory(ctx context.Context, dir, branch string, reachable func(path string) bool) error {
	head := t.commit + "\n"
	files := map[string]string{"config": historyConfig}
	if branch != "" {
		head = "ref: refs/heads/" + branch + "\n"
		files["packed-refs"] = "# pack-refs with: peeled fully-peeled sorted\n" + t.commit + " refs/heads/" + branch + "\n"
	}
	files["HEAD"] = head
	var borrowed []string
	for _, folder := range t.repo.names {
		if !reachable(folder) {
			into := filepath.Join(dir, fmt.Sprintf("borrowed-%d", len(borrowed)))
			if err := linkFolder(ctx, folder, into); err != nil {
				return fmt.Errorf("write the history: %w", err)
			}
			folder = into
		}
		borrowed = append(borrowed, folder)
	}
	files["objects/info/alternates"] = strings.Join(borrowed, "\n") + "\n"
	if shallow, err := os.ReadFile(filepath.Join(t.repo.layout.commonDir, "shallow")); err == nil {
		files["shallow"] = string(shallow)
	}
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil { // #nosec G301 -- the commands' user reads it
			return fmt.Errorf("write the history: %w", err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { // #nosec G306 -- the commands' user reads it
			return fmt.Errorf("write the history: %w", err)
		}
	}
	if err := t.writeMissing(dir); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	if err := t.writeIndex(filepath.Join(dir, "index")); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// writeMissing writes the objects that are not in the checkout: what was fetched for this run.
func (t *Tree) writeMissing(dir string) error {
	onDisk, _, err := openObjects(filepath.Join(t.repo.layout.commonDir, "objects"), cache.NewObjectLRU(cache.MiByte))
	if err != nil {
		return err
	}
	has := func(hash plumbing.Hash) bool {
		return slices.ContainsFunc(onDisk, func(f *objectFolder) bool { return f.has(hash) })
	}
	into := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(cache.MiByte))
	write := func(kind plumbing.ObjectType, hash plumbing.Hash) error {
		if has(hash) {
			return nil
		}
		o, err := t.repo.object(kind, hash)
		if err == nil {
			_, err = into.SetEncodedObject(o)
		}
		return err
	}
	for queue, seen := []string{t.commit}, map[string]bool{}; len(queue) > 0; queue = queue[1:] {
		hash := plumbing.NewHash(queue[0])
		if seen[queue[0]] || has(hash) {
			continue
		}
		seen[queue[0]] = true
		commit, err := t.repo.commit(queue[0])
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue // beyond what was fetched
		}
		if err == nil {
			err = write(plumbing.CommitObject, hash)
		}
		if err != nil {
			return err
		}
		for _, parent := range commit.ParentHashes {
			queue = append(queue, parent.String())
		}
	}
	return t.base.each(func(f *baseFolder) error {
		err := write(plumbing.TreeObject, f.hash)
		for i := range f.files {
			if err == nil && f.files[i].mode != modeSubmodule {
				err = write(plumbing.BlobObject, f.files[i].hash)
			}
		}
		return err
	})
}

// writeIndex writes an entry for every file of the base commit, with the times of the files as they were written, so that
// git need not read what has not changed.
func (t *Tree) writeIndex(name string) (err error) {
	all := &index.Index{Version: 2}
	err = t.base.each(func(f *baseFolder) error {
		for i := range f.files {
			file := &f.files[i]
			e := &index.Entry{Name: join(f.path, file.name), Hash: file.hash, Mode: file.mode}
			if !file.racy && file.mode != modeSubmodule {
				e.ModifiedAt, e.CreatedAt = time.Unix(0, file.written.mtime), time.Unix(0, file.written.ctime)
				e.Size = uint32(file.written.size) // #nosec G115 -- cut as git cuts it
			}
			all.Entries = append(all.Entries, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) // #nosec G302,G304 -- the commands' user reads it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	if err := index.NewEncoder(buffered).Encode(all); err != nil {
		return err
	}
	return buffered.Flush()
}

// linkFolder makes into hold what folder holds, by hard links or else copies. Objects are never written to, and their files are
// read-only.
func linkFolder(ctx context.Context, folder, into string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		below, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		target := filepath.Join(into, below)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755) // #nosec G301 -- the commands' user reads it
		case !d.Type().IsRegular() || filepath.Dir(below) == "info":
			return nil // alternates were followed already
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&0o004 != 0 && os.Link(path, target) == nil {
			return nil
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from) // #nosec G304 -- of the checkout
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                      // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444) // #nosec G302,G304 -- the commands' user reads it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = out.ReadFrom(in)
	return err
}
