package worktree

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
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
	var ours, gits []time.Duration
	for b.Loop() {
		start := time.Now()
		if out := git.git(b, "status", "--porcelain"); out != "" {
			b.Fatal(out)
		}
		middle := time.Now()
		refreshed()
		ours, gits = append(ours, middle.Sub(start)), append(gits, time.Since(middle))
	}
	slices.Sort(ours)
	slices.Sort(gits)
	us, them := ours[len(ours)/2], gits[len(gits)/2]
	b.ReportMetric(float64(us)/float64(them), "ratio")
	b.ReportMetric(float64(us.Microseconds())/1000, "ours-ms")
	b.ReportMetric(float64(them.Microseconds())/1000, "git-ms")
}
