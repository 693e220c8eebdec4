package redact

import (
	"net/netip"
	"regexp"
	"strings"
	"sync"
)

var mailAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
})

// personalSpans finds e-mail and IP addresses. What names no person or machine
// stays: loopback, unspecified, the user git of an ssh address.
func personalSpans(s string) []span {
	var spans []span
	if strings.Contains(s, "@") {
		for _, m := range mailAddress().FindAllStringIndex(s, -1) {
			if !strings.HasPrefix(strings.TrimLeft(s[m[0]:m[1]], "+-"), "git@") {
				spans = append(spans, span{m[0], m[1]})
			}
		}
	}
	// A whole run of the characters that an address may have is judged, so that a
	// part of a version, a time or a hash is not taken for one. A run that touches a
	// mark is such a part.
	for i := 0; i < len(s); i++ {
		from := i
		for i < len(s) && (isAlnum(s[i]) || s[i] == '_' || s[i] == '.' || s[i] == ':') {
			i++
		}
		if a, n := addressIn(s[from:i]); n > 0 && !strings.HasSuffix(s[:from], Mark) && !strings.HasPrefix(s[i:], Mark) {
			spans = append(spans, span{from + a, from + a + n})
		}
	}
	return spans
}

// addressIn is where in a run the address is, apart from a port, a name before a
// colon and a full stop behind it; length 0 when there is none.
func addressIn(run string) (offset, length int) {
	run = strings.TrimRight(run, ".")
	if len(run) < 6 || len(run) > 64 || !strings.ContainsAny(run, "0123456789") {
		return 0, 0
	}
	if isAddress(run) {
		return 0, len(run)
	}
	before, after, _ := strings.Cut(run, ":")
	switch {
	case strings.Contains(after, ":"): // neither a port nor name:address
	case isAddress(before):
		return 0, len(before)
	case isAddress(after):
		return len(before) + 1, len(after)
	}
	return 0, 0
}

func isAddress(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && !addr.IsLoopback() && !addr.IsUnspecified()
}
