// Package redact is the one place where secrets are taken out of text. Every
// exit of the program (log, comment, pull request, transcript, feedback, error,
// model request) goes through a Redactor.
package redact

// A Redactor takes known secret values and secret-shaped text out of strings.
// It is safe for concurrent use. The zero value is not usable; call New.
type Redactor struct{}

// New returns a Redactor that knows the given values of this run.
func New(values ...string) *Redactor { panic("not built") }

// Add makes further values known: whole, URL-encoded, base64 (all three
// alignments) and each line of a multi-line value. Values shorter than 8
// characters and common words (see Ordinary) are ignored.
func (r *Redactor) Add(values ...string) { panic("not built") }

// Values replaces known values only: for what is sent to the model and recorded
// of it, where a pattern's guess could not be edited back.
func (r *Redactor) Values(s string) string { panic("not built") }

// Text replaces known values and secret-shaped patterns and strips terminal
// escapes: for everything a person reads. It is linear in len(s) and idempotent.
func (r *Redactor) Text(s string) string { panic("not built") }

// Holds reports whether a known value occurs in s in any of its forms.
func (r *Redactor) Holds(s string) bool { panic("not built") }

// Personal switches the redaction of e-mail and IP addresses (redact-personal).
func (r *Redactor) Personal(on bool) { panic("not built") }

// Ordinary reports whether a value is too short or too common to be blanked
// everywhere (product: from 8 characters on, not a common word like "password").
func Ordinary(value string) bool { panic("not built") }

// Cut shortens s to at most limit bytes of valid UTF-8 by taking out the middle and
// leaving a mark "[… N bytes cut …]" there.
func Cut(s string, limit int) string { panic("not built") }

// Escapes strips terminal escape sequences and control characters other than
// newline and tab, and replaces invalid UTF-8.
func Escapes(s string) string { panic("not built") }
