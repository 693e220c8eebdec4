package tool

import (
	"fmt"
	"sort"
	"strings"
)

// A span is a place in a file, from (inclusive) to (exclusive) in bytes, and the text that comes there.
type span struct {
	from, to int
	text     string
	edit     int // which edit it is of, from 0
}

// locateAll finds the place of every edit, sorted by place. The refusal names everything that is wrong at once; then there are no spans.
func locateAll(content string, edits []edit) (spans []span, refusal string) {
	var wrong []string
	for i, e := range edits {
		sp, problem := locate(content, *e.Old, *e.New)
		if problem != "" {
			if len(edits) > 1 {
				problem = fmt.Sprintf("Edit %d: %s", i+1, problem)
			}
			wrong = append(wrong, problem)
			continue
		}
		sp.edit = i
		spans = append(spans, sp)
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			wrong = append(wrong, fmt.Sprintf("Edits %d and %d overlap: make them one.", spans[i-1].edit+1, spans[i].edit+1))
		}
	}
	if len(wrong) > 0 {
		if len(edits) > 1 {
			wrong = append(wrong, "None of the edits was made.")
		}
		const most = 8 << 10 // bytes; each problem is bounded, their number is not small enough
		return nil, cutMiddle(strings.Join(wrong, "\n"), most, 200, "")
	}
	return spans, ""
}

// splice puts the new texts in; everything outside the spans stays byte for byte.
func splice(content string, spans []span) string {
	var b strings.Builder
	at := 0
	for _, sp := range spans {
		b.WriteString(content[at:sp.from])
		b.WriteString(sp.text)
		at = sp.to
	}
	b.WriteString(content[at:])
	return b.String()
}

// locate finds the one place where old stands: as given, or else with its line ends turned into the file's. The new text gets the
// line ends of that place.
func locate(content, old, replacement string) (span, string) {
	if old == "" {
		return span{}, "`old` is empty: give a text that stands in the file once, and repeat it in `new` to insert beside it."
	}
	for _, wanted := range []string{old, withLineEnds(old, "\r\n"), withLineEnds(old, "\n")} {
		found := occurrences(content, wanted)
		switch len(found) {
		case 0:
			continue
		case 1:
			sp := span{from: found[0], to: found[0] + len(wanted), text: replacement}
			if end := lineEndAt(content, sp); end != "" {
				sp.text = withLineEnds(replacement, end)
			}
			return sp, ""
		}
		return span{}, "`old` stands " + several(content, found) + ": give more of the lines around it, so that it is unique."
	}
	return span{}, notThere(content, old)
}

// maxOccurrences is how many places are told.
const maxOccurrences = 10

// occurrences are the offsets where wanted begins, overlapping ones too, one more than maxOccurrences at most.
func occurrences(content, wanted string) []int {
	var found []int
	for at := 0; len(found) <= maxOccurrences; {
		i := strings.Index(content[at:], wanted)
		if i < 0 {
			break
		}
		found = append(found, at+i)
		at += i + 1
	}
	return found
}

func several(content string, found []int) string {
	many := fmt.Sprintf("%d times, in lines ", len(found))
	if len(found) > maxOccurrences {
		found = found[:maxOccurrences]
		many = fmt.Sprintf("more than %d times, in lines ", maxOccurrences)
	}
	var lines []string
	line, from := 1, 0
	for _, at := range found {
		line += strings.Count(content[from:at], "\n")
		from = at
		lines = append(lines, fmt.Sprint(line))
	}
	return many + strings.Join(lines, ", ")
}

// withLineEnds gives every line of a text the same end.
func withLineEnds(text, end string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if end == "\n" {
		return text
	}
	return strings.ReplaceAll(text, "\n", end)
}

// lineEndAt is the line end in use at a place: of the text that goes when it has one kind, else of the line it lies in, else of
// the line before. It is "" when the text that goes has both kinds: then the model saw them and says what it wants.
func lineEndAt(content string, sp span) string {
	gone := content[sp.from:sp.to]
	if all, crlf := strings.Count(gone, "\n"), strings.Count(gone, "\r\n"); all > 0 {
		switch crlf {
		case 0:
			return "\n"
		case all:
			return "\r\n"
		}
		return ""
	}
	at := strings.IndexByte(content[sp.to:], '\n')
	if at >= 0 {
		at += sp.to
	} else if at = strings.LastIndexByte(content[:sp.from], '\n'); at < 0 {
		return "\n"
	}
	if at > 0 && content[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
