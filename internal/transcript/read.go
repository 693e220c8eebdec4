package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

var errTooLong = fmt.Errorf("longer than %d MiB", maxLine>>20)

// Read yields the events of a transcript. A last line cut by a crash is skipped;
// any other malformed line yields an error with its line number, and reading goes
// on if the caller does. Lines are capped at 64 MiB. Kinds it does not know are
// yielded like any other.
func Read(r io.Reader) iter.Seq2[Event, error] { return read(r, maxLine) }

func read(r io.Reader, limit int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
		for number := 1; ; number++ {
			line, whole, err := lines.next()
			if err != nil && !errors.Is(err, errTooLong) {
				if !errors.Is(err, io.EOF) {
					yield(Event{}, fmt.Errorf("read the transcript, line %d: %w", number, err))
				}
				return
			}
			var event Event
			if err == nil {
				if len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				event, err = parse(line)
			}
			if err != nil {
				if !whole {
					return // cut by a crash
				}
				err = fmt.Errorf("transcript line %d: %w", number, err)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

func parse(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, err
	}
	if e.Kind == "" {
		return Event{}, errors.New(`no "event" in it: this is no line of a transcript`)
	}
	return e, nil
}

// A lineReader gives lines of any length up to the cap, in one buffer.
type lineReader struct {
	r     *bufio.Reader
	limit int
	buf   []byte
}

// next gives the next line, valid until the following call. whole is false for a
// last line without newline. The error is io.EOF after the last line, errTooLong
// for a line over the cap, which is passed over, or what the reader gave.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	l.buf = l.buf[:0]
	tooLong, some := false, false
	for {
		part, err := l.r.ReadSlice('\n')
		some = some || len(part) > 0
		if len(l.buf)+len(part) > l.limit {
			tooLong = true
		}
		if !tooLong {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || !some):
			return nil, false, err
		case tooLong:
			return nil, err == nil, errTooLong
		}
		return l.buf, err == nil, nil
	}
}
