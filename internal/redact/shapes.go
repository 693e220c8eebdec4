package redact

import (
	"math/bits"
	"regexp"
	"strings"
	"sync"
)

// A shape is what secrets of one sort look like. It is searched only in lines
// where one of its triggers stands, so that ordinary text costs one pass.
type shape struct {
	triggers []string // in small letters
	find     func(line string) []span
	follows  func(rest string) bool // a quick look at what follows the trigger; nil: always
}

// shapes are linear in the text: Go's regular expressions are, and each line is
// searched once for each shape. A pattern never consumes what follows the secret,
// so that the rest is judged the same way once the secret is gone.
func shapes() []shape {
	const scheme = `(?i)\b[a-z][a-z0-9+.-]*://`
	const authorization = `(?i)\bauthorization\\*["']?\s*(?:=>|[:=,])\s*\\*["']?`
	return []shape{
		{[]string{"authorization"}, group(authorization+
			`(?:bearer|basic|token|digest|apikey|negotiate)\s+([A-Za-z0-9._~+/=:-]{8,})`, credential), nil},
		{[]string{"authorization"}, group(authorization+`([A-Za-z0-9._~+/=:-]{8,})`, opaque), nil},
		{[]string{"bearer "}, group(`(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{16,})`, opaque), nil},
		{[]string{"://"}, group(scheme+`[^\s/:@"'<>]*:([^\s/"'<>]+)@`, notTemplate), hasUser},
		{[]string{"://"}, group(scheme+`([A-Za-z0-9_-]{20,})@`, opaque), hasUser}, // a token as the user
		{[]string{"@tcp(", "@unix("}, group(`[\w.-]+:([^\s"'@]+)@(?:tcp|unix)\(`, notTemplate), nil},
		{[]string{"sk-"}, group(`\b(sk-[A-Za-z0-9_-]{20,})`, mixed), nil}, // OpenAI, sk-ant-, sk-or-, DeepSeek
		{[]string{"sk_", "rk_"}, group(`\b([sr]k_(?:live|test)_[A-Za-z0-9]{16,})`, nil), nil},
		{[]string{"aiza"}, group(`\b(AIza[A-Za-z0-9_-]{30,})`, nil), nil},
		{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, group(`\b(gh[pousr]_[A-Za-z0-9]{20,})`, nil), nil},
		{[]string{"github_pat_"}, group(`\b(github_pat_[A-Za-z0-9_]{20,})`, nil), nil},
		{[]string{"glpat-"}, group(`\b(glpat-[A-Za-z0-9_-]{16,})`, nil), nil},
		{[]string{"xox"}, group(`\b(xox[abeprs]-[A-Za-z0-9-]{10,})`, mixed), nil},
		{[]string{"akia", "asia"}, group(`\b((?:AKIA|ASIA)[A-Z0-9]{16})\b`, nil), nil},
		{[]string{"hf_", "gsk_", "npm_"}, group(`\b((?:hf|gsk|npm)_[A-Za-z0-9]{20,})`, mixed), nil},
		{[]string{"pypi-agei"}, group(`\b(pypi-AgEI[A-Za-z0-9_-]{16,})`, nil), nil},
		{[]string{"sg."}, group(`\b(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})`, nil), nil},
		{[]string{"eyj"}, group(`\b(eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){1,4})`, nil), nil}, // JWT, JWE
	}
}

// group gives the first group of each match whose text is accepted.
func group(pattern string, accept func(secret string) bool) func(string) []span {
	re := regexp.MustCompile(pattern)
	return func(line string) []span {
		var spans []span
		for _, m := range re.FindAllStringSubmatchIndex(line, -1) {
			if accept == nil || accept(line[m[2]:m[3]]) {
				spans = append(spans, span{m[2], m[3]})
			}
		}
		return spans
	}
}

// A shapeFinder finds all shapes; bit i of a word's kinds is shape i.
type shapeFinder struct {
	shapes []shape
	net    *net
}

// Two shapes are no regular expressions.
const (
	frameKind  = 1 << 31 // the first line of a private key, which goes on over lines
	assignKind = 1 << 30 // the end of the key of an assignment
)

// finder is made at the first use: a command that redacts nothing does not pay
// for it.
var finder = sync.OnceValue(func() *shapeFinder {
	f := &shapeFinder{shapes: shapes()}
	words := []word{{text: strings.ToLower(keyFrame), kinds: frameKind}}
	for _, t := range assignmentTriggers {
		words = append(words, word{text: t, kinds: assignKind})
	}
	for i, sh := range f.shapes {
		for _, t := range sh.triggers {
			words = append(words, word{text: t, kinds: 1 << i})
		}
	}
	f.net = newNet(true, words)
	return f
})

