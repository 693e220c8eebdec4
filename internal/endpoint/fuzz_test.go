package endpoint

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A body must never crash the reader, and how the network cut it must not matter.
func FuzzStream(f *testing.F) {
	for name := range recordings(f) {
		f.Add(body(f, name), uint8(3))
	}
	f.Add([]byte("error: {\"a\":1}\n"), uint8(1))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":[{\"thinking\":[[]]}]}}]}\n"), uint8(5))
	c := newTestChat(f, "http://127.0.0.1:1", nil)
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		c.ids = 0
		whole, wholeErr := readAll(c, strings.NewReader(string(text)))
		c.ids = 0
		cut, cutErr := readAll(c, &slow{text: text, size: int(size%16) + 1})
		if describe(whole, wholeErr) != describe(cut, cutErr) {
			// A page of HTML is quoted as far as it has arrived.
			if !strings.Contains(describe(whole, wholeErr), "a web page") {
				t.Fatalf("whole: %s\ncut:   %s", describe(whole, wholeErr), describe(cut, cutErr))
			}
		}
		if wholeErr != nil {
			var e *Error
			if !errors.As(wholeErr, &e) || e.Message == "" || len([]rune(e.Message)) > maxWords {
				t.Fatalf("%#v", wholeErr)
			}
			return
		}
		if whole.Finish == "" {
			t.Fatal("a turn without a finish reason")
		}
		for _, call := range whole.Message.Calls {
			if call.Arguments == "" || call.Name == "" || !usableID(call.ID) {
				t.Fatalf("%+v", call)
			}
		}
		if _, err := c.Request([]Message{whole.Message}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

type slow struct {
	text []byte
	size int
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.size)], s.text)
	s.text = s.text[n:]
	return n, nil
}
