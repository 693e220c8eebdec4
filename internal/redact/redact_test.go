package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestValuesInEveryForm(t *testing.T) {
	t.Parallel()
	const value = `p/ss+w?rd&"ä<1>'😀\x %`
	r := New(value)
	jsonText, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	inner := string(jsonText[1 : len(jsonText)-1])
	for name, form := range map[string]string{
		"whole":       value,
		"query":       url.QueryEscape(value),
		"query lower": "p%2fss%2bw%3frd%26%22%c3%a4%3c1%3e%27%f0%9f%98%80%5cx+%25",
		"path":        url.PathEscape(value),
		"python":      "p/ss%2Bw%3Frd%26%22%C3%A4%3C1%3E%27%F0%9F%98%80%5Cx%20%25",
		"javascript":  "p%2Fss%2Bw%3Frd%26%22%C3%A4%3C1%3E'%F0%9F%98%80%5Cx%20%25",
		"user info":   strings.TrimPrefix(url.UserPassword("", value).String(), ":"),
		"json":        inner,
		"json html":   strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inner),
		"json php":    `p\/ss+w?rd&\"\u00e4<1>'\ud83d\ude00\\x %`,
		"base64":      base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 url":  base64.URLEncoding.EncodeToString([]byte(value)),
		"base64 raw":  base64.RawURLEncoding.EncodeToString([]byte(value)),
	} {
		text := "before " + form + " after"
		if got := r.Values(text); got != "before [redacted] after" {
			t.Errorf("%s: Values(%q) = %q", name, text, got)
		}
		if !r.Holds(text) {
			t.Errorf("%s: not held", name)
		}
	}
	if r.Holds("before after") || r.Values("before after") != "before after" {
		t.Error("text without the value was changed")
	}
}

func TestValuesInsideLongerBase64(t *testing.T) {
	t.Parallel()
	const value = "hunter2-Canary"
	r := New(value)
	for before := range 7 {
		for after := range 5 {
			plain := strings.Repeat("k", before) + value + strings.Repeat("z", after)
			for name, enc := range map[string]*base64.Encoding{
				"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding,
			} {
				got := r.Values(enc.EncodeToString([]byte(plain)))
				if !strings.Contains(got, Mark) {
					t.Fatalf("%s: value in %q not found", name, plain)
				}
				rest := strings.Split(got, Mark)
				if len(rest[0]) > before*4/3+2 || len(rest[1]) > after*4/3+4 {
					t.Errorf("%s: %q leaves %q", name, plain, got)
				}
			}
		}
	}
}

func TestValuesInWrappedBase64(t *testing.T) {
	t.Parallel()
	const value = "hunter2-Canary-of-the-mine"
	r := New(value)
	for offset := range 120 {
		plain := strings.Repeat("abc ", 50)[:offset] + value + strings.Repeat(" xyz", 20)
		text := base64.StdEncoding.EncodeToString([]byte(plain))
		for _, sep := range []string{"\n", "\r\n", "\n    "} {
			var wrapped strings.Builder
			for len(text) > 76 {
				wrapped.WriteString(text[:76] + sep)
				text = text[76:]
			}
			wrapped.WriteString(text + "\n")
			if got := r.Values(wrapped.String()); !strings.Contains(got, Mark) {
				t.Fatalf("offset %d, break %q: not found in\n%s", offset, sep, got)
			}
			text = base64.StdEncoding.EncodeToString([]byte(plain))
		}
	}
}