// shapeSpans finds everything in s that looks like a secret. All shapes see the
// same text; what they find is joined.
func shapeSpans(s string, personal bool) []span {
	f := &shapeSearch{shapeFinder: finder(), s: s, to: -1}
	f.net.scan(s, f.hit)
	f.searchLine()
	if personal {
		f.spans = append(f.spans, personalSpans(s)...)
	}
	return join(f.spans)
}

// A shapeSearch is one pass over a text.
type shapeSearch struct {
	*shapeFinder
	s        string
	from, to int    // the line that the last trigger stood in
	kinds    uint32 // the shapes to search it for
	judged   int    // assignments up to here have been judged
	keyEnd   int    // of the last private key
	spans    []span
}

// hit takes one trigger.
func (f *shapeSearch) hit(end int, at *node) {
	if end > f.to {
		f.searchLine()
		f.from = strings.LastIndexByte(f.s[:end], '\n') + 1
		f.to = len(f.s)
		if i := strings.IndexByte(f.s[end:], '\n'); i >= 0 {
			f.to = end + i
		}
	}
	if start := end - len(keyFrame); at.kinds&frameKind != 0 && start >= f.keyEnd {
		offset, length, _ := keyBody(f.s[start:])
		f.keyEnd = start + offset + length
		f.spans = append(f.spans, span{start + offset, f.keyEnd})
	}
	if at.kinds&assignKind != 0 && end > f.judged {
		value, read, ok := assignmentAt(f.s[f.from:f.to], end-f.from)
		f.judged = max(f.judged, f.from+read)
		if ok {
			f.spans = append(f.spans, span{f.from + value.from, f.from + value.to})
		}
	}
	for kinds := at.kinds &^ (frameKind | assignKind | f.kinds); kinds != 0; kinds &= kinds - 1 {
		i := bits.TrailingZeros32(kinds)
		if follows := f.shapes[i].follows; follows == nil || follows(f.s[end:f.to]) {
			f.kinds |= 1 << i
		}
	}
}

// searchLine searches the line for the shapes whose triggers stand in it.
func (f *shapeSearch) searchLine() {
	for ; f.kinds != 0; f.kinds &= f.kinds - 1 {
		for _, x := range f.shapes[bits.TrailingZeros32(f.kinds)].find(f.s[f.from:f.to]) {
			f.spans = append(f.spans, span{f.from + x.from, f.from + x.to})
		}
	}
}

// hasUser reports whether an address goes on with a user.
func hasUser(rest string) bool {
	i := strings.IndexAny(rest, "@/ \t\"'<>")
	return i >= 0 && rest[i] == '@'
}

// looks counts what a text is made of.
type looks struct {
	letters, uppers, digits, groups int // groups: of digits
	symbols                         int // that stand in passwords rather than in names and paths
	others                          int // all that is no letter, digit or underscore
}

func lookAt(s string) looks {
	var l looks
	for i := range len(s) {
		c := s[i]
		switch {
		case isDigit(c):
			l.digits++
			if i == 0 || !isDigit(s[i-1]) {
				l.groups++
			}
		case isAlnum(c) || c >= 0x80:
			l.letters++
			if 'A' <= c && c <= 'Z' {
				l.uppers++
			}
		case c != '_':
			l.others++
			if strings.IndexByte("!@#$%^&*+=~?", c) >= 0 {
				l.symbols++
			}
		}
	}
	return l
}

// opaque is true for what no person would write as a word or a name: many
// digits, or capitals and digits all over.
func opaque(s string) bool {
	l := lookAt(s)
	return l.digits >= 4 || l.groups >= 3 || (l.uppers+l.digits)*10 >= len(s)*3 && l.letters > l.uppers
}

// mixed is true for what is not only small letters, as a class of CSS would be.
func mixed(s string) bool {
	l := lookAt(s)
	return l.digits > 0 || l.uppers > 0
}

// credential is what follows the scheme in an authorization header.
func credential(s string) bool { return len(s) >= 16 || mixed(s) }

// notTemplate is false where code or a document names the place of a password.
func notTemplate(s string) bool {
	return !strings.Contains(s, Mark) && !strings.ContainsAny(s, "{}<>`") &&
		!strings.HasPrefix(s, "$") && (!strings.HasPrefix(s, "%") || len(s) != 2) &&
		strings.Trim(s, "*.xX") != ""
}
