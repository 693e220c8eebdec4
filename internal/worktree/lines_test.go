package worktree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rebuild makes after from before and the spans: what is outside them must be the same.
func rebuild(t *testing.T, d *lineDiff) {
	t.Helper()
	var out [][]byte
	at := 0
	for _, s := range append(d.spans, span{len(d.before), len(d.before), len(d.after), len(d.after)}) {
		if s.oldStart < at || s.oldEnd < s.oldStart || s.newEnd < s.newStart {
			t.Fatalf("spans out of order: %v", d.spans)
		}
		out = append(out, d.before[at:s.oldStart]...)
		if len(out) != s.newStart {
			t.Fatalf("span %v starts at new line %d", s, len(out))
		}
		out = append(out, d.after[s.newStart:s.newEnd]...)
		at = s.oldEnd
	}
	if !bytes.Equal(bytes.Join(out, nil), bytes.Join(d.after, nil)) {
		t.Fatalf("spans %v do not lead from before to after", d.spans)
	}
}

func FuzzDiffLines(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nx\nc"))
	f.Add([]byte(""), []byte("\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		d := diffLines(before, after)
		rebuild(t, d)
		if (len(d.spans) == 0) != bytes.Equal(before, after) {
			t.Fatalf("%d spans", len(d.spans))
		}
	})
}

// TestCountsAsGit compares line counts with git's own on edits of the ordinary kind.
func TestCountsAsGit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	for round := range 60 {
		var before, after strings.Builder
		for i := range 120 {
			line := fmt.Sprintf("line %d of %d\n", i, random.IntN(40))
			before.WriteString(line)
			switch random.IntN(12) {
			case 0:
			case 1:
				after.WriteString("changed " + line)
			case 2:
				after.WriteString(line + "inserted\n")
			default:
				after.WriteString(line)
			}
		}
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		if os.WriteFile(a, []byte(before.String()), 0o600) != nil || os.WriteFile(b, []byte(after.String()), 0o600) != nil {
			t.Fatal("cannot write")
		}
		out, _ := exec.Command("git", "diff", "--no-index", "--numstat", "--minimal", a, b).Output() // exits 1: they differ
		d := diffLines([]byte(before.String()), []byte(after.String()))
		rebuild(t, d)
		added, removed := d.counts()
		if want := strings.Fields(string(out)); strconv.Itoa(added) != want[0] || strconv.Itoa(removed) != want[1] {
			t.Errorf("round %d: +%d -%d, git says %s", round, added, removed, out)
		}
	}
}

// TestHostileDiffs are texts that make shortest differences expensive.
func TestHostileDiffs(t *testing.T) {
	t.Parallel()
	const n = 60_000
	text := func(line func(i int) int) []byte {
		var b bytes.Buffer
		for i := range n {
			b.WriteString(strconv.Itoa(line(i)))
			b.WriteByte('\n')
		}
		return b.Bytes()
	}
	random := rand.New(rand.NewPCG(3, 4))
	reversed := text(func(i int) int { return n - i })
	for name, pair := range map[string][2][]byte{
		"nothing in common": {text(func(i int) int { return i }), text(func(i int) int { return -i - 1 })},
		"reversed":          {text(func(i int) int { return i + 1 }), reversed},
		"two lines":         {text(func(int) int { return random.IntN(2) }), text(func(int) int { return random.IntN(2) })},
		"few lines":         {text(func(int) int { return random.IntN(50) }), text(func(int) int { return random.IntN(50) })},
		"periods":           {text(func(i int) int { return i % 7 }), text(func(i int) int { return i % 11 })},
		"shifted":           {text(func(i int) int { return i * i % 101 }), text(func(i int) int { return (i + 50) * (i + 50) % 101 })},
	} {
		start := time.Now()
		d := diffLines(pair[0], pair[1])
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %v for %d lines", name, took, n)
		}
		rebuild(t, d)
	}
}

// TestManyEdits is far beyond the bound of the search: every third line differs.
func TestManyEdits(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&before, "line %d\n", i)
		if i%3 == 0 {
			fmt.Fprintf(&after, "new %d\n", i)
		} else {
			fmt.Fprintf(&after, "line %d\n", i)
		}
	}
	d := diffLines([]byte(before.String()), []byte(after.String()))
	if added, removed := d.counts(); added != 10_000 || removed != 10_000 {
		t.Errorf("+%d -%d", added, removed)
	}
}
