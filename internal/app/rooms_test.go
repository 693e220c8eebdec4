package app

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms is the direction of imports: a room may import these rooms and no others of ours. redact is
// open to all. A room that is not listed does not exist.
var rooms = map[string][]string{
	"app": {
		"pipeline", "agent", "gate", "tool", "endpoint", "forge/gitea", "forge/local", "forge", "actions", "worktree", "sandbox", "transcript", "config",
	},
	"pipeline":    {"agent", "gate", "tool", "endpoint", "forge", "worktree", "sandbox", "transcript", "config"},
	"agent":       {"tool", "endpoint", "transcript"},
	"gate":        {"worktree", "sandbox", "config", "transcript"},
	"tool":        {"sandbox", "worktree"},
	"endpoint":    {"transcript", "config"},
	"forge/gitea": {"forge", "worktree"},
	"forge/local": {"forge", "worktree"},
	"forge":       {},
	"actions":     {},
	"worktree":    {},
	"sandbox":     {},
	"transcript":  {},
	"config":      {},
	"redact":      {},
}

// processPackages start processes; only sandbox may.
var processPackages = []string{"os/exec", "syscall.ForkExec", "github.com/go-git/go-git/v5/plumbing/transport/file"}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	root := ".." // internal/
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		room := path.Dir(filepath.ToSlash(relative))
		allowed, known := rooms[room]
		if !known {
			t.Errorf("%s: the room %q is not in the table", file, room)
			return nil
		}
		seen[room] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		test := strings.HasSuffix(file, "_test.go")
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			other, ours := strings.CutPrefix(imported, "issuesmith/internal/")
			switch {
			case ours && other != room && other != "redact" && !slices.Contains(allowed, other) && (!test || !below(room, other)):
				t.Errorf("%s: %s may not import %s", file, room, other)
			case room != "sandbox" && !test && slices.Contains(processPackages, imported):
				t.Errorf("%s: only sandbox starts processes, but this imports %s", file, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for room := range rooms {
		if !seen[room] {
			t.Errorf("the room %q has no file: is the table out of date?", room)
		}
	}
}

// below reports whether other lies anywhere below room: tests may build the real parts that the
// rooms they use stand on.
func below(room, other string) bool {
	for _, next := range rooms[room] {
		if next == other || below(next, other) {
			return true
		}
	}
	return false
}
