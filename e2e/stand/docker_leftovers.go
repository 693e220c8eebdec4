package stand

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dockerFolder is how the folders of daemons are called.
const dockerFolder = "issuesmith-docker-"

// lockFolder marks a folder as in use until this process ends or calls unlock.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // the lock's error is the one that matters
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil // closing releases the lock
}

// removeAbandoned removes the folders of daemons whose tests were killed: gigabytes. The
// daemon itself has died with its tests.
func removeAbandoned() error {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), dockerFolder+"*"))
	if err != nil {
		return err
	}
	for _, dir := range found {
		// One that is about to be locked is young.
		if info, err := os.Stat(dir); err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		unlock, err := lockFolder(dir)
		if err != nil {
			continue // in use
		}
		err = removeDocker(dir)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// removeDocker removes what outlives a daemon's namespaces: its folder, and the groups of
// its containers, which are empty then, in every hierarchy.
func removeDocker(dir string) error {
	var problems []error
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, err := filepath.Glob(pattern + filepath.Base(dir))
		if err != nil {
			return err
		}
		for _, top := range found {
			problems = append(problems, removeCgroup(top))
		}
	}
	return errors.Join(append(problems, os.RemoveAll(dir))...)
}

func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	// The processes are gone, but the kernel may take a moment to let go of their group.
	for range 50 {
		if err = syscall.Rmdir(dir); !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}
