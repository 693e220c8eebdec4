package redact

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a\tb\nc ä € 😀", "a\tb\nc ä € 😀"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"private mode", "\x1b[?25lx\x1b[?25h", "x"},
		{"intermediate in CSI", "\x1b[4 qx", "x"},
		{"title by BEL", "\x1b]0;evil\x07x", "x"},
		{"title by ST", "\x1b]0;evil\x1b\\x", "x"},
		{"title by C1 ST", "\x1b]0;evil\u009cx", "x"},
		{"clipboard", "\x1b]52;c;cm0gLXJmIC8=\x07x", "x"},
		{"link", "\x1b]8;;https://evil\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"unterminated OSC", "a\x1b]0;evil\nb", "a\nb"},
		{"unterminated OSC at the end", "a\x1b]0;evil", "a"},
		{"OSC ended by another escape", "\x1b]0;evil\x1b[1mx", "x"},
		{"device control", "a\x1bPq#0;2;0\x1b\\b", "ab"},
		{"APC", "a\x1b_Gf=24\x1b\\b", "ab"},
		{"string cancelled", "a\x1bPq\x18b", "ab"},
		{"character set", "\x1b(Bx\x1b)0y", "xy"},
		{"short escapes", "\x1b7a\x1b8b\x1bMc\x1bcd", "abcd"},
		{"unfinished CSI", "a\x1b[31", "a"},
		{"broken CSI", "a\x1b[3\nb", "a\nb"},
		{"broken CSI by a letter", "\x1b[3äb", "äb"},
		{"lone escape", "a\x1b", "a"},
		{"double escape", "a\x1b\x1b[1mb", "ab"},
		{"C1 CSI", "a\u009b31mb", "ab"},
		{"C1 OSC", "a\u009d0;t\u009cb", "ab"},
		{"other C1", "a\u0085b\u0084c", "abc"},
		{"controls", "a\x00\x01\x08\x0b\x0c\x0e\x1f\x7fb", "ab"},
		{"crlf", "a\r\nb\r\n", "a\nb\n"},
		{"lone cr", "10%\r20%\rdone", "10%\n20%\ndone"},
		{"cr cr lf", "a\r\r\nb", "a\n\nb"},
		{"cr at the end", "a\r", "a\n"},
		{"invalid", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"raw C1 byte", "a\x9b31mb", "a\uFFFD31mb"},
		{"surrogate", "a\xed\xa0\x80b", "a\uFFFD\uFFFD\uFFFDb"},
		{"bidi stays", "a\u202eb\u2066", "a\u202eb\u2066"},
		{"zero width stays", "a\u200bb", "a\u200bb"},
		{"replacement stays", "a\uFFFDb", "a\uFFFDb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Escapes(c.in); got != c.want {
				t.Errorf("Escapes(%q) = %q, want %q", c.in, got, c.want)
			}
			// In pieces it is the same.
			for i := range len(c.in) + 1 {
				var st stripper
				got := string(st.end(st.add(st.add(nil, c.in[:i]), c.in[i:])))
				if got != c.want {
					t.Errorf("cut at %d: %q, want %q", i, got, c.want)
				}
			}
		})
	}
}

func FuzzEscapes(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]0;t\x07c\r\n\x9b\u009b1m\xff", 3)
	f.Fuzz(func(t *testing.T, s string, i int) {
		once := Escapes(s)
		if Escapes(once) != once {
			t.Fatalf("not idempotent: %q", s)
		}
		if !utf8.ValidString(once) {
			t.Fatalf("invalid: %q", once)
		}
		for _, r := range once {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7F && r <= 0x9F {
				t.Fatalf("control %U left of %q", r, s)
			}
		}
		if i < 0 || i > len(s) {
			return
		}
		var st stripper
		if got := string(st.end(st.add(st.add(nil, s[:i]), s[i:]))); got != once {
			t.Fatalf("in pieces %q, whole %q", got, once)
		}
	})
}

func TestCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("abcdefghi\n", 100)
	for limit := -1; limit < 1010; limit++ {
		checkCut(t, long, limit)
		checkCut(t, strings.Repeat("ä€😀", 60), limit)
	}
	if got := Cut(long, 100); got != long[:37]+"[… 927 bytes cut …]"+long[1000-36:] && !strings.Contains(got, "bytes cut") {
		t.Errorf("got %q", got)
	}
	if got := Cut("short", 5); got != "short" {
		t.Errorf("got %q", got)
	}
	if got := Cut("a\xff\xfeb", 50); got != "a\uFFFDb" {
		t.Errorf("got %q", got)
	}
	if got := Cut("äöü", 3); got != "ä" {
		t.Errorf("got %q", got)
	}
}

func checkCut(t *testing.T, s string, limit int) {
	t.Helper()
	got := Cut(s, limit)
	if len(got) > max(limit, 0) || !utf8.ValidString(got) {
		t.Fatalf("Cut(%d bytes, %d) gives %d bytes, valid %v", len(s), limit, len(got), utf8.ValidString(got))
	}
	head, rest, ok := strings.Cut(got, "[… ")
	number, tail, ok2 := strings.Cut(rest, " bytes cut …]")
	if !ok || !ok2 {
		if limit > 40 && got != strings.ToValidUTF8(s, "\uFFFD") {
			t.Fatalf("no mark in %q", got)
		}
		return
	}
	if want := fmt.Sprint(len(s) - len(head) - len(tail)); number != want {
		t.Fatalf("mark says %s, %s are gone", number, want)
	}
	if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) {
		t.Fatal("what is left is not head and tail")
	}
}

func FuzzCut(f *testing.F) {
	f.Add("aä€😀\xff", 7)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if got := Cut(s, limit); len(got) > max(limit, 0) || !utf8.ValidString(got) {
			t.Fatalf("Cut(%q, %d) = %q", s, limit, got)
		}
	})
}
