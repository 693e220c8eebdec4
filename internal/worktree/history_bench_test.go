package worktree

import (
	"path/filepath"
	"testing"
)

func BenchmarkHistory50k(b *testing.B) {
	tree := checkedOut(b, large(b))
	for b.Loop() {
		if err := tree.WriteHistory(b.Context(), filepath.Join(b.TempDir(), "history"), "main", always); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHistoryStatus compares git status on a history with that on an index that git itself has just refreshed: the medians,
// taken in turns so that both see the same machine.
func BenchmarkHistoryStatus(b *testing.B) {
	tree := checkedOut(b, large(b))
	git := reader{top: tree.Dir(), dir: tree.Dir(), history: history(b, tree, "main", always)}
	refreshed := status(b, tree)
	inTurns(b, func() {
		if out := git.git(b, "status", "--porcelain"); out != "" {
			b.Fatal(out)
		}
	}, refreshed)
}
