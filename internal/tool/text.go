package tool

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxResult bounds every result, in bytes; each tool keeps below it by itself.
const maxResult = 40 << 10

// printable replaces invalid UTF-8 and drops NUL bytes, which JSON servers and databases choke on.
func printable(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// isBinary decides as git does: a NUL byte among the first 8000.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}

// headOf and tailOf return at most n bytes of an end of s, cut between runes.
func headOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func tailOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}

// cutMiddle keeps head and tail bytes of s with a mark between them that says how much is missing
// and, when where is given, where it is.
func cutMiddle(s string, head, tail int, where string) string {
	const slack = 200 // cutting less than the mark's own length gains nothing
	if len(s) <= head+tail+slack {
		return s
	}
	a, b := headOf(s, head), tailOf(s, tail)
	return fmt.Sprintf("%s\n[… %d bytes cut%s …]\n%s", a, len(s)-len(a)-len(b), where, b)
}

// cutLine keeps at most n bytes of a line and says what is missing.
func cutLine(s string, n int) string {
	if len(s) <= n {
		return s
	}
	a := headOf(s, n)
	return fmt.Sprintf("%s[… %d bytes]", a, len(s)-len(a))
}
