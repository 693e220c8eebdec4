package redact

import (
	"regexp"
	"strings"
	"sync"
)

// assignmentTriggers end the name of a key whose value is a secret.
var assignmentTriggers = []string{
	"password", "passwd", "passphrase", "secret", "token",
	"api_key", "api-key", "apikey", "private_key", "private-key", "privatekey",
	"access_key", "access-key", "accesskey", "secret_key", "secret-key", "secretkey",
	"app_key", "app-key", "appkey",
}

// An assignment is a key and its value: key=value, key: value, "key": "value".
type assignment struct {
	key, sign, value string
	quoted           bool
	spaced           bool // blanks round the sign
}

// assignmentAt parses the assignment whose key ends at offset end of a line, and
// finds its value. Most places where a key "token" gets a value are code, and text
// is read by people: what could be code stays. ok is false when there is no
// assignment; read is how much of the line has been looked at.
func assignmentAt(line string, end int) (value span, read int, ok bool) {
	at := end
	skip := func(set string, limit int) bool {
		from := at
		for at < len(line) && at-from < limit && strings.IndexByte(set, line[at]) >= 0 {
			at++
		}
		return at > from
	}
	skip(`\`, len(line))
	skip("\"'`", 1)
	skip("]", 1)
	blank := skip(" \t", len(line))
	signAt := at
	switch rest := line[at:]; {
	case strings.HasPrefix(rest, "=>"), strings.HasPrefix(rest, ":="):
		at += 2
	case strings.HasPrefix(rest, "="), strings.HasPrefix(rest, ":"):
		at++
	default:
		return span{}, at, false
	}
	a := assignment{sign: line[signAt:at]}
	a.spaced = skip(" \t", len(line)) || blank
	quoteAt := at
	skip(`\`, len(line))
	if skip("\"'`", 1) {
		a.value = quotedValue(line[at:], line[quoteAt:at])
		a.quoted = a.value != ""
	} else {
		at = quoteAt
	}
	read = at
	start := end
	for start > 0 && isKeyByte(line[start-1]) {
		start--
	}
	a.key = line[start:end]
	if !a.quoted {
		inQuery := start > 0 && strings.IndexByte("?&", line[start-1]) >= 0
		a.value = bareValue(line[at:], inQuery)
		read += len(a.value)
	}
	return span{at, at + len(a.value)}, read, a.secret()
}

func isKeyByte(c byte) bool { return isAlnum(c) || c == '_' || c == '.' || c == '-' }

// quotedValue is what stands before the closing quote, "" when there is none.
func quotedValue(s, quote string) string {
	char := quote[len(quote)-1]
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == char:
			return strings.TrimRight(s[:i], `\`)
		case s[i] == '\\' && len(quote) == 1:
			i++
		}
	}
	return ""
}

// bareValue is what stands before the next blank or delimiter. A bracket that
// opens belongs to it, and makes it code.
func bareValue(s string, inQuery bool) string {
	for i := range len(s) {
		switch s[i] {
		case '(', '{', '[', '<':
			return s[:i+1]
		case '&':
			if !inQuery {
				continue
			}
			return s[:i]
		case ' ', '\t', ',', ';', '"', '\'', '`', ')', '}', ']', '>', '|':
			return s[:i]
		}
	}
	return s
}

// memberOf is code that names a value: config.token2, App::Secret1.
var memberOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_]\w*(?:(?:\.|::|\?\.|->)[A-Za-z_]\w*)+$`)
})

// secret judges whether the value is one, and not code, a type, a rule, a path,
// a placeholder or prose.
func (a assignment) secret() bool {
	v := a.value
	if Ordinary(v) || strings.Contains(v, Mark) || a.code() || isPath(v) || isPlaceholder(v) {
		return false
	}
	l := lookAt(strings.TrimRight(v, "?!")) // as after a word of prose
	switch {
	case l.letters == 0: // numbers, dates, versions
		return a.environment()
	case l.digits == 0 && l.symbols == 0: // words, names
		return a.environment() || len(v) >= 16 && l.uppers*3 >= len(v) && l.uppers < l.letters
	case l.others == 0 && !a.quoted && (a.spaced || a.sign == ":="): // a variable, perhaps
		return l.groups >= 2 || l.digits >= 4
	}
	return true
}

// code is true for what has the characters of code or of an address in it.
func (a assignment) code() bool {
	v := a.value
	if strings.ContainsAny(v, "(){}<>|`\\ \t") || strings.IndexByte("$&*/=.%", v[0]) >= 0 || strings.Contains(v, "://") {
		return true
	}
	return !a.quoted &&
		(strings.ContainsAny(v, "[]") || strings.IndexByte("!@#?-+", v[0]) >= 0 || memberOf().MatchString(v))
}

// environment is true for KEY=value and, in YAML, KEY: value, where a plain word
// is a value and not code.
func (a assignment) environment() bool {
	return !a.quoted && a.key == strings.ToUpper(a.key) && (a.sign == "=" && !a.spaced || a.sign == ":")
}

// isPath is true for a/b.ext.
func isPath(v string) bool {
	slash, dot := strings.LastIndexByte(v, '/'), strings.LastIndexByte(v, '.')
	return slash >= 0 && dot > slash && len(v)-dot <= 6
}

func isPlaceholder(v string) bool {
	v = strings.ToLower(v)
	for _, p := range []string{"example", "placeholder", "changeme", "change-me", "change_me", "your-", "your_", "xxxx", "***", "...", "…"} {
		if strings.Contains(v, p) {
			return true
		}
	}
	return false
}
