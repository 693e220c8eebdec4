package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"issuesmith/internal/redact"
)

// maxLine is the longest line that is written and read.
const maxLine = 64 << 20

// A Writer appends events to a file. It is safe for concurrent use. Methods on a
// nil Writer do nothing.
type Writer struct {
	path   string
	redact *redact.Redactor
	limit  int // of a line

	mu   sync.Mutex
	file *os.File // nil once closed
	last time.Time
	err  error // the first one that the file gave
}

// Create makes the file (0600, parents 0700) and fails if it exists.
func Create(path string, r *redact.Redactor) (*Writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the transcript's folder: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the transcript: %w", err)
	}
	return &Writer{path: path, redact: r, limit: maxLine, file: file}, nil
}

// Path is where the record lies; "" for nil.
func (w *Writer) Path() string {
	if w == nil {
		return ""
	}
	return w.path
}

// Write appends one event. Every string inside data has its known secret values
// taken out (redact.Values); for kinds that a person alone reads (gate, publish,
// note, end) patterns as well. The first write error is kept and returned by every
// later call and by Close, so a full disk is noticed; data that cannot be written
// as JSON, or as a line of at most 64 MiB, is an error of that call alone.
func (w *Writer) Write(kind Kind, attempt, step int, data any) error {
	if w == nil {
		return nil
	}
	clean := w.redact.Values
	switch kind {
	case KindGate, KindPublish, KindNote, KindEnd:
		clean = w.redact.Text
	}
	payload, err := encode(data)
	if err != nil {
		return fmt.Errorf("record %s: %w", kind, err)
	}
	payload = mask(payload, clean)

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.file == nil {
		return fmt.Errorf("record %s: the transcript is closed", kind)
	}
	now := time.Now().UTC()
	if now.Before(w.last) { // the clock was set back
		now = w.last
	}
	line, err := encode(Event{Time: now, Kind: kind, Attempt: attempt, Step: step, Data: payload})
	if err != nil {
		return fmt.Errorf("record %s: %w", kind, err)
	}
	if len(line) > w.limit {
		return fmt.Errorf("record %s: %d bytes are more than a line may have (%d)", kind, len(line), w.limit)
	}
	w.last = now
	// One call of write(2) for the line: whatever kills the process, what is in the
	// file are whole lines and at most one cut one, at the end.
	if _, err := w.file.Write(line); err != nil {
		w.err = fmt.Errorf("write the transcript, which is incomplete from here on: %w", err)
	}
	return w.err
}

// Close closes the file. Every event has reached it already.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		if err := w.file.Close(); err != nil && w.err == nil {
			w.err = fmt.Errorf("close the transcript: %w", err)
		}
		w.file = nil
	}
	return w.err
}

// encode is json.Marshal without HTML escapes, which make code hard to read, and
// with a newline behind.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
