package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"issuesmith/internal/worktree"
)

// leaveOut takes away what commands leave behind without anybody meaning it: compiled files, built programs, caches of
// tools. It is neither a finding, since the model did not write it, nor part of the change.
func (g *Gate) leaveOut(ctx context.Context, c *worktree.Change, v *Verdict) (*worktree.Change, error) {
	var paths []string
	for _, f := range c.Files {
		left, err := g.leftover(f)
		if err != nil {
			return nil, err
		}
		if left {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 {
		return c, nil
	}
	if err := g.Tree.PutBack(ctx, paths); err != nil {
		return nil, fmt.Errorf("take away what commands left behind: %w", err)
	}
	v.Notes = append(v.Notes, "left out of the change, as commands leave such files behind: "+some(paths, 10))
	return g.Tree.Change(ctx)
}

// leftover recognises an added file that a command made: by the cache it lies in, else, binary files only,
// by its name or its first bytes. Other binary files are for rule kind.
func (g *Gate) leftover(f worktree.File) (bool, error) {
	if f.Op != worktree.Added || f.New.Kind != worktree.KindFile && f.New.Kind != worktree.KindExecutable {
		return false, nil
	}
	if inToolCache(f.Path) {
		return true, nil
	}
	if !f.Binary {
		return false, nil
	}
	if isTemporary(f.Path) || builtSuffixes[path.Ext(fold(f.Path))] {
		return true, nil
	}
	return g.isBuilt(f.Path)
}

// toolCaches are folders and files that test runners and linters keep for themselves.
var toolCaches = map[string]bool{
	"__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, ".hypothesis": true, ".tox": true, ".nox": true,
	".phpunit.cache": true, ".phpunit.result.cache": true, ".php-cs-fixer.cache": true, ".php_cs.cache": true,
	".nyc_output": true, ".eslintcache": true, ".parcel-cache": true, ".turbo": true, ".gradle": true, ".coverage": true,
}

func inToolCache(file string) bool {
	for part := range strings.SplitSeq(file, "/") {
		if toolCaches[part] || strings.HasSuffix(part, ".egg-info") {
			return true
		}
	}
	return false
}

// builtSuffixes are names of compiled files.
var builtSuffixes = map[string]bool{
	".pyc": true, ".pyo": true, ".class": true, ".o": true, ".obj": true, ".a": true, ".lib": true, ".so": true, ".dylib": true, ".dll": true, ".exe": true,
	".test": true, ".wasm": true, ".beam": true, ".elc": true, ".rlib": true, ".rmeta": true, ".pdb": true, ".gcda": true, ".gcno": true,
}

// builtStarts are the first bytes of programs, libraries and databases that commands make:
// ELF, Mach-O (both orders, and universal, which is Java's class mark as well), PE, WebAssembly, ar, SQLite.
var builtStarts = [][]byte{
	[]byte("\x7fELF"),
	{0xfe, 0xed, 0xfa, 0xce},
	{0xfe, 0xed, 0xfa, 0xcf},
	{0xce, 0xfa, 0xed, 0xfe},
	{0xcf, 0xfa, 0xed, 0xfe},
	{0xca, 0xfe, 0xba, 0xbe},
	[]byte("MZ"),
	[]byte("\x00asm"),
	[]byte("!<arch>\n"),
	[]byte("SQLite format 3\x00"),
}

// isBuilt looks at the file on disk, since a program is often larger than the contents that a change keeps.
func (g *Gate) isBuilt(file string) (bool, error) {
	r, err := g.Tree.OpenFile(file)
	if err != nil {
		return false, fmt.Errorf("look into %s: %w", shown(file), err)
	}
	defer func() { _ = r.Close() }() // only read from
	first := make([]byte, 16)
	n, err := io.ReadFull(r, first)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("look into %s: %w", shown(file), err)
	}
	return slices.ContainsFunc(builtStarts, func(start []byte) bool { return bytes.HasPrefix(first[:n], start) }), nil
}

// some lists the first n paths and says how many more there are.
func some(paths []string, n int) string {
	var b strings.Builder
	for i, p := range paths {
		if i == n {
			fmt.Fprintf(&b, " and %d more", len(paths)-n)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(shown(p))
	}
	return b.String()
}
