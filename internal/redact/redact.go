// Package redact is the one place where secrets are taken out of text. Every
// exit of the program (log, comment, pull request, transcript, feedback, error,
// model request) goes through a Redactor.
//
// Two things are taken out. Known values are those of this run; they are found
// exactly, in every form a program is likely to print them in. Patterns are
// guesses at what a secret looks like, for the secrets that the run does not
// know; they are only for text that a person reads.
package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark stands where something was taken out.
const Mark = "[redacted]"

// lineLimit is the length in bytes at which a log line is cut.
const lineLimit = 4000

// A Redactor takes known secret values and secret-shaped text out of strings.
// It is safe for concurrent use. The zero value is not usable; call New.
type Redactor struct {
	known    atomic.Pointer[known] // swapped whole, so that readers never wait
	personal atomic.Bool

	mu     sync.Mutex // held while adding
	values map[string]bool
}

// New returns a Redactor that knows the given values of this run.
func New(values ...string) *Redactor {
	r := &Redactor{values: map[string]bool{}}
	r.known.Store(newKnown(nil))
	r.Add(values...)
	return r
}

// Add makes further values known: whole, URL-encoded, JSON-escaped, base64 (all
// three alignments) and each line of a multi-line value. Values shorter than 8
// characters and common words (see Ordinary) are ignored.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	grown := false
	for _, v := range values {
		if r.values[v] || len(parts(v)) == 0 {
			continue
		}
		r.values[v], grown = true, true
	}
	if !grown {
		return
	}
	all := make([]string, 0, len(r.values))
	for v := range r.values {
		all = append(all, v)
	}
	slices.Sort(all)
	r.known.Store(newKnown(all))
}

// Values replaces known values only: for what is sent to the model and recorded
// of it, where a pattern's guess could not be edited back.
func (r *Redactor) Values(s string) string {
	return blank(s, r.known.Load().spans(s))
}

// Text replaces known values and secret-shaped patterns and strips terminal
// escapes: for everything a person reads. It is linear in len(s) and idempotent.
func (r *Redactor) Text(s string) string {
	s = r.Values(Escapes(s)) // escapes first: one inside a value would hide it
	return blank(s, shapeSpans(s, r.personal.Load()))
}

// Line is Text for one line of the log: cut in the middle at 4,000 bytes.
func (r *Redactor) Line(s string) string { return Cut(r.Text(s), lineLimit) }

// Holds reports whether a known value occurs in s in any of its forms, terminal
// escapes and invisible characters between its own left aside.
func (r *Redactor) Holds(s string) bool {
	k := r.known.Load()
	if len(k.spans(s)) > 0 {
		return true
	}
	clean := Escapes(s)
	return clean != s && len(k.spans(clean)) > 0
}

// Personal switches the redaction of e-mail and IP addresses (redact-personal).
func (r *Redactor) Personal(on bool) { r.personal.Store(on) }

// blank replaces each span of s, which are in order and apart, by the mark.
func blank(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	at := 0
	for _, x := range spans {
		b.WriteString(s[at:x.from])
		b.WriteString(Mark)
		at = x.to
	}
	b.WriteString(s[at:])
	return b.String()
}
