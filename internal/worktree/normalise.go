package worktree

import (
	"bytes"
	"context"
	"fmt"
)

// Normalise removes trailing blanks (spaces and tabs) from lines the change added, in text
// files only, line ends kept, writes the files and returns the change as it is then. The
// change must be the worktree's present one.
func (t *Tree) Normalise(ctx context.Context, c *Change) (*Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	written := false
	for _, f := range c.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if f.Op == Deleted || f.Binary || !isFile(f.New.Kind) {
			continue
		}
		before, after, err := t.sides(f)
		if err != nil {
			return nil, fmt.Errorf("remove trailing blanks from %s: %w", f.Path, err)
		}
		if f.Old.Kind == KindSymlink {
			before = nil
		}
		clean := trimAdded(before, after)
		if bytes.Equal(clean, after) {
			continue
		}
		s := c.states[f.Path]
		if err := t.put(f.Path, &s, clean); err != nil {
			return nil, pathError("remove trailing blanks from", f.Path, err)
		}
		written = true
	}
	if !written {
		return c, nil
	}
	return t.change(ctx)
}

// trimAdded removes trailing blanks from the lines of after that before does not have.
func trimAdded(before, after []byte) []byte {
	d := diffLines(before, after)
	clean := make([]byte, 0, len(after))
	next := 0
	for _, s := range d.spans {
		for ; next < s.newStart; next++ {
			clean = append(clean, d.after[next]...)
		}
		for ; next < s.newEnd; next++ {
			clean = append(clean, trimLine(d.after[next])...)
		}
	}
	for ; next < len(d.after); next++ {
		clean = append(clean, d.after[next]...)
	}
	return clean
}

// trimLine removes trailing blanks from a line and keeps its end. A carriage return before
// the blanks would become part of the end, so such a line stays as it is.
func trimLine(line []byte) []byte {
	text, end := cutEnd(line)
	short := bytes.TrimRight(text, " \t")
	if bytes.HasSuffix(short, []byte("\r")) {
		return line
	}
	return append(short[:len(short):len(short)], end...)
}

// cutEnd cuts a line into its text and its end: "\n", "\r\n" or nothing.
func cutEnd(line []byte) (text, end []byte) {
	n := len(line)
	if n > 0 && line[n-1] == '\n' {
		n--
		if n > 0 && line[n-1] == '\r' {
			n--
		}
	}
	return line[:n], line[n:]
}
