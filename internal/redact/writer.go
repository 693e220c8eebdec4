package redact

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// heldLimit is how many bytes of an unfinished line, key or value a LineWriter
// keeps before it gives them out.
const heldLimit = 64 << 10

// A LineWriter is Text for a stream: whole lines are redacted and passed on as
// they come. A line is held back while a known value of several lines, a wrapped
// base64 text of one or a private key goes on in it. It is safe for concurrent use.
type LineWriter struct {
	r *Redactor
	w io.Writer

	mu    sync.Mutex
	strip stripper
	held  []byte // clean text that is not yet written
	err   error
}

// Writer returns a LineWriter that writes to w, one Write for one or more lines.
// Close it to write the last line; w is not closed.
func (r *Redactor) Writer(w io.Writer) *LineWriter { return &LineWriter{r: r, w: w} }

// Write takes text in any pieces. The first error of the writer below is kept.
func (lw *LineWriter) Write(p []byte) (int, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for rest := p; len(rest) > 0 && lw.err == nil; {
		piece := rest[:min(len(rest), heldLimit)] // so that memory stays bounded
		rest = rest[len(piece):]
		before := len(lw.held)
		lw.held = lw.strip.add(lw.held, string(piece))
		k := lw.r.known.Load()
		if strings.Contains(string(lw.held[before:]), "\n") {
			lw.flush(k.lines(string(lw.held)))
		}
		if len(lw.held) > heldLimit {
			lw.flush(k.within(string(lw.held)))
		}
	}
	if lw.err != nil {
		return 0, lw.err
	}
	return len(p), nil
}

// Close writes what is held.
func (lw *LineWriter) Close() error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.held = lw.strip.end(lw.held)
	lw.flush(len(lw.held))
	return lw.err
}

func (lw *LineWriter) flush(n int) {
	if n == 0 || lw.err != nil {
		return
	}
	if _, err := io.WriteString(lw.w, lw.r.Text(string(lw.held[:n]))); err != nil {
		lw.err = fmt.Errorf("write redacted text: %w", err)
	}
	lw.held = append(lw.held[:0], lw.held[n:]...)
}

// lines is the length of the whole lines of s after which no known value and no
// private key is under way.
func (k *known) lines(s string) int {
	var ends []int
	k.follow(s, func(end int, plain, wrapped int32) {
		if s[end-1] == '\n' && plain == 0 && (wrapped == 0 || base64Tail(strings.TrimRight(s[:end], "\n")) < wrapFrom) {
			ends = append(ends, end)
		}
	})
	for len(ends) > 0 {
		last := ends[len(ends)-1]
		start := openKey(s[:last])
		if start < 0 {
			return last
		}
		for len(ends) > 0 && ends[len(ends)-1] > start {
			ends = ends[:len(ends)-1]
		}
	}
	return 0
}

// within is where a line that is too long to hold can be divided: in no known
// value and before one that may be under way.
func (k *known) within(s string) int {
	var plain, wrapped int32
	k.follow(s, func(_ int, p, w int32) { plain, wrapped = p, w })
	if base64Tail(strings.TrimRight(s, "\n")) < wrapFrom {
		wrapped = 0
	}
	at := len(s)
	for visible := max(plain, wrapped); visible > 0 && at > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
		if !invisible(r) {
			visible -= int32(size) //nolint:gosec // 1 to 4
		}
	}
	spans := k.spans(s)
	outside := func(at int) int {
		for i := len(spans) - 1; i >= 0; i-- {
			if spans[i].from < at && at < spans[i].to {
				return spans[i].from
			}
		}
		return at
	}
	at = outside(at)
	// Between two words, where it can be, so that no pattern is cut.
	if i := strings.LastIndexAny(s[:at], " \t\n") + 1; i > at/2 {
		if i = outside(i); i > 0 {
			return i
		}
	}
	if at > 0 {
		return at
	}
	return len(s) // one value over and over, all of it blanked
}

// follow calls visit after each visible byte of s with how many bytes of a form
// are under way there, in the text as it is and without its line breaks.
func (k *known) follow(s string, visit func(end int, plain, wrapped int32)) {
	var plain, wrapped int32
	indent := false
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		if invisible(r) {
			i += size
			continue
		}
		indent = r == '\n' || indent && (r == ' ' || r == '\t')
		for ; size > 0; size-- {
			plain = k.plain.step(plain, s[i])
			if !indent {
				wrapped = k.wrapped.step(wrapped, s[i])
			}
			i++
			visit(i, k.plain.nodes[plain].depth, k.wrapped.nodes[wrapped].depth)
		}
	}
}
