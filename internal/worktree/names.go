package worktree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxName  = 255  // bytes of one name, the limit of Linux file systems
	maxPath  = 4000 // bytes of a path below the worktree: 4095 with the worktree's own
	maxDepth = 128  // folders inside folders
)

// checkName says what is wrong with one name of a git tree, nil when it can be written
// to disk. The .git rules are those of git's verify_path with core.protectHFS and
// core.protectNTFS on: a repository is refused here for what it would do elsewhere.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("an empty name")
	case len(name) > maxName:
		return fmt.Errorf("a name of %d bytes (%d can be)", len(name), maxName)
	case strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("a slash or NUL byte in a name")
	}
	for part := range strings.SplitSeq(name, `\`) {
		if part == "." || part == ".." {
			return fmt.Errorf("the name %q", name)
		}
		if isDotGit(part) || isDisguisedDotGit(part) {
			return fmt.Errorf("the name %q, which some file systems take for .git", name)
		}
	}
	return nil
}

// isDotGit is .git in any case.
func isDotGit(name string) bool { return strings.EqualFold(name, ".git") }

// isDisguisedDotGit knows what HFS+ (ignored code points) and NTFS (streams, trailing
// dots and spaces, short names) take for .git.
func isDisguisedDotGit(name string) bool {
	if isDotGit(strings.Map(dropIgnored, name)) && utf8.ValidString(name) {
		return true
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return isDotGit(name) || strings.EqualFold(name, "git~1")
}

// dropIgnored removes the code points that HFS+ leaves out of comparisons.
func dropIgnored(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// join puts a name below a folder; the worktree itself is "".
func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// split is the reverse of join.
func split(path string) (folder, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// within is path itself or something below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder) && path[len(folder)] == '/'
}
