package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// historyConfig is all the configuration git finds there: nothing of the checkout's own, which may name programs. Not bare,
// since git is told a worktree beside it. Of the stat data git compares times in seconds and sizes alone: owners and inodes
// are others inside a user namespace, and with them every file would be read at every git status.
const historyConfig = `[core]
	repositoryformatversion = 0
	bare = false
	fileMode = true
	logAllRefUpdates = false
	trustctime = false
	checkStat = minimal
	fsmonitor = false
	untrackedCache = false
	hooksPath = /dev/null
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	statusHints = false
	detachedHead = false
`

// maxBoundary is how many commits are looked at to find where history ends in a shallow checkout.
const maxBoundary = 100_000

// WriteHistory makes dir a repository by which git reads the history of the base commit beside the worktree, with GIT_DIR
// and GIT_WORK_TREE: the commit on branch (detached when that is "" or no name for one), the files as they were checked out
// as the index, and no remotes, hooks or credentials. What it writes everybody may read and only the writer may change.
//
// Objects are borrowed from where they are. Where the user that commands run as cannot get at them, by what reachable says of a
// folder or by the permissions in it, they are linked or else copied. dir must not exist; after an error it is incomplete.
func (t *Tree) WriteHistory(ctx context.Context, dir, branch string, reachable func(path string) bool) error {
	if err := t.writeHistory(ctx, dir, branch, reachable); err != nil {
		return fmt.Errorf("write the history for commands: %w", err)
	}
	return nil
}

func (t *Tree) writeHistory(ctx context.Context, dir, branch string, reachable func(path string) bool) error {
	if err := openFolder(dir, os.Mkdir); err != nil {
		return err
	}
	for _, name := range []string{"objects", "objects/info", "objects/pack", "refs", "refs/heads"} {
		if err := openFolder(filepath.Join(dir, name), os.Mkdir); err != nil {
			return err
		}
	}
	if err := t.addFetched(ctx, filepath.Join(dir, "objects")); err != nil {
		return err
	}
	folders, err := t.lend(ctx, dir, reachable)
	if err != nil {
		return err
	}
	var alternates strings.Builder
	for _, folder := range folders {
		alternates.WriteString(quoteAlternate(folder) + "\n")
	}
	entries, err := t.encodeIndex()
	if err != nil {
		return err
	}
	files := map[string]string{
		"config": historyConfig, "index": string(entries), "HEAD": t.commit + "\n", "objects/info/alternates": alternates.String(),
	}
	if ref := plumbing.NewBranchReferenceName(branch); branch != "" && ref.Validate() == nil {
		files["HEAD"] = "ref: " + ref.String() + "\n"
		files["packed-refs"] = "# pack-refs with: peeled fully-peeled sorted \n" + t.commit + " " + ref.String() + "\n"
	}
	ends, err := t.boundary(ctx)
	if err != nil {
		return err
	}
	if len(ends) > 0 {
		files["shallow"] = strings.Join(ends, "\n") + "\n"
	}
	for name, text := range files {
		if err := writeOpen(filepath.Join(dir, name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// openFolder makes a folder that everybody may read, whatever the umask is.
func openFolder(path string, mkdir func(string, fs.FileMode) error) error {
	if err := mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755) // #nosec G302 -- the commands' user reads it
}

// writeOpen makes a file that everybody may read.
func writeOpen(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o644) // #nosec G302 -- the commands' user reads it
}

// quoteAlternate is a folder as a line of an alternates file, which may be quoted as strings of C are (git's
// link_alt_odb_entries).
func quoteAlternate(folder string) string {
	if !strings.ContainsAny(folder, "\n\r\"\\") {
		return folder
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(folder) + `"`
}

// boundary lists the commits whose parents are not here, by which git knows that history is cut there: those of a shallow
// checkout, and a commit that was fetched for this run.
func (t *Tree) boundary(ctx context.Context) ([]string, error) {
	r := t.repo
	text, err := os.ReadFile(filepath.Join(r.layout.commonDir, "shallow"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ends := strings.Fields(string(text))
	shallow := len(ends) > 0
	known := map[string]bool{}
	for _, end := range ends {
		known[end] = true
	}
	for queue, looked := []string{t.commit}, 0; len(queue) > 0 && looked < maxBoundary; queue = queue[1:] {
		hash := queue[0]
		if known[hash] || !shallow && r.inCheckout(plumbing.NewHash(hash)) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		known[hash] = true
		looked++
		c, err := r.commit(hash)
		if err != nil {
			return nil, err
		}
		missing := func(parent plumbing.Hash) bool { return !r.has(parent) }
		if slices.ContainsFunc(c.ParentHashes, missing) {
			ends = append(ends, hash)
			continue
		}
		for _, parent := range c.ParentHashes {
			queue = append(queue, parent.String())
		}
	}
	return ends, nil
}

// inCheckout reports whether an object is in the checkout's own folders, not only among what was fetched.
func (r *Repository) inCheckout(hash plumbing.Hash) bool {
	r.mu.RLock()
	folders := r.folders[:len(r.names)]
	r.mu.RUnlock()
	return slices.ContainsFunc(folders, func(f *objectFolder) bool { return f.has(hash) })
}