func TestValuesOfSeveralLines(t *testing.T) {
	t.Parallel()
	r := New("first-line-1\r\nshort\n  second-line-2\n")
	for in, want := range map[string]string{
		"x first-line-1 y":  "x [redacted] y",
		"x second-line-2 y": "x [redacted] y",
		"short":             "short",
		"first-line-1\r\nshort\n  second-line-2\n":       "[redacted]\n",
		`{"k":"first-line-1\r\nshort\n  second-line-2"}`: `{"k":"[redacted]"}`,
	} {
		if got := r.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestOverlappingValuesLeaveNothing(t *testing.T) {
	t.Parallel()
	r := New("abcdefghij", "fghijklmno", "ghijklmn", "lmnopqrs-")
	for in, want := range map[string]string{
		"abcdefghij":             Mark,
		"abcdefghijklmno":        Mark,
		"abcdefghijklmnopqrs-":   Mark,
		"ab ghijklmn cd":         "ab [redacted] cd",
		"abcdefghijabcdefghij":   Mark,
		"abcdefghij abcdefghij":  Mark + " " + Mark,
		"abcdefghfghijklmno":     "abcdefgh" + Mark,
		"xabcdefghiabcdefghijkx": "xabcdefghi" + Mark + "kx",
	} {
		if got := r.Values(in); got != want {
			t.Errorf("Values(%q) = %q, want %q", in, got, want)
		}
	}
	a := New("aaaaaaab")
	if got := a.Values("aaaaaaaaaaaab"); got != "aaaaa"+Mark {
		t.Errorf("got %q", got)
	}
}

func TestHiddenValuesAreFound(t *testing.T) {
	t.Parallel()
	const value = "hunter2-canary"
	r := New(value)
	for _, hidden := range []string{
		"\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\u009b1m", "\x00", "\b", "\x1b(B", "\x7f",
		"\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2066", "\ufe0f", "\u034f", "\U000e0041",
		"\u200b\x1b[0m\u200b\u200b",
	} {
		for i := range len(value) {
			if i == 0 {
				continue
			}
			in := "<" + value[:i] + hidden + value[i:] + ">"
			if got := r.Text(in); got != "<[redacted]>" {
				t.Fatalf("Text(%q) = %q", in, got)
			}
			if !r.Holds(in) {
				t.Fatalf("Holds(%q) is false", in)
			}
		}
	}
	joined := strings.Join(strings.Split(value, ""), "\u200b")
	if got := r.Values(joined + " ä " + joined); got != "[redacted] ä [redacted]" {
		t.Errorf("got %q", got)
	}
}

func TestOrdinary(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"": true, "short": true, "1234567": true, "pässw": true, "äöüäöüä": true,
		"password": true, "Password": true, "PASSWORT": true, "changeme": true, "database": true,
		"postgres": true, "localhost": true, "testtest": true, "12345678": true, "username": true,
		"********": true, "xxxxxxxxxxxx": true, "ääääääää": true, "redacted": true, "[redacted]": true,
		"a[redacted]b": true,
		"hunter2x":     false, "äöüäöüäx": false, "correct horse": false, "passwordx1": false,
	} {
		if got := Ordinary(value); got != want {
			t.Errorf("Ordinary(%q) = %v", value, got)
		}
	}
	r := New("password", "1234567", "", "********")
	if in := "password 1234567 ********"; r.Values(in) != in {
		t.Error("ordinary values were blanked")
	}
}

// A value that starts or ends like the mark must not make a second pass change
// what the first one left.
func TestMarkLikeValues(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"]abc1234", "ted]abc12345", "abc12345[", "abc12345[red", "]]]]]]]x", "[redacte", "d][r0123456", "edacted]", "[[[[[[[["} {
		r := New(value, "hunter2-canary")
		for _, in := range []string{
			value, "hunter2-canary" + value, value + "hunter2-canary", "hunter2-canary" + strings.TrimLeft(value, "]ted"),
			strings.TrimRight(value, "[red") + "hunter2-canary", value + value, Mark + value, value + Mark, value[1:] + Mark + value[:7],
		} {
			checkStable(t, r, in)
		}
	}
}

// checkStable holds the two laws of Text.
func checkStable(t *testing.T, r *Redactor, in string) {
	t.Helper()
	once := r.Text(in)
	if twice := r.Text(once); twice != once {
		t.Fatalf("Text is not idempotent:\n in    %q\n once  %q\n twice %q", in, once, twice)
	}
	if r.Holds(once) {
		t.Fatalf("Text(%q) = %q still holds a value", in, once)
	}
}

func TestAddWhileReading(t *testing.T) {
	t.Parallel()
	r := New()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 8 {
				v := fmt.Sprintf("value-%d-%d", g, i)
				r.Add(v)
				if got := r.Text("x " + v + " y"); got != "x [redacted] y" {
					t.Errorf("added value not found: %q", got)
				}
				r.Personal(i%2 == 0)
			}
		})
	}
	wg.Wait()
}

func TestLine(t *testing.T) {
	t.Parallel()
	got := New("hunter2-canary").Line("hunter2-canary" + strings.Repeat("x", 5000))
	if len(got) > 4000 || !strings.HasPrefix(got, Mark+"xxx") || !strings.Contains(got, "bytes cut") {
		t.Errorf("got %d bytes: %.40q", len(got), got)
	}
}

// Hostile input must cost no more than its length: each case would take minutes
// if any part were quadratic.
func TestLinear(t *testing.T) {
	t.Parallel()
	r := New("aaaaaaaaaaaaaaab", "abababababababac", strings.Repeat("x\n", 2000)+"y", "token=token=token=")
	r.Personal(true)
	for _, unit := range []string{
		"a", "ab", "x\n", "token=", "token=\"", "token='a", "password: ", "\x1b]", "\x1b[", "sk-", "eyJ", "eyJaaaaaaaaaa.",
		"://", "https://a:", "https://a:b@", "@", "a@", "a@b.", "1.", "1:", "::", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n", "\u200b", "aaaa\u200b", "\r", "Authorization: ", "bearer a", strings.Repeat("A", 64) + "\n",
		"ghp_", "\xff", "\\", "token=\\\"", "token=aaaaaaa",
	} {
		in := strings.Repeat(unit, 1<<16/len(unit))
		start := time.Now()
		once := r.Text(in)
		if spent := time.Since(start); spent > 10*time.Second {
			t.Errorf("%q: %v for 64 KiB", unit, spent)
		}
		if again := r.Text(once); again != once {
			t.Errorf("%q: not idempotent", unit)
		}
	}
}
