package gate

import (
	"path"
	"strings"

	"issuesmith/internal/worktree"
)

// temporaryNames are names of added files that nobody means to keep; compared folded.
var temporaryNames = []string{
	"*.bak", "*.backup", "*.orig", "*.rej", "*.swp", "*.swo", "*.temp", "*.tmp",
	"debug.*", "scratch.*", "test_debug.*",
	"*~", ".#*", "#*#", ".ds_store", "._*", "thumbs.db", "desktop.ini", ".directory", "nohup.out",
}

// temporaryFolders are where editors keep their own state.
var temporaryFolders = map[string]bool{".idea": true, ".vscode": true, ".vs": true, ".fleet": true}

// findTemporary refuses added scratch files, backups and litter of editors and systems.
func findTemporary(c *candidate) ([]Finding, error) {
	var found []Finding
	for _, f := range c.files {
		if f.Op == worktree.Added && isTemporary(f.Path) {
			found = append(found, Finding{
				Path:    f.Path,
				Message: "temporary file added",
				Hint:    "scratch work belongs into $TMPDIR",
			})
		}
	}
	return found, nil
}

func isTemporary(file string) bool {
	dir, base := path.Split(fold(file))
	for part := range strings.SplitSeq(dir, "/") {
		if temporaryFolders[part] {
			return true
		}
	}
	for _, pattern := range temporaryNames {
		// The patterns are constants and known to be well-formed.
		if ok, _ := path.Match(pattern, base); ok {
			return true
		}
	}
	return false
}
