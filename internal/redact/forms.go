package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"
)

// shortest is the length in characters from which on a value is blanked.
const shortest = 8

// common holds values that are used as passwords and are also ordinary words of
// code and logs: blanking them everywhere would spoil honest text and save
// nobody. In small letters, from 8 characters on.
var common = wordSet(`
	12345678 123456789 1234567890 87654321 administrator changeit changeme
	changeme123 database defaultpassword developer development dockerdocker
	dummypassword forgejo-actions gitea-actions homestead host.docker.internal
	iloveyou issuesmith localhost localhost:3306 localhost:5432 memcached mongodb1
	mysecret mysqlpassword mysql-password notsecret p@ssw0rd passw0rd password
	password1 password12 password123 password1234 passwort postgres postgresql
	postgrespassword production qwertyui qwertyuiop rabbitmq redacted rootroot
	rootpassword sailpassword secret123 secretsecret supersecret test1234 testpass
	testpassword testsecret testtest testtoken testuser undefined username
	username1 webmaster 127.0.0.1 0.0.0.0:0`)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// Ordinary reports whether a value is too short or too common to be blanked
// everywhere (product: from 8 characters on, not a common word like "password").
// One character repeated, such as a row of asterisks, is ordinary too, and so is
// what overlaps with the mark itself.
func Ordinary(value string) bool {
	return utf8.RuneCountInString(value) < shortest ||
		common[strings.ToLower(value)] ||
		isRow(value) ||
		strings.Contains(value, Mark) || strings.Contains(Mark, value)
}

func isRow(value string) bool {
	first, size := utf8.DecodeRuneInString(value)
	return strings.TrimLeft(value[size:], string(first)) == ""
}

// parts are the texts that a value stands for: itself and each of its lines,
// without what is ordinary. The frame of a key file is no secret.
func parts(value string) []string {
	var all []string
	add := func(s string) {
		if !Ordinary(s) && !strings.HasPrefix(s, "-----") {
			all = append(all, s)
		}
	}
	value = strings.TrimSpace(value) // a key file ends with a newline, and its copy may not
	if !Ordinary(value) {
		all = append(all, value) // a whole key file, frame included
	}
	if clean := Escapes(value); clean != value { // as Text sees it
		add(clean)
	}
	if strings.ContainsAny(value, "\r\n") {
		for _, line := range strings.FieldsFunc(value, func(r rune) bool { return r == '\r' || r == '\n' }) {
			add(strings.TrimSpace(line))
		}
	}
	return all
}

// forms gives every way of writing a value that is looked for, and among them
// those in base64, which programs wrap over lines.
func forms(value string) (all, wrapped []string) {
	for _, p := range parts(value) {
		all = append(all, p)
		all = append(all, urlForms(p)...)
		all = append(all, jsonForms(p)...)
		wrapped = append(wrapped, base64Forms(p)...)
	}
	return append(all, wrapped...), wrapped
}

// urlForms is the value as programs put it into addresses and form bodies. They
// differ in what they leave alone and in the case of the digits.
func urlForms(s string) []string {
	query := url.QueryEscape(s)
	component := strings.ReplaceAll(query, "+", "%20") // Python's quote_plus is query, its quote(safe="") this
	javascript := strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(component)
	all := []string{
		query, component, javascript,
		strings.ReplaceAll(component, "%2F", "/"), // Python's quote
		url.PathEscape(s),
		(&url.URL{Path: s}).EscapedPath(),
	}
	if _, password, ok := strings.Cut(url.UserPassword("", s).String(), ":"); ok {
		all = append(all, password)
	}
	for _, form := range all[:len(all):len(all)] {
		all = append(all, lowerPercent(form))
	}
	return all
}

// lowerPercent writes %2F as %2f.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}

// jsonForms is the value inside a JSON string: as Go writes it with and without
// care for HTML, as PHP does (slashes escaped), and in ASCII alone.
func jsonForms(s string) []string {
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return nil
	}
	text := strings.TrimSuffix(plain.String(), "\n")
	text = text[1 : len(text)-1]
	html, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	all := []string{text, string(html[1 : len(html)-1])}
	for _, form := range []string{text, asciiJSON(text)} {
		all = append(all, form, strings.ReplaceAll(form, "/", `\/`))
	}
	return all
}

func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		const digits = "0123456789abcdef"
		units := []rune{r}
		if r > 0xFFFF {
			r -= 0x10000
			units = []rune{0xD800 + r>>10, 0xDC00 + r&0x3FF}
		}
		for _, u := range units {
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(digits[u>>shift&0xF])
			}
		}
	}
	return b.String()
}

// base64Forms is the value in base64, alone and inside a longer text. There the
// characters depend on how many bytes stand before it, modulo three, and the
// first and last ones also on its neighbours: those are left off.
func base64Forms(s string) []string {
	std := base64.StdEncoding
	all := []string{std.EncodeToString([]byte(s)), std.WithPadding(base64.NoPadding).EncodeToString([]byte(s))}
	for before, skip := range []int{0, 2, 3} {
		text := std.EncodeToString(append(make([]byte, before), s...))
		all = append(all, text[skip:(before+len(s))*8/6])
	}
	for _, form := range all[:len(all):len(all)] {
		all = append(all, strings.NewReplacer("+", "-", "/", "_").Replace(form))
	}
	return all
}

// offMark takes off a form what the edge of a mark could complete: a value "]abc…"
// would otherwise seem to stand in "[redacted]abc…", and redacting twice would
// give another text than redacting once.
func offMark(form string) string {
	for again := true; again; {
		again = false
		for i := 1; i < len(Mark); i++ {
			if rest, ok := strings.CutPrefix(form, Mark[i:]); ok {
				form, again = rest, true
			}
			if rest, ok := strings.CutSuffix(form, Mark[:i]); ok {
				form, again = rest, true
			}
		}
	}
	return form
}
