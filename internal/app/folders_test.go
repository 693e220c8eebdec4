package app

import (
	"os"
	"path/filepath"
	"testing"
)

// away makes a run's folder whose worktree lies elsewhere, in a place for temporary files.
func away(t *testing.T) (f *folder, parent string) {
	t.Helper()
	place := t.TempDir()
	t.Setenv("TMPDIR", place)
	parent = t.TempDir()
	f = &folder{dir: filepath.Join(parent, "run"), work: filepath.Join(place, "issuesmith-1")}
	for _, dir := range []string{f.dir, f.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if f.lock, err = take(f.dir, f.work); err != nil {
		t.Fatal(err)
	}
	if f.away, err = take(f.work, f.work); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = f.lock.Close(), f.away.Close() })
	return f, parent
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestWorktreeOfADeadRunGoesThoughItsFolderWent(t *testing.T) {
	f, parent := away(t)
	buryDead(parent)
	if !there(f.work) || !there(filepath.Join(f.dir, "lock")) {
		t.Fatal("a run that lives was buried")
	}
	// The runner's cleaning and the run's death.
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	buryDead(parent)
	if !there(f.work) {
		t.Fatal("a run that lives was buried")
	}
	_, _ = f.lock.Close(), f.away.Close()
	buryDead(t.TempDir())
	if there(f.work) {
		t.Error("the worktree of a dead run stays")
	}
}

func TestPlantedLockBuriesNobodyElse(t *testing.T) {
	f, parent := away(t)
	planted := filepath.Join(filepath.Dir(f.work), "issuesmith-2")
	other := filepath.Join(filepath.Dir(f.work), "issuesmith-3")
	for _, dir := range []string{planted, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(planted, "lock"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	buryDead(parent)
	if !there(other) || !there(planted) {
		t.Error("a lock removed a folder that is not its own")
	}
}

func TestFolderClosesWithItsWorktreeElsewhere(t *testing.T) {
	f, _ := away(t)
	if err := f.close(false); err != nil || there(f.work) || there(f.dir) {
		t.Errorf("%v, worktree %t, folder %t", err, there(f.work), there(f.dir))
	}
}
