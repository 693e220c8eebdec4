package sandbox

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed git.sh
var gitScript string

// installGit puts the small git into folder, which stands first on the commands' PATH: the real one, on the read-only history
// where the current folder has no repository of its own. real is the real git's path, top the worktree.
func installGit(folder, real, history, top string) error {
	top, err := filepath.EvalSymlinks(top)
	if err != nil {
		return fmt.Errorf("installing git for commands: %w", err)
	}
	text := strings.NewReplacer("@GIT@", shellQuote(real), "@HISTORY@", shellQuote(history), "@TOP@", shellQuote(top)).Replace(gitScript)
	if err := os.MkdirAll(folder, 0o755); err != nil { // #nosec G301 -- the commands' user runs it
		return fmt.Errorf("installing git for commands: %w", err)
	}
	// Another sandbox of the run may be using the script: it is replaced, not written over.
	name := filepath.Join(folder, "git")
	err = os.WriteFile(name+".new", []byte(text), 0o755) // #nosec G306 -- the commands' user runs it
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("installing git for commands: %w", err)
	}
	return nil
}

// shellQuote is text as one word of a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// userGitConfig is the commands' own ~/.gitconfig: repositories that tests make want a name.
const userGitConfig = `[user]
	name = issuesmith
	email = issuesmith@localhost
[init]
	defaultBranch = main
`

// gitConfig writes the configuration into home when there is none.
func gitConfig(home string, owner Owner) error {
	name := filepath.Join(home, ".gitconfig")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) // #nosec G302,G304 -- the commands' user reads it
	if os.IsExist(err) {
		return nil
	}
	if err == nil {
		_, err = file.WriteString(userGitConfig)
	}
	if err == nil && owner.Drop {
		err = file.Chown(owner.UID, owner.GID)
	}
	if file != nil {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return fmt.Errorf("writing the commands' git configuration: %w", err)
	}
	return nil
}

// alternates are the folders a repository borrows its objects from (gitrepository-layout(5)).
func alternates(repository string) []string {
	text, err := os.ReadFile(filepath.Join(repository, "objects", "info", "alternates")) // #nosec G304 -- written by the run
	if err != nil {
		return nil
	}
	var folders []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			folders = append(folders, line)
		}
	}
	return folders
}
