package redact

import (
	"regexp"
	"strings"
	"sync"
)

// keyFrame starts every private key in PEM and PGP form.
const keyFrame = "-----BEGIN "

var keyFrameLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----`)
})

// keyBody finds the body of the private key whose frame s starts with: its offset
// and length, 0 when there is no key material. It is found in files, in diffs, in
// quotations and in string literals with \n, with or without its end; open tells
// that the text ended within it.
func keyBody(s string) (offset, length int, open bool) {
	offset = len(keyFrameLine().FindString(s))
	if offset == 0 {
		return 0, 0, false
	}
	body := s[offset:]
	at, end := 0, 0
	for {
		at += separators(body[at:])
		rest := body[at:]
		if n := keyHeader(rest); n > 0 {
			at += n
			continue
		}
		n := 0
		for n < len(rest) && (isAlnum(rest[n]) || rest[n] == '+' || rest[n] == '/' || rest[n] == '=') {
			n++
		}
		if n == 0 {
			return offset, end, rest == ""
		}
		// A short word is the last line of a key, or it is code between two frames.
		after := rest[n:]
		after = after[separators(after):]
		if end == 0 && (n < 16 || !opaque(rest[:n])) || n < 16 && after != "" && !strings.HasPrefix(after, "-----END") {
			return offset, end, false
		}
		at += n
		end = at
	}
}

// separators counts what stands between the lines of a key: white space, line
// breaks written as \n, marks of diffs and quotations, string concatenation.
func separators(s string) int {
	i := 0
	for i < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n>|+\"'`,.*#;", s[i]) >= 0:
			i++
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`nrt\"`, s[i+1]) >= 0:
			i += 2
		case s[i] == '-' && !strings.HasPrefix(s[i:], "-----"):
			i++
		default:
			return i
		}
	}
	return i
}

// keyHeader is the length of a header line of an encrypted or PGP key.
func keyHeader(s string) int {
	for _, name := range []string{"Proc-Type:", "DEK-Info:", "Comment:", "Version:", "Hash:", "Charset:"} {
		if strings.HasPrefix(s, name) {
			if i := strings.IndexAny(s, "\n\\"); i >= 0 {
				return i
			}
			return len(s)
		}
	}
	return 0
}

// openKey is where the private key starts that s ends within, -1 when it does not.
func openKey(s string) int {
	i := strings.LastIndex(s, keyFrame)
	if i < 0 {
		return -1
	}
	if _, _, open := keyBody(s[i:]); open {
		return i
	}
	return -1
}
