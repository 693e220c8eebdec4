package worktree

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// A layout says where the parts of a repository are.
type layout struct {
	gitDir    string // HEAD
	commonDir string // objects, refs, config; differs from gitDir in a linked worktree
}

// discover looks for a repository in dir and the folders above it.
func discover(dir string) (layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, fmt.Errorf("find the repository of %s: %w", dir, err)
	}
	if _, err := os.Stat(abs); err != nil {
		return layout{}, fmt.Errorf("find the repository of %s: %w", dir, err)
	}
	for at := abs; ; at = filepath.Dir(at) {
		gitDir, err := gitDirAt(at)
		if err != nil {
			return layout{}, fmt.Errorf("find the repository of %s: %w", dir, err)
		}
		if gitDir != "" {
			common, err := commonDirOf(gitDir)
			return layout{gitDir: gitDir, commonDir: common}, err
		}
		if at == filepath.Dir(at) {
			return layout{}, fmt.Errorf("%s is %w: check the repository out first (actions/checkout), or name its folder with --repo", dir, ErrNoRepository)
		}
	}
}

// gitDirAt is the git folder that belongs to one folder, "" when it has none.
func gitDirAt(dir string) (string, error) {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case info.IsDir():
		if isGitDir(dotGit) {
			return dotGit, nil
		}
	default:
		return readGitFile(dotGit)
	}
	if isGitDir(dir) { // bare, or started inside .git
		return dir, nil
	}
	return "", nil
}

func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(dir, "commondir")); err == nil {
		return true
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// readGitFile follows the one line of a .git file.
func readGitFile(name string) (string, error) {
	line, err := readLine(name)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(line, "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s is a file without a gitdir line", name)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(name), target)
	}
	if !isGitDir(target) {
		return "", fmt.Errorf("%s points at %s, which is not a git folder", name, target)
	}
	return target, nil
}

func commonDirOf(gitDir string) (string, error) {
	line, err := readLine(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(line) {
		line = filepath.Join(gitDir, line)
	}
	return line, nil
}

// readLine reads the one line of a small file of git's.
func readLine(name string) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// harmless are the repository extensions that change nothing for a reader.
var harmless = map[string]bool{
	"noop": true, "noop-v1": true, "preciousobjects": true, "worktreeconfig": true,
	"relativeworktrees": true, "partialclone": true, "compatobjectformat": true,
}

// readForm reads what the repository's own config says about its form, nothing else
// of it: no includes, no user's or system's config. It reports whether objects may be
// missing by design.
func readForm(commonDir string) (partial bool, err error) {
	f, err := os.Open(filepath.Join(commonDir, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the repository's config: %w", err)
	}
	defer func() { _ = f.Close() }()
	parsed := config.New()
	if err := config.NewDecoder(bufio.NewReader(f)).Decode(parsed); err != nil {
		return false, fmt.Errorf("read the repository's config: %w", err)
	}
	for _, option := range parsed.Section("extensions").Options {
		key, value := strings.ToLower(option.Key), strings.ToLower(option.Value)
		switch {
		case key == "objectformat" && value == "sha1", key == "refstorage" && value == "files":
		case key == "objectformat":
			return false, &UnsupportedError{
				Form:   "a repository with " + strings.ToUpper(value) + " objects",
				Remedy: "only SHA-1 repositories can be worked on; use a repository made with git init --object-format=sha1",
			}
		case key == "refstorage":
			return false, &UnsupportedError{
				Form:   "a repository with refs stored as " + value,
				Remedy: "check it out with git's default ref storage, or run: git refs migrate --ref-format=files",
			}
		case !harmless[key]:
			return false, &UnsupportedError{
				Form:   "a repository with the extension " + option.Key,
				Remedy: "this extension is not known here; check the repository out without it",
			}
		}
		partial = partial || key == "partialclone"
	}
	for _, remote := range parsed.Section("remote").Subsections {
		partial = partial || strings.EqualFold(remote.Option("promisor"), "true")
	}
	return partial, nil
}
