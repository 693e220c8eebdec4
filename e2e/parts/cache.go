package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Keep returns the folder called key in the cache and, when it is not there, lets make
// fill it first. Two processes that ask at once make it once. took is zero for what was
// there.
func Keep(ctx context.Context, cache, key string, make func(ctx context.Context, into string) error) (dir string, took time.Duration, err error) {
	start := time.Now()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", 0, err
	}
	dir = filepath.Join(cache, key)
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", 0, err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, 0, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", 0, err
	}
	// Everything is made beside its place and renamed, so that what was cut off leaves
	// nothing that looks whole.
	tmp, err := os.MkdirTemp(cache, key+".part")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone already after the rename
	if err := make(ctx, tmp); err != nil {
		return "", 0, err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", 0, err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return "", 0, err
	}
	return dir, time.Since(start), nil
}

// lock holds an advisory lock on a file until the returned function is called.
func lock(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close() // the lock's error is the one that matters
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil // closing releases the lock
}
