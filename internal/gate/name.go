package gate

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// fold maps a name to what a file system that ignores case (Windows, macOS) takes it for: its
// composed form with Unicode case folding. Two names with the same fold are one file there.
func fold(name string) string {
	if isASCII(name) {
		return strings.ToLower(name)
	}
	// A Caser may hold state, so each call has its own.
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(name)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plain folds a name after taking out what HFS+ ignores in names (zero-width and
// direction characters, as git's is_hfs_dotgit lists them) and the blanks and dots
// that Windows drops at the end of a component: what a protected name is compared with.
func plain(path string) string {
	if !isASCII(path) {
		path = strings.Map(func(r rune) rune {
			if ignorable(r) {
				return -1
			}
			return r
		}, path)
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if t := strings.TrimRight(p, ". "); t != "" {
			parts[i] = t
		}
	}
	return fold(strings.Join(parts, "/"))
}

// ignorable lists the code points that HFS+ leaves out when it compares names.
func ignorable(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff
}

// shown is a path as it may stand in a message: quoted when it holds anything that does not
// print, so that a file's name can neither start a line of its own nor turn the text round.
func shown(path string) string {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}
