package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"issuesmith/internal/sandbox"
)

// transcriptsKept is how many runs' folders stay on a desk.
const transcriptsKept = 50

// A folder keeps what a run leaves (transcript, patch, outputs) and knows where its worktree is.
type folder struct {
	dir  string
	work string
	lock *os.File // held while the run lives; its text is the work folder
	// away is a second lock, in a work folder that lies elsewhere: a runner may have removed the run's own folder by the time
	// somebody looks for what a dead run left. It is nil when work is in dir.
	away *os.File
}

// newFolder makes the run's folder below parent and removes the worktrees of dead runs beside it.
func newFolder(parent string, issue int, desk bool) (*folder, error) {
	if err := os.MkdirAll(parent, passable()); err != nil {
		return nil, fmt.Errorf("making the folder for runs: %w", err)
	}
	buryDead(parent)
	if desk {
		prune(parent, transcriptsKept)
	}
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s-%d-", stamp(), issue))
	if err != nil {
		return nil, fmt.Errorf("making the run's folder: %w", err)
	}
	if err := os.Chmod(dir, passable()); err != nil {
		return nil, fmt.Errorf("opening the run's folder to the commands' user: %w", err)
	}
	f := &folder{dir: dir, work: filepath.Join(dir, "work")}
	if !sandbox.Reachable(dir) {
		// A home folder that only root may enter, for instance.
		if f.work, err = reachableFolder(); err != nil {
			return nil, fmt.Errorf("making the work folder: %w", err)
		}
	}
	if f.lock, err = take(dir, f.work); err == nil && filepath.Dir(f.work) != dir {
		f.away, err = take(f.work, f.work)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the run's folder: %w", err)
	}
	return f, nil
}

// passable is the mode of folders above a worktree: where commands run as another user, that user must be able to
// pass. Files in them are 0600.
func passable() os.FileMode {
	if sandbox.DropOwner().Drop {
		return 0o711
	}
	return 0o700
}

// workParents are where a worktree lies when the run's own folder is closed to the commands' user.
func workParents() []string { return []string{filepath.Clean(os.TempDir()), "/var/tmp", "/tmp"} }

func reachableFolder() (string, error) {
	for _, parent := range workParents() {
		if !sandbox.Reachable(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, "issuesmith-")
		if err != nil {
			continue
		}
		return dir, os.Chmod(dir, 0o711) // #nosec G302 -- the commands' user must pass through
	}
	return "", fmt.Errorf("none of %s can be written and lets other users pass through", strings.Join(workParents(), ", "))
}

// take makes the lock in dir. It gets its name when it is held, so that nobody finds it free.
func take(dir, work string) (*os.File, error) {
	name := filepath.Join(dir, "lock")
	lock, err := os.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // #nosec G304 -- in a folder just made
	if err != nil {
		return nil, err
	}
	_, err = lock.WriteString(work)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) // #nosec G115 -- a descriptor
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// stamp begins a folder's name: names in order are runs in order.
func stamp() string { return time.Now().UTC().Format("20060102T150405") }

// close removes the worktree and, when nothing was kept, the folder.
func (f *folder) close(keep bool) error {
	err := errors.Join(sandbox.RemoveAll(f.work), os.Remove(filepath.Join(f.dir, "lock")), f.lock.Close())
	if f.away != nil {
		err = errors.Join(err, f.away.Close())
	}
	if !keep {
		err = errors.Join(err, sandbox.RemoveAll(f.dir))
	}
	return err
}

// buryDead removes the worktrees of runs that died: their lock is free.
func buryDead(parent string) {
	for _, name := range locks(parent, "*") {
		if bury(name, func(work string) bool { return ourWork(work, filepath.Dir(name)) }) {
			_ = os.Remove(name)
		}
	}
	for _, place := range workParents() {
		for _, name := range locks(place, "issuesmith-*") {
			// Anybody can make such a folder in a place that all may write to: it must be ours, and name itself.
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Dir(name), &st); err == nil && int(st.Uid) == os.Geteuid() {
				bury(name, func(work string) bool { return work == filepath.Dir(name) })
			}
		}
	}
}

func locks(parent, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(parent, pattern, "lock")) // the patterns are good ones
	return found
}

// bury removes the worktree that a lock names, if it is one of ours. It says whether nobody held the lock.
func bury(name string, ours func(work string) bool) bool {
	lock, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0) // #nosec G304 -- found in our own folders
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()                               // nothing was written
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil { // #nosec G115 -- a descriptor
		return false
	}
	if work, err := os.ReadFile(name); err == nil && ours(string(work)) { // #nosec G304 -- as above
		_ = sandbox.RemoveAll(string(work))
	}
	return true
}

// ourWork guards the removal: only the two places where a run puts its worktree.
func ourWork(work, dir string) bool {
	return work == filepath.Join(dir, "work") ||
		slices.Contains(workParents(), filepath.Dir(work)) && strings.HasPrefix(filepath.Base(work), "issuesmith-")
}

// prune removes the oldest folders of ended runs; their names begin with the time.
func prune(parent string, keep int) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	var done []string
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(parent, e.Name(), "lock")); e.IsDir() && errors.Is(err, os.ErrNotExist) {
			done = append(done, e.Name())
		}
	}
	sort.Strings(done)
	for ; len(done) >= keep; done = done[1:] {
		_ = sandbox.RemoveAll(filepath.Join(parent, done[0]))
	}
}
