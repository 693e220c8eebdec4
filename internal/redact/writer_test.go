package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

const keyLines = "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun\nVTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u+qKhbwKfBstIs+bMY2Zkp18gnTxK\n"

func wrap(s string, width int) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + "\n")
		s = s[width:]
	}
	return b.String() + s + "\n"
}

// However a stream is cut into writes, it gives what Text gives for the whole.
func TestWriterEqualsText(t *testing.T) {
	t.Parallel()
	r := New("hunter2-canary", "line one of it\nab\nline two of it", "ab\ncd\nef\ngh", "überlang-ä€😀")
	text := "plain\nvalue hunter2-canary, and hun\x1b[31mter2-\u200bcanary\n" +
		"x line one of it\nab\nline two of it y\nline one of it\nab\nother\n" +
		"ab\ncd\nef\ngg\nab\ncd\nef\ngh\n" +
		"password=abcd1234\r\n10%\r20%\r\n" +
		wrap(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x y z ", 12)+"hunter2-canary"+strings.Repeat(" end", 9))), 76) +
		"-----BEGIN PRIVATE KEY-----\n" + keyLines + "Ag==\n-----END PRIVATE KEY-----\nafter\n" +
		"\x1b]0;title with hunter2-canary\x07überlang-ä€😀 \xff\xe2\x82 no newline hunter2-canary"
	want := r.Text(text)
	for _, gone := range []string{"hunter2", "line one", "line two", "ab\ncd", "abcd1234", "MIIE", "Ag==", "überlang", "\x1b"} {
		if strings.Contains(want, gone) && gone != "ab\ncd" {
			t.Fatalf("Text leaves %q in %q", gone, want)
		}
	}
	check := func(pieces ...string) {
		t.Helper()
		var out bytes.Buffer
		w := r.Writer(&out)
		for _, p := range pieces {
			if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("pieces %q:\n got  %q\n want %q", pieces, out.String(), want)
		}
	}
	for i := range len(text) + 1 {
		check(text[:i], text[i:])
	}
	check(strings.Split(text, "")...)
	for _, size := range []int{1, 2, 3, 7, 64} {
		var pieces []string
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		check(pieces...)
	}
}

// Lines are not kept longer than needed: a log is read while it is written.
func TestWriterIsPrompt(t *testing.T) {
	t.Parallel()
	r := New("hunter2-canary", "first of two\nsecond of two")
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, c := range []struct{ in, want string }{
		{"one\ntw", "one\n"},
		{"o\n", "one\ntwo\n"},
		{"first of two\n", "one\ntwo\n"},
		{"another\n", "one\ntwo\n[redacted]\nanother\n"},
		{"-----BEGIN PRIVATE KEY-----\n", "one\ntwo\n[redacted]\nanother\n"},
		{"no key\n", "one\ntwo\n[redacted]\nanother\n-----BEGIN PRIVATE KEY-----\nno key\n"},
	} {
		if _, err := w.Write([]byte(c.in)); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Fatalf("after %q: %q, want %q", c.in, out.String(), c.want)
		}
	}
}

// A line without end is passed on in time, with no value cut by the division.
func TestWriterLongLines(t *testing.T) {
	t.Parallel()
	const value = "hunter2-canary-0123456789"
	r := New(value, "aaaaaaaaaaab")
	b64 := base64.StdEncoding.EncodeToString([]byte(value))
	for name, unit := range map[string]string{
		"filler":   strings.Repeat("z", 50) + value,
		"words":    "some words " + value + " ",
		"adjacent": value,
		"base64":   b64[:len(b64)-4] + "zz",
		"hidden":   "z" + value[:9] + strings.Repeat("\u200b", 40) + value[9:],
		"prefix":   "aaaaaaaaaa",
	} {
		for shift := range 3 {
			text := strings.Repeat("q", shift*5) + strings.Repeat(unit, 200<<10/len(unit))
			var out bytes.Buffer
			w := r.Writer(&out)
			for rest := text; rest != ""; {
				n := min(9973, len(rest))
				if _, err := w.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
				if len(w.held) > 2*heldLimit {
					t.Fatalf("%s: %d bytes held", name, len(w.held))
				}
			}
			if out.Len() == 0 {
				t.Fatalf("%s: nothing passed on", name)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if r.Holds(out.String()) {
				t.Fatalf("%s: a value came through", name)
			}
			// Nor a good part of one.
			if s := Escapes(out.String()); strings.Contains(s, "canary") || strings.Contains(s, "hunter2") {
				t.Fatalf("%s: a part of a value came through", name)
			}
		}
	}
}

type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriterKeepsFirstError(t *testing.T) {
	t.Parallel()
	w := New().Writer(&failing{left: 1})
	if _, err := w.Write([]byte("a\n")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Write([]byte("b\n")); !errors.Is(err, errFull) {
			t.Fatalf("got %v", err)
		}
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Fatalf("got %v", err)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("x hunter2-canary\nfirst line of two\nsecond line of two\n", uint64(1))
	f.Add("-----BEGIN PRIVATE KEY-----\n"+keyLines+"-----END", uint64(2))
	f.Add(wrap(base64.StdEncoding.EncodeToString([]byte("0123456789012345678901234567890123456 hunter2-canary")), 60), uint64(3))
	r := fuzzRedactor()
	f.Fuzz(func(t *testing.T, s string, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := s; rest != ""; {
			n := 1 + random.IntN(min(len(rest), 40))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != r.Text(s) {
			t.Fatalf("stream %q, text %q", out.String(), r.Text(s))
		}
	})
}
