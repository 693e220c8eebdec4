package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

const (
	maxPath = 1000 // bytes; the gate refuses far shorter ones
	maxName = 255  // bytes, the file systems' limit
)

// clean checks a path the model gave and returns it slash-separated and shortest, "." for the top. The
// second value is the refusal, "" when there is none.
func (s *Set) clean(name string) (string, string) {
	shown := cutLine(name, 200)
	switch {
	case name == "":
		return ".", ""
	case filepath.IsAbs(name):
		if below, err := filepath.Rel(s.bench.Tree.Dir(), name); err == nil && filepath.IsLocal(below) {
			return "", fmt.Sprintf("%q: paths are relative to the repository's top folder; give %q.", shown, below)
		}
		return "", fmt.Sprintf("%q is an absolute path: paths are relative to the repository's top folder, and nothing outside it can be used here.", shown)
	case len(name) > maxPath:
		return "", fmt.Sprintf("%q is %d bytes long, a path may have %d.", shown, len(name), maxPath)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
		return "", fmt.Sprintf("%q has a control character or a backslash in it: separate folders with /.", shown)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return "", fmt.Sprintf("%q: .. is refused. Paths are relative to the repository's top folder and stay below it.", shown)
		case strings.EqualFold(part, ".git"):
			return "", fmt.Sprintf("%q: this copy of the repository has no .git, and none may be made. The commit is made for you after submit.", shown)
		case len(part) > maxName:
			return "", fmt.Sprintf("%q: a name may be %d bytes long.", shown, maxName)
		}
	}
	return path.Clean(name), ""
}

// root opens the worktree as a root that no path or link leaves. The refusal is for a worktree that
// the model's own commands destroyed.
func (s *Set) root() (*os.Root, string) {
	root, err := os.OpenRoot(s.bench.Tree.Dir())
	if err != nil {
		return nil, "the repository's top folder cannot be opened any more (" + reason(err) + "): a command removed it or took away its permissions. Undo that with bash, or submit."
	}
	return root, ""
}

// stat says what lies at a clean path, following links inside the worktree only. It never opens anything, so that
// a named pipe cannot hold it.
func (s *Set) stat(ctx context.Context, name string) (fs.FileInfo, string) {
	root, refusal := s.root()
	if refusal != "" {
		return nil, refusal
	}
	defer func() { _ = root.Close() }() // a folder opened for reading: nothing can be lost
	info, err := root.Stat(filepath.FromSlash(name))
	switch {
	case err == nil:
		return info, ""
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		if link, err := root.Lstat(filepath.FromSlash(name)); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			return nil, name + " is a symbolic link to nothing."
		}
		return nil, s.missing(ctx, name)
	}
	return nil, fmt.Sprintf("%s cannot be used: %s.", name, reason(err))
}

// changeable says what lies at a clean path that is to be written: its mode, nil when nothing is there, or why it
// cannot be written. Links are not written through: the change would land on another path than the one named.
func (s *Set) changeable(name string) (fs.FileInfo, string) {
	if name == "." {
		return nil, "name a file, not the top folder."
	}
	root, refusal := s.root()
	if refusal != "" {
		return nil, refusal
	}
	defer func() { _ = root.Close() }() // as in stat
	info, err := root.Lstat(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ""
	case err != nil:
		return nil, fmt.Sprintf("%s cannot be used: %s.", name, reason(err))
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := root.Readlink(filepath.FromSlash(name)) // only to be more helpful
		return nil, fmt.Sprintf("%s is a symbolic link to %q: change the file it leads to.", name, cutLine(target, 200))
	case !info.Mode().IsRegular():
		return nil, fmt.Sprintf("%s is %s, not a file.", name, kindOf(info.Mode()))
	}
	return info, ""
}

// kindOf names what is not a regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// reason is an error's last cause, without the absolute paths around it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// fault sorts errors of the file system: those that no other call could get round end the run, the rest the model is told.
func fault(what string, err error) (Result, error) {
	for _, hard := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, hard) {
			return Result{}, fmt.Errorf("%s: %w", what, err)
		}
	}
	return failed("%s: %s.", what, reason(err)), nil
}

// missing says that a file is not there and which ones have the nearest names.
func (s *Set) missing(ctx context.Context, name string) string {
	text := "there is no " + name + "."
	files, err := s.bench.Tree.Files(ctx)
	if err != nil {
		return text
	}
	if near := nearestNames(files, name, 5); len(near) > 0 {
		text += " The nearest names: " + strings.Join(near, ", ") + "."
	}
	return text
}

// nearestNames picks the files whose names are most like the wanted one, best first.
func nearestNames(files []string, name string, n int) []string {
	type candidate struct {
		file  string
		score float64
	}
	base, folder := grams(strings.ToLower(path.Base(name))), grams(strings.ToLower(name))
	var list []candidate
	for _, f := range files {
		low := strings.ToLower(f)
		score := base.like(path.Base(low))
		if score < 0.5 {
			continue
		}
		list = append(list, candidate{f, score + folder.like(low)/2})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].score > list[j].score })
	var names []string
	for _, c := range list[:min(n, len(list))] {
		names = append(names, cutLine(c.file, 200))
	}
	return names
}
