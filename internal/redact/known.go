package redact

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A span is s[from:to].
type span struct{ from, to int }

// known is what is looked for, ready to be searched. It never changes.
type known struct {
	plain   *net // all forms
	wrapped *net // the forms that programs break over lines
}

func newKnown(values []string) *known {
	seen := map[string]bool{}
	words := func(forms []string) []word {
		var all []word
		for _, f := range forms {
			f, _ = squeeze(f, false)
			// What is left of a form made of brackets may be too short to mean anything.
			if f = offMark(f); len(f) >= shortest-2 && !strings.Contains(Mark, f) {
				all = append(all, word{text: f, kinds: 1})
			}
		}
		return all
	}
	var all, wrapped []word
	for _, v := range values {
		if seen[v] {
			continue
		}
		seen[v] = true
		a, w := forms(v)
		all = append(all, words(a)...)
		wrapped = append(wrapped, words(w)...)
	}
	return &known{plain: newNet(false, all), wrapped: newNet(false, wrapped)}
}

// spans finds every known value in s, overlapping ones joined: of two values
// that share characters nothing of either is left.
func (k *known) spans(s string) []span {
	if k.plain.empty() {
		return nil
	}
	spans := k.plain.spans(s, false)
	if wraps(s) {
		spans = join(append(spans, k.wrapped.spans(s, true)...))
	}
	return spans
}

// spans finds the words of the net in s, over invisible characters and, when
// asked, over line breaks and the indentation after them.
func (n *net) spans(s string, breaks bool) []span {
	text, gaps := squeeze(s, breaks)
	var spans []span
	n.scan(text, func(end int, at *node) {
		from := end - int(at.length)
		for len(spans) > 0 && spans[len(spans)-1].to >= from {
			from = min(from, spans[len(spans)-1].from)
			spans = spans[:len(spans)-1]
		}
		spans = append(spans, span{from, end})
	})
	if len(gaps) > 0 {
		for i, x := range spans {
			spans[i] = span{original(gaps, x.from), original(gaps, x.to-1) + 1}
		}
	}
	return spans
}

// join sorts spans and makes one of those that touch.
func join(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := spans[:0]
	for _, x := range spans {
		if x.from >= x.to {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].to >= x.from {
			out[last].to = max(out[last].to, x.to)
			continue
		}
		out = append(out, x)
	}
	return out
}

// A gap says that from offset at on of the squeezed text, lost bytes have been
// taken out before.
type gap struct{ at, lost int }

func original(gaps []gap, offset int) int {
	i := sort.Search(len(gaps), func(i int) bool { return gaps[i].at > offset })
	if i == 0 {
		return offset
	}
	return offset + gaps[i-1].lost
}

// squeeze takes out the invisible characters, which can stand inside a value
// without anyone seeing that it is not the value, and line breaks when asked.
func squeeze(s string, breaks bool) (string, []gap) {
	if !breaks && isASCII(s) {
		return s, nil
	}
	var (
		b       strings.Builder
		gaps    []gap
		lost    int
		kept    int // s[:kept] is in b or lost
		newline bool
	)
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		isBreak := breaks && (r == '\n' || r == '\r' || newline && (r == ' ' || r == '\t'))
		newline = isBreak
		if isBreak || invisible(r) {
			b.WriteString(s[kept:i])
			lost += size
			kept = i + size
			if len(gaps) > 0 && gaps[len(gaps)-1].at == b.Len() {
				gaps[len(gaps)-1].lost = lost
			} else {
				gaps = append(gaps, gap{b.Len(), lost})
			}
		}
		i += size
	}
	if lost == 0 {
		return s, nil
	}
	b.WriteString(s[kept:])
	return b.String(), gaps
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// invisible is true for format characters (zero width, bidirectional controls,
// soft hyphen, tags) and variation selectors.
func invisible(r rune) bool {
	return r >= 0xAD && (r == 0x034F || unicode.In(r, unicode.Cf, unicode.Variation_Selector))
}

// wrapFrom is the least length of a line that counts as wrapped base64; the
// usual widths are 60, 64 and 76.
const wrapFrom = 40

// wraps reports whether s may hold base64 text that goes on in the next line.
func wraps(s string) bool {
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '\n')
		if i < 0 {
			return false
		}
		line := strings.TrimSuffix(s[at:at+i], "\r")
		at += i + 1
		if len(line) >= wrapFrom && len(s) > at && base64Tail(line) >= wrapFrom {
			return true
		}
	}
}

// base64Tail counts the base64 characters at the end of a line, up to wrapFrom.
func base64Tail(line string) int {
	n := 0
	for n < min(len(line), wrapFrom) && isBase64(line[len(line)-1-n]) {
		n++
	}
	return n
}

func isBase64(c byte) bool {
	return isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
