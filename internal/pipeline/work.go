package pipeline

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// removeWork removes a folder even where commands took away their own write permission.
func removeWork(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // #nosec G302 -- a folder about to be removed
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}
