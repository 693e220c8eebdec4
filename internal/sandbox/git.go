package sandbox

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed git.sh
var gitScript string

// installGit puts the small git into folder, which stands first on the commands' PATH: the real one, on the read-only history
// where the current folder has no repository of its own. real is the real git's path, top the worktree.
func installGit(folder, real, history, top string) error {
	if err := writeGit(folder, real, history, top); err != nil {
		return fmt.Errorf("installing git for commands: %w", err)
	}
	return nil
}

func writeGit(folder, real, history, top string) error {
	top, err := filepath.Abs(top)
	if err == nil {
		top, err = filepath.EvalSymlinks(top) // the script compares it with where it is
	}
	if err == nil {
		history, err = filepath.Abs(history)
	}
	if err != nil {
		return err
	}
	if strings.ContainsRune(folder+history, filepath.ListSeparator) {
		return fmt.Errorf("no PATH can hold the folder %s, since there is a colon in its name: choose another state folder", folder)
	}
	text := strings.NewReplacer("@GIT@", shellQuote(real), "@HISTORY@", shellQuote(history), "@TOP@", shellQuote(top)).Replace(gitScript)
	if err := os.MkdirAll(folder, 0o755); err != nil { // #nosec G301 -- the commands' user runs what is in it
		return err
	}
	// Another sandbox of the run may be using the script: it is replaced, not written over.
	name := filepath.Join(folder, "git")
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	for _, path := range []string{folder, name + ".new"} { // whatever the umask is
		if err := os.Chmod(path, 0o755); err != nil { // #nosec G302 -- the commands' user runs it
			return err
		}
	}
	return os.Rename(name+".new", name)
}

// shellQuote is text as one word of a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// userGitConfig is the commands' own ~/.gitconfig: repositories that tests make want a name, and nothing that goes on in the
// background or asks.
const userGitConfig = `[user]
	name = issuesmith
	email = issuesmith@localhost
[init]
	defaultBranch = main
[commit]
	gpgSign = false
[tag]
	gpgSign = false
[gc]
	auto = 0
[maintenance]
	auto = false
[core]
	pager = cat
	editor = true
`

// gitConfig writes the commands' git configuration into home when there is none.
func gitConfig(home string, owner Owner) error {
	if err := writeGitConfig(filepath.Join(home, ".gitconfig"), owner); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the commands' git configuration: %w", err)
	}
	return nil
}

// writeGitConfig does not follow a link: commands of an earlier sandbox may have had this HOME.
func writeGitConfig(name string, owner Owner) (err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if owner.Drop {
		if err := file.Chown(owner.UID, owner.GID); err != nil {
			return err
		}
	}
	_, err = file.WriteString(userGitConfig)
	return err
}

// alternates are the folders a repository that the run wrote borrows its objects from. Lines may be quoted as strings of C
// (git's link_alt_odb_entries).
func alternates(repository string) []string {
	text, err := os.ReadFile(filepath.Join(repository, "objects", "info", "alternates"))
	if err != nil {
		return nil // it borrows none
	}
	var folders []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, `"`) {
			if line, err = strconv.Unquote(line); err != nil {
				continue
			}
		}
		if filepath.IsAbs(line) {
			folders = append(folders, line)
		}
	}
	return folders
}
