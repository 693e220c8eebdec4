package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"issuesmith/internal/worktree"
)

// maxPath is the longest path, in bytes: Windows and several archive formats take no more.
const maxPath = 255

const renameHint = "use a plain name: letters, digits, '.', '_' and '-', different from all others when case is ignored"

// findPaths refuses names that mean something else, or cannot exist, on another system.
func findPaths(c *candidate) ([]Finding, error) {
	var found []Finding
	for _, f := range c.files {
		if f.New.Kind == worktree.KindRepository {
			continue // its path ends in .git, and rule kind tells it
		}
		for _, what := range pathTroubles(f.Path, f.Op == worktree.Added) {
			found = append(found, Finding{Path: f.Path, Message: what, Hint: renameHint})
		}
	}
	twins, err := findTwins(c)
	return append(found, twins...), err
}

// pathTroubles says what is wrong with a path. A name that the base commit has already is only held to what
// would be dangerous: its other oddities are not the change's doing.
func pathTroubles(path string, added bool) []string {
	var t []string
	if path == "" || strings.HasPrefix(path, "/") {
		t = append(t, "the path is absolute or empty")
	}
	var dots, git bool
	for part := range strings.SplitSeq(path, "/") {
		dots = dots || part == "." || part == ".."
		git = git || isDotGit(part)
	}
	if dots {
		t = append(t, "the path has a . or .. in it")
	}
	if git {
		t = append(t, "the path has a part that is .git here or on another file system")
	}
	if added {
		t = append(t, nameTroubles(path)...)
	}
	return t
}

func nameTroubles(path string) []string {
	var t []string
	if !utf8.ValidString(path) {
		t = append(t, "the path is not valid UTF-8")
	}
	if len(path) > maxPath {
		t = append(t, fmt.Sprintf("the path is %d bytes long; %d are allowed", len(path), maxPath))
	}
	if strings.Contains(path, `\`) {
		t = append(t, "the path holds a backslash, which is a separator on Windows")
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		t = append(t, "the path holds a control character")
	}
	if strings.ContainsFunc(path, func(r rune) bool { return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) }) {
		t = append(t, "the path holds an invisible character or one that changes the direction of text")
	}
	for part := range strings.SplitSeq(path, "/") {
		if part != "." && part != ".." && strings.TrimRight(part, ". ") != part {
			t = append(t, "a part of the path ends in a dot or blank, which Windows drops")
			break
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		if device.MatchString(part) {
			t = append(t, "a part of the path is a device name on Windows")
			break
		}
	}
	return t
}

// device matches the names that Windows reserves, with any extension (Microsoft, "Naming Files, Paths, and Namespaces").
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³]) *(\.|$)`)

// shortName matches the 8.3 names under which NTFS finds .git and its relatives (git's is_ntfs_dot_generic).
var shortName = regexp.MustCompile(`^git(mod|att|ign)?~[0-9]$`)

// isDotGit says that a path component is .git to some file system: by case, by characters that HFS+ ignores, by
// what NTFS drops at the end, as a stream of it, or by its short name.
func isDotGit(part string) bool {
	name, _, _ := strings.Cut(part, ":")
	name, _, _ = strings.Cut(name, `\`)
	name = plain(name)
	return name == ".git" || shortName.MatchString(name)
}

// findTwins finds added names that differ only in case, or in Unicode composition, from another name beside them:
// on many file systems one of the two files would be lost. It looks at the folders on disk, and
// so sees links and files that no list of regular files holds.
func findTwins(c *candidate) ([]Finding, error) {
	var (
		found []Finding
		disk  *folders
	)
	for _, f := range c.files {
		if f.Op != worktree.Added {
			continue
		}
		if disk == nil {
			root, err := os.OpenRoot(c.tree.Dir())
			if err != nil {
				return nil, fmt.Errorf("open the worktree: %w", err)
			}
			defer func() { _ = root.Close() }() // only read from
			disk = &folders{root: root, names: map[string]map[string][]string{}}
		}
		twin, err := disk.twin(f.Path)
		if err != nil {
			return nil, err
		}
		if twin != "" {
			found = append(found, Finding{
				Path:    f.Path,
				Message: "the name differs only in case or composition from " + shown(twin),
				Hint:    renameHint,
			})
		}
	}
	return found, nil
}

// folders remembers the names in the folders of a worktree: folder → folded name → names.
type folders struct {
	root  *os.Root
	names map[string]map[string][]string
}

// twin returns a path beside path or beside one of its folders that has the same folded name; "" when there is none.
func (d *folders) twin(path string) (string, error) {
	dir := "."
	for part := range strings.SplitSeq(path, "/") {
		names, err := d.list(dir)
		if err != nil {
			return "", err
		}
		at := part
		if dir != "." {
			at = dir + "/" + part
		}
		for _, other := range names[fold(part)] {
			if other != part {
				return strings.TrimSuffix(at, part) + other, nil
			}
		}
		dir = at
	}
	return "", nil
}

func (d *folders) list(dir string) (map[string][]string, error) {
	if names, ok := d.names[dir]; ok {
		return names, nil
	}
	names := map[string][]string{}
	d.names[dir] = names
	f, err := d.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return names, nil // the change was read there a moment ago: a folder that is closed or gone holds no twin that it saw
	}
	if err != nil {
		return nil, fmt.Errorf("look for names that differ only in case: %w", err)
	}
	defer func() { _ = f.Close() }() // only read from
	entries, err := f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("look for names that differ only in case in %s: %w", shown(dir), err)
	}
	for _, name := range entries {
		key := fold(name)
		names[key] = append(names[key], name)
	}
	return names, nil
}
