package worktree

import (
	"bytes"
	"sort"
)

// A span is a run of lines that differ: old[oldStart:oldEnd] became new[newStart:newEnd].
type span struct{ oldStart, oldEnd, newStart, newEnd int }

// A lineDiff tells two texts apart line by line; lines keep their ends.
type lineDiff struct {
	before, after [][]byte
	spans         []span
}

func (d *lineDiff) counts() (added, removed int) {
	for _, s := range d.spans {
		added += s.newEnd - s.newStart
		removed += s.oldEnd - s.oldStart
	}
	return added, removed
}

func splitLines(text []byte) [][]byte {
	if len(text) == 0 {
		return nil
	}
	lines := make([][]byte, 0, bytes.Count(text, []byte("\n"))+1)
	for line := range bytes.Lines(text) {
		lines = append(lines, line)
	}
	return lines
}

// diffLines finds a shortest difference (Myers) within a budget that is linear in the
// number of lines; texts that have too little in common are matched on the lines that
// are unique in both (patience), and the rest counts as replaced. So hostile input costs
// no more than ordinary input of its size, and the result is always the same.
func diffLines(before, after []byte) *lineDiff {
	d := &lineDiff{before: splitLines(before), after: splitLines(after)}
	numbers := make(map[string]int32, len(d.before))
	number := func(lines [][]byte) []int32 {
		list := make([]int32, len(lines))
		for i, line := range lines {
			n, ok := numbers[string(line)]
			if !ok {
				n = int32(len(numbers)) //nolint:gosec // contents are at most 64 MiB
				numbers[string(line)] = n
			}
			list[i] = n
		}
		return list
	}
	a, b := number(d.before), number(d.after)
	d.spans = differ(nil, a, b, 0, 0, true)
	return d
}

// differ appends the spans of two texts that start at the given lines.
func differ(spans []span, a, b []int32, atA, atB int, search bool) []span {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, atA, atB = a[1:], b[1:], atA+1, atB+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	switch {
	case len(a) == 0 && len(b) == 0:
		return spans
	case len(a) == 0 || len(b) == 0 || !search:
		return append(spans, span{atA, atA + len(a), atB, atB + len(b)})
	}
	if more, ok := myers(spans, a, b, atA, atB); ok {
		return more
	}
	doneA, doneB := 0, 0
	for _, anchor := range anchors(a, b) {
		spans = differ(spans, a[doneA:anchor.a], b[doneB:anchor.b], atA+doneA, atB+doneB, false)
		doneA, doneB = anchor.a+1, anchor.b+1
	}
	return differ(spans, a[doneA:], b[doneB:], atA+doneA, atB+doneB, false)
}

const (
	maxEdits     = 1000 // beyond this a shortest difference is no easier to read
	stepsPerLine = 64
	minSteps     = 1 << 16
)

// myers is the greedy algorithm of "An O(ND) Difference Algorithm" with its path kept;
// it gives up when the budget is used.
func myers(spans []span, a, b []int32, atA, atB int) ([]span, bool) {
	budget := minSteps + stepsPerLine*(len(a)+len(b))
	edits := min(len(a)+len(b), maxEdits)
	reach := make([]int32, 2*edits+2) // furthest line of a on each diagonal
	var trace [][]int32
	for d := 0; d <= edits; d++ {
		trace = append(trace, append([]int32(nil), reach[edits-min(d, edits):edits+min(d, edits)+2]...))
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && reach[edits+k-1] < reach[edits+k+1] {
				x = int(reach[edits+k+1])
			} else {
				x = int(reach[edits+k-1]) + 1
			}
			y := x - k
			for x < len(a) && y >= 0 && y < len(b) && a[x] == b[y] {
				x, y, budget = x+1, y+1, budget-1
			}
			reach[edits+k] = int32(x) //nolint:gosec // a line number
			if x >= len(a) && y >= len(b) {
				return walkBack(spans, trace, len(a), len(b), atA, atB), true
			}
			if budget--; budget < 0 {
				return spans, false
			}
		}
	}
	return spans, false
}

// walkBack follows the path that myers found from its end and appends its spans.
func walkBack(spans []span, trace [][]int32, x, y, atA, atB int) []span {
	first := len(spans)
	for d := len(trace) - 1; d > 0; d-- {
		reach := trace[d] // as it was before step d: diagonals -d to d+1, diagonal k at k+d
		k := x - y
		var fromK int
		if k == -d || k != d && reach[k-1+d] < reach[k+1+d] {
			fromK = k + 1
		} else {
			fromK = k - 1
		}
		fromX := int(reach[fromK+d])
		fromY := fromX - fromK
		step := span{atA + fromX, atA + fromX, atB + fromY, atB + fromY}
		if fromK == k+1 {
			step.newEnd++
		} else {
			step.oldEnd++
		}
		if n := len(spans); n > first && spans[n-1].oldStart == step.oldEnd && spans[n-1].newStart == step.newEnd {
			spans[n-1].oldStart, spans[n-1].newStart = step.oldStart, step.newStart
		} else {
			spans = append(spans, step)
		}
		x, y = fromX, fromY
	}
	for i, j := first, len(spans)-1; i < j; i, j = i+1, j-1 {
		spans[i], spans[j] = spans[j], spans[i]
	}
	return spans
}

type anchor struct{ a, b int }

// anchors are the longest rising run of lines that stand once in both texts.
func anchors(a, b []int32) []anchor {
	const several = -2
	place := make(map[int32]anchor, len(a))
	note := func(lines []int32, set func(*anchor, int)) {
		for i, line := range lines {
			at, ok := place[line]
			if !ok {
				at = anchor{-1, -1}
			}
			set(&at, i)
			place[line] = at
		}
	}
	mark := func(old, i int) int {
		if old != -1 {
			return several
		}
		return i
	}
	note(a, func(at *anchor, i int) { at.a = mark(at.a, i) })
	note(b, func(at *anchor, i int) { at.b = mark(at.b, i) })

	var tops []int // index into pairs of the smallest end of a run of each length
	var pairs []anchor
	var back []int
	for i, line := range a {
		at := place[line]
		if at.a != i || at.b < 0 {
			continue
		}
		n := sort.Search(len(tops), func(j int) bool { return pairs[tops[j]].b >= at.b })
		previous := -1
		if n > 0 {
			previous = tops[n-1]
		}
		pairs, back = append(pairs, at), append(back, previous)
		if n == len(tops) {
			tops = append(tops, 0)
		}
		tops[n] = len(pairs) - 1
	}
	run := make([]anchor, len(tops))
	if len(tops) > 0 {
		for i, at := len(tops)-1, tops[len(tops)-1]; i >= 0; i, at = i-1, back[at] {
			run[i] = pairs[at]
		}
	}
	return run
}
