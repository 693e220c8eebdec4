package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	defaultKeep = 64 << 10 // bytes of each end kept in memory
	spillLimit  = 8 << 20  // bytes kept in the spill file
)

// output keeps the two ends of a stream, and the first part of it in a file. Its
// memory is bounded whatever a command prints.
type output struct {
	keep  int
	head  []byte
	ring  []byte // last bytes after head; grows up to keep, then wraps at next
	next  int
	size  int64
	spill *os.File
	live  io.WriteCloser // nil for none
	limit int64          // bytes a command may print; 0 for no limit
	full  chan struct{}  // closed when it has printed more
}

func newOutput(c Command, live func() io.WriteCloser, limit int64) (*output, error) {
	o := &output{keep: c.Keep, limit: limit, full: make(chan struct{})}
	if live != nil {
		o.live = live()
	}
	if o.keep <= 0 {
		o.keep = defaultKeep
	}
	if c.Spill != "" {
		f, err := os.OpenFile(c.Spill, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("keeping a command's output: %w", err)
		}
		o.spill = f
	}
	return o, nil
}

// drain reads to the end of the stream. A write that fails does not stop the reading, or the
// command would block; the first failure is returned at the end.
func (o *output) drain(r io.Reader) error {
	var failed error
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		if writeErr := o.add(buffer[:n]); failed == nil {
			failed = writeErr
		}
		switch {
		case errors.Is(err, io.EOF):
			return failed
		case err != nil:
			return errors.Join(failed, err)
		}
	}
}

func (o *output) add(p []byte) error {
	var err error
	if o.spill != nil && o.size < spillLimit {
		_, err = o.spill.Write(p[:min(int64(len(p)), spillLimit-o.size)])
	}
	if o.live != nil {
		_, liveErr := o.live.Write(p)
		err = errors.Join(err, liveErr)
	}
	before := o.size
	o.size += int64(len(p))
	if o.limit > 0 && before <= o.limit && o.size > o.limit {
		close(o.full)
	}
	if room := o.keep - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > o.keep {
		p = p[len(p)-o.keep:]
	}
	if room := o.keep - len(o.ring); room > 0 {
		n := min(room, len(p))
		o.ring = append(o.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(o.ring[o.next:], p)
		o.next = (o.next + n) % o.keep
		p = p[n:]
	}
	return err
}

func (o *output) close() error {
	var err error
	if o.live != nil {
		err = o.live.Close()
	}
	if o.spill != nil {
		err = errors.Join(err, o.spill.Close())
	}
	if err != nil {
		return fmt.Errorf("keeping a command's output: %w", err)
	}
	return nil
}

func (o *output) result() *Result {
	tail := append(append([]byte{}, o.ring[o.next:]...), o.ring[:o.next]...)
	return &Result{Head: o.head, Tail: tail, Size: o.size}
}

// Output is head and tail with a mark between them when something was cut.
func (r *Result) Output() string {
	cut := r.Size - int64(len(r.Head)) - int64(len(r.Tail))
	if cut <= 0 {
		return string(r.Head) + string(r.Tail)
	}
	return fmt.Sprintf("%s\n[… %d bytes cut …]\n%s", r.Head, cut, r.Tail)
}
