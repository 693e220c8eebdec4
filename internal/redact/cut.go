package redact

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Cut shortens s to at most limit bytes of valid UTF-8 by taking out the middle and
// leaving a mark "[… N bytes cut …]" there. A limit too small for the mark gives
// the head alone. Redact before cutting: a value cut in two is no longer found.
func Cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= limit {
		return s
	}
	mark := func(n int) string { return fmt.Sprintf("[… %d bytes cut …]", n) }
	room := limit - len(mark(len(s)))
	if room < 0 {
		return s[:boundary(s, max(limit, 0))]
	}
	head := boundary(s, (room+1)/2)
	tail := len(s) - room/2
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + mark(tail-head) + s[tail:]
}

// boundary is the last start of a character at or before i.
func boundary(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
