package tool

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
)

const (
	maxWindow     = 40  // lines of a wanted text that are compared
	maxCandidates = 3   // places that are shown
	maxShown      = 8   // lines of one place
	maxShownLine  = 200 // bytes of one line
)

// numbered is the start of a line copied out of read_file with its number.
var numbered = regexp.MustCompile(`(?m)^ *[0-9]+\t`)

// notThere says that a text does not occur and shows what is nearest to it.
func notThere(content, old string) string {
	if bare := numbered.ReplaceAllString(old, ""); bare != old && len(occurrences(content, bare)) > 0 {
		return "`old` does not stand in the file: it has read_file's line numbers in it. Leave them out."
	}
	lines, wanted := foldLines(content), foldLines(old)
	for len(wanted) > 0 && wanted[0] == "" {
		wanted = wanted[1:]
	}
	for len(wanted) > 0 && wanted[len(wanted)-1] == "" {
		wanted = wanted[:len(wanted)-1]
	}
	if len(wanted) == 0 {
		return "`old` is nothing but white space, and does not stand in the file like that."
	}
	best, all := equalWindows(lines, wanted)
	how := "The nearest places:"
	switch {
	case len(best) > 0 && all:
		how = "It differs in white space only from:"
	case len(best) == 0:
		best = likeLines(lines, wanted)
	}
	if len(best) == 0 {
		return "`old` does not stand in the file, and nothing like it. Read the file again."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "`old` does not stand in the file. %s", how)
	raw := strings.Split(content, "\n")
	for _, at := range best {
		for i := at; i < min(at+min(len(wanted), maxShown), len(raw)); i++ {
			fmt.Fprintf(&b, "\n%d\t%s", i+1, cutLine(strings.TrimSuffix(raw[i], "\r"), maxShownLine))
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// foldLines are the lines with all white space made one blank and none at the ends.
func foldLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return lines
}

// equalWindows finds where most lines of wanted stand in their order, best first; all says that the best has every one of them.
// The work is lines × maxWindow.
func equalWindows(lines, wanted []string) (best []int, all bool) {
	wanted = wanted[:min(len(wanted), maxWindow)]
	ids := make(map[string]int, len(wanted))
	full := 0
	for _, w := range wanted {
		if len(w) > 2 { // a lone brace says nothing
			if ids[w] == 0 {
				ids[w] = len(ids) + 1
			}
			full++
		}
	}
	want := make([]int, len(wanted))
	for i, w := range wanted {
		want[i] = ids[w]
	}
	have := make([]int, len(lines))
	for i, l := range lines {
		have[i] = ids[l]
	}
	scores := make(map[int]int)
	for i := range have {
		score := 0
		for j := 0; j < len(want) && i+j < len(have); j++ {
			if want[j] != 0 && want[j] == have[i+j] {
				score++
			}
		}
		if score > 0 {
			scores[i] = score
		}
	}
	best = topPlaces(scores)
	return best, len(best) > 0 && full > 0 && scores[best[0]] == full
}

// likeLines finds the lines most like the longest wanted one, and the windows that would have it in its place.
func likeLines(lines, wanted []string) []int {
	longest := 0
	for i, w := range wanted {
		if len(w) > len(wanted[longest]) {
			longest = i
		}
	}
	p := grams(wanted[longest])
	scores := make(map[int]int)
	for i, l := range lines {
		if like := p.like(l); like >= 0.5 {
			scores[max(i-longest, 0)] = int(like * 1000)
		}
	}
	return topPlaces(scores)
}

// topPlaces are the places with the highest scores, earlier ones first among equals; only those at least half as good as the best.
func topPlaces(scores map[int]int) []int {
	places := make([]int, 0, len(scores))
	for at := range scores {
		places = append(places, at)
	}
	sort.Slice(places, func(i, j int) bool {
		a, b := places[i], places[j]
		if scores[a] != scores[b] {
			return scores[a] > scores[b]
		}
		return a < b
	})
	places = places[:min(len(places), maxCandidates)]
	for i, at := range places {
		if 2*scores[at] < scores[places[0]] {
			return places[:i]
		}
	}
	return places
}
