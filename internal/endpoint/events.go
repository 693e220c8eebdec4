package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// limits on what an endpoint may send, in bytes.
type limits struct {
	line int // also of one event made of several lines
	body int
}

// errNotChat is the cause of an *Error of kind Protocol.
var errNotChat = errors.New("not an answer of the chat protocol")

// An event is one JSON text of the answer.
type event struct {
	data   []byte // valid until the next event is read
	failed bool   // the server marked it as an error
	done   bool   // [DONE]
}

// An eventReader cuts a body into events. It reads event streams as servers really send
// them: with CRLF, comments, ids, several data lines, no blank line at the end; and bodies that
// are no stream at all but JSON documents, whatever the content type says.
//
// An event is handed out as soon as its JSON is complete, not at the blank line after it: a
// server that reports an error and keeps the connection open is heard at once.
type eventReader struct {
	body *bufio.Reader
	read int
	most limits
	long []byte // a line that did not fit the buffer
	form form

	data   []byte
	nest   nesting
	failed bool // what is in data was marked as an error
}

// A form is how a body is written.
type form int

const (
	undecided form = iota
	stream         // text/event-stream
	document       // JSON texts, one after another
)

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{body: bufio.NewReaderSize(r, 64<<10), most: limits{line: 16 << 20, body: 64 << 20}}
}

// next returns the next event. io.EOF is the end of the body, whatever was left of an event
// then; an error that wraps errNotChat is a body that makes no sense; others come from the network.
func (e *eventReader) next() (event, error) {
	e.data, e.nest, e.failed = e.data[:0], nesting{}, false
	for {
		line, err := e.line()
		if len(line) == 0 && err != nil {
			return event{}, err
		}
		ev, ok, bad := e.take(bytes.TrimRight(line, "\r\n"))
		if bad != nil {
			return event{}, bad
		}
		if ok {
			return ev, nil
		}
		if err != nil {
			return event{}, err
		}
	}
}

// take reads one line; ok when it completes an event.
func (e *eventReader) take(line []byte) (event, bool, error) {
	if e.form == undecided {
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		start := bytes.TrimLeft(line, " \t")
		if len(start) == 0 {
			return event{}, false, nil
		}
		switch start[0] {
		case '{':
			e.form = document
		case '<':
			return event{}, false, fmt.Errorf("%w: a web page: %s", errNotChat, pageText(e.ahead(line)))
		default:
			e.form = stream
		}
	}
	if e.form == document {
		return e.add(line)
	}
	if len(line) == 0 {
		e.failed = false
		if len(e.data) > 0 {
			return event{}, false, fmt.Errorf("%w: an event ended inside its JSON: %s", errNotChat, excerpt(e.data))
		}
		return event{}, false, nil
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return e.add(value)
	case "error": // llama.cpp names the line so
		e.failed = true
		return e.add(value)
	case "event":
		e.failed = string(value) == "error"
		return event{}, false, nil
	case "", "id", "retry":
		return event{}, false, nil
	}
	if line[0] == '{' { // a proxy's error put into the stream as it was
		return e.add(line)
	}
	return event{}, false, nil // unknown fields are ignored, as the format demands
}

// add appends to the event being read.
func (e *eventReader) add(value []byte) (event, bool, error) {
	if len(e.data) == 0 {
		value = bytes.TrimSpace(value)
		switch {
		case len(value) == 0:
			return event{}, false, nil
		case string(value) == "[DONE]":
			return event{done: true}, true, nil
		case value[0] != '{' && e.failed:
			return event{data: append(e.data, value...), failed: true}, true, nil
		case value[0] != '{':
			return event{}, false, fmt.Errorf("%w: %s", errNotChat, excerpt(value))
		}
	} else {
		e.data = append(e.data, '\n')
	}
	if len(e.data)+len(value) > e.most.line {
		return event{}, false, fmt.Errorf("%w: an event of more than %d bytes", errNotChat, e.most.line)
	}
	e.data = append(e.data, value...)
	feed(&e.nest, value)
	if !e.nest.whole() {
		return event{}, false, nil
	}
	return event{data: e.data, failed: e.failed}, true, nil
}

// line returns the next line with its end; the last one may have none and comes with io.EOF.
func (e *eventReader) line() ([]byte, error) {
	e.long = e.long[:0]
	for {
		part, err := e.body.ReadSlice('\n')
		e.read += len(part)
		if e.read > e.most.body {
			return nil, fmt.Errorf("%w: an answer of more than %d bytes", errNotChat, e.most.body)
		}
		if errors.Is(err, bufio.ErrBufferFull) || len(e.long) > 0 {
			e.long = append(e.long, part...)
			if len(e.long) > e.most.line {
				return nil, fmt.Errorf("%w: a line of more than %d bytes", errNotChat, e.most.line)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			return e.long, err
		}
		return part, err
	}
}

// ahead is line and what has arrived behind it, for a message.
func (e *eventReader) ahead(line []byte) []byte {
	rest, _ := e.body.Peek(min(e.body.Buffered(), 4096)) // never more than is buffered: no error
	return append(bytes.Clone(line), rest...)
}

// excerpt is the beginning of what was read, for a message.
func excerpt(b []byte) string {
	if len(b) > 200 {
		return string(b[:200]) + "…"
	}
	return string(b)
}

// nesting follows a JSON object as its text arrives, at a cost that does not grow with what
// came before. It only counts: whether the text is valid is for the decoder to say.
type nesting struct {
	depth                    int
	begun, inString, escaped bool
}

// whole says that an object was begun and is closed.
func (n *nesting) whole() bool { return n.begun && n.depth <= 0 && !n.inString }

func feed[T []byte | string](n *nesting, s T) {
	for i := range len(s) {
		c := s[i]
		switch {
		case n.escaped:
			n.escaped = false
		case n.inString:
			n.escaped = c == '\\'
			n.inString = c != '"'
		case c == '"':
			n.inString = true
		case c == '{', c == '[':
			n.begun = true
			n.depth++
		case c == '}', c == ']':
			n.depth--
		}
	}
}
