package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPHPSettingsAreWrittenOnceAndNotThroughLinks(t *testing.T) {
	t.Parallel()
	home, elsewhere := t.TempDir(), t.TempDir()
	file := filepath.Join(home, phpFolder, "sandbox.ini")
	for _, text := range []string{phpSettings, "own"} {
		if err := phpConfig(home, DropOwner()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("got %q %v, want %q", got, err, text)
		}
		lay(t, home, map[string]string{phpFolder + "/sandbox.ini": "own"})
	}
	if err := os.RemoveAll(filepath.Join(home, ".config")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(home, ".config")); err != nil {
		t.Fatal(err)
	}
	if err := phpConfig(home, DropOwner()); err != nil { // the commands' own doing
		t.Error(err)
	}
	if entries, _ := os.ReadDir(elsewhere); len(entries) > 0 {
		t.Errorf("written through a link: %v", entries)
	}
}
