package actions

import (
	"io"
	"sync/atomic"

	"issuesmith/internal/redact"
)

// foreignLimit is in bytes, for one writer.
const foreignLimit = 8_000

// Foreign returns a writer for the output of commands and the model: prefixed lines at Debug, at most
// 8,000 characters in all. A line appears when it has ended, so that a secret which
// arrives in pieces is seen whole; Close writes the last one.
func (l *Log) Foreign() io.WriteCloser {
	if l.level > Debug {
		return discard{}
	}
	f := &foreign{log: l, left: foreignLimit}
	f.lines = l.redact.Writer(sink{f})
	return f
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

type foreign struct {
	log   *Log
	lines *redact.LineWriter // gathers and redacts lines, then calls sink
	full  atomic.Bool        // nothing more is shown
	left  int                // bytes that may still be shown
}

// Write always takes all: that the log shows no more is nothing to a command.
func (f *foreign) Write(p []byte) (int, error) {
	if f.full.Load() {
		return len(p), nil // spares looking for secrets in what nobody sees
	}
	return f.lines.Write(p)
}

func (f *foreign) Close() error { return f.lines.Close() }

// sink is where the redacted lines arrive, one call at a time.
type sink struct{ *foreign }

func (f sink) Write(p []byte) (int, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	for _, line := range splitLines(string(p)) {
		if f.full.Load() || f.log.done {
			break
		}
		line = cut(line)
		if f.left -= len(line) + 1; f.left < 0 {
			f.full.Store(true)
			line = "[… more output, not shown here …]"
		}
		f.log.write(f.log.plain("| " + line))
	}
	return len(p), nil
}
