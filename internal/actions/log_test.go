package actions

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"issuesmith/internal/redact"
)

// live are the forms that runners take for commands: act's two, that of Gitea's
// reporter, and GitHub's, which trims the line and finds the old form anywhere.
var live = []*regexp.Regexp{
	regexp.MustCompile(`^::([^ ]+)( (.+))?::([^\r\n]*)$`),
	regexp.MustCompile(`^##\[([^ ]+)( (.+))?]([^\r\n]*)$`),
	regexp.MustCompile(`^::([^ :]+)( .*)?::(.*)$`),
	regexp.MustCompile(`^\s*::([^ :]+)`),
	regexp.MustCompile(`##\[([a-z-]+)`),
}

// commandsIn lists the commands that some runner would see in a log.
func commandsIn(log string) []string {
	var out []string
	for _, line := range regexp.MustCompile(`\r\n|\r|\n`).Split(log, -1) {
		for _, form := range live {
			// act's form takes the text up to the last :: into the name, which then is no command's.
			if m := form.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "::") {
				out = append(out, m[1])
			}
		}
	}
	return out
}

var attacks = []string{
	"::set-env name=X::y", "  ::add-path::/tmp", "\t::stop-commands::x", "\u00a0::set-output name=a::b", "\u200b::error::x", "\ufeff::error::x",
	"x\n::set-env name=X::y", "x\r::set-env name=X::y", "x\r\n::set-env name=X::y", "\x1b[31m::set-env name=X::y", "\x00::set-env name=X::y",
	"##[set-env name=X]y", "a ##[group]b", "\x1b[0m##[error]x", "#\x00#[error]x", ":\x00:set-env name=X::y", "%0A::set-env name=X::y", "x%0D%0A::add-path::y",
	"\u2028::set-env name=X::y", "::::", "::group::x", "::endgroup::",
}

func TestNothingForeignIsACommand(t *testing.T) {
	t.Parallel()
	for _, attack := range attacks {
		for name, write := range map[string]func(*Log){
			"Printf":  func(l *Log) { l.Printf(Info, "%s", attack); l.Printf(Debug, "a %s", attack) },
			"Foreign": func(l *Log) { w := l.Foreign(); _, _ = io.WriteString(w, attack); _ = w.Close() },
			"pieces": func(l *Log) {
				w := l.Foreign()
				for i := range len(attack) {
					_, _ = w.Write([]byte{attack[i]})
				}
				_ = w.Close()
			},
		} {
			var b bytes.Buffer
			l := NewLog(&b, true, Debug, redact.New())
			write(l)
			l.Close()
			if found := commandsIn(b.String()); len(found) > 0 {
				t.Errorf("%s of %q: commands %q in %q", name, attack, found, b.String())
			}
			if b.Len() == 0 {
				t.Errorf("%s of %q: nothing written", name, attack)
			}
		}
		// Annotations and stages are commands, and hold no other.
		var b bytes.Buffer
		l := NewLog(&b, true, Debug, redact.New())
		l.Stage(attack, nil)
		for _, level := range []Level{Notice, Warn, Error} {
			l.Printf(level, "%s", attack)
		}
		l.Close()
		for _, found := range commandsIn(b.String()) {
			if !slices.Contains([]string{"group", "endgroup", "notice", "warning", "error"}, found) {
				t.Errorf("%q: command %q in %q", attack, found, b.String())
			}
		}
	}
}

func FuzzLog(f *testing.F) {
	for _, a := range attacks {
		f.Add(a, 3)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		var b bytes.Buffer
		l := NewLog(&b, true, Debug, redact.New("a-known-value"))
		l.Printf(Info, "%s", text)
		w := l.Foreign()
		if at >= 0 && at < len(text) {
			_, _ = io.WriteString(w, text[:at])
			text = text[at:]
		}
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		l.Close()
		if found := commandsIn(b.String()); len(found) > 0 {
			t.Errorf("%q: commands %q in %q", text, found, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if len(line) > lineLimit+1 {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
	})
}

func TestStep(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := NewLog(&b, true, Info, redact.New("hunter2hunter2"))
	l.Stage("prepare", nil)
	l.Printf(Debug, "not shown")
	l.Printf(Info, "with hunter2hunter2")
	l.Stage("attempt 1", nil)
	l.Printf(Notice, "100%% done")
	l.Printf(Warn, "two\nlines hunter2hunter2")
	l.Printf(Error, "bad")
	l.Close()
	l.Printf(Info, "after the end")
	l.Stage("after the end", nil)
	l.Close()
	want := "::group::prepare\nwith " + redact.Mark + "\n::endgroup::\n::group::attempt 1\n::notice::100%25 done\n::warning::two\n::warning::lines " + redact.Mark + "\n::error::bad\n::endgroup::\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestDesk(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := NewLog(&b, false, Warn, nil)
	l.Stage("prepare", nil)
	l.Printf(Info, "not shown")
	l.Printf(Warn, "careful")
	l.Printf(Error, "::error::bad")
	l.Mask("0123456789abcdef")
	l.Close()
	want := "[  0:00] == prepare\n[  0:00] warning: careful\n[  0:00] error: ::error::bad\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := NewLog(&b, true, Info, redact.New())
	w := l.Foreign()
	fmt.Fprintln(w, "quiet")
	_ = w.Close()
	if b.Len() != 0 {
		t.Errorf("shown at info: %q", b.String())
	}
	l = NewLog(&b, true, Debug, redact.New("secret-value-1234"))
	w = l.Foreign()
	for _, piece := range []string{"a sec", "ret-value-", "1234 b\nsec", "ond\n", "open"} {
		_, _ = io.WriteString(w, piece)
	}
	_ = w.Close()
	if want := "| a " + redact.Mark + " b\n| second\n| open\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	w = l.Foreign()
	line := strings.Repeat("x", 5_000) + "\n"
	for range 10_000 {
		if n, err := io.WriteString(w, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	_ = w.Close()
	if b.Len() > foreignLimit+200 || strings.Count(b.String(), "more output") != 1 {
		t.Errorf("%d bytes of foreign output, ends %q", b.Len(), b.String()[max(0, b.Len()-100):])
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("x", 1<<16), strings.Repeat("%", 1<<14), strings.Repeat("ü", 1<<14)} {
		for _, level := range []Level{Info, Warn} {
			for _, inStep := range []bool{true, false} {
				var b bytes.Buffer
				l := NewLog(&b, inStep, Debug, redact.New())
				l.Stage(text, nil)
				l.Printf(level, "%s", text)
				l.Close()
				for line := range strings.Lines(b.String()) {
					if len(line) > lineLimit+1 {
						t.Errorf("%d bytes: %s…", len(line), line[:20])
					}
				}
			}
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := NewLog(&b, true, Info, redact.New())
	l.Mask("0123456789abcdef", "password", "short", "first-line-abcdef\r\nsecond-line-abcdef\n", "100%-of-a-secret", "left-half-abc::right-half-abc", "")
	l.Close()
	want := "::add-mask::0123456789abcdef\n::add-mask::first-line-abcdef\n::add-mask::second-line-abcdef\n::add-mask::100%25-of-a-secret\n::add-mask::left-half-abc\n::add-mask::right-half-abc\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// lockedBuffer is written by the heartbeat and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	if quietTime >= 30*time.Second {
		t.Errorf("a heartbeat after %v, promised are 30 s", quietTime)
	}
	var b lockedBuffer
	l := NewLog(&b, true, Error, redact.New("hunter2hunter2"))
	l.quiet = 30 * time.Millisecond
	// The state logs itself: that must not lock up.
	l.Stage("attempt 2", func() string { l.Printf(Info, "asked"); return "step 7,\n::error:: hunter2hunter2" })
	eventually(t, "three heartbeats", func() bool {
		return strings.Count(b.String(), "still at attempt 2, 0:00: step 7, ::error:: "+redact.Mark+"\n") >= 3
	})
	l.EndStage()
	n := strings.Count(b.String(), "still")
	time.Sleep(4 * l.quiet)
	if more := strings.Count(b.String(), "still"); more > n {
		t.Errorf("%d heartbeats without a stage", more-n)
	}
	l.Stage("publish", nil)
	eventually(t, "a heartbeat of the next stage", func() bool { return strings.Contains(b.String(), "still at publish, 0:00\n") })
	l.Close()
	n = len(b.String())
	time.Sleep(4 * l.quiet)
	if len(b.String()) != n {
		t.Errorf("written after Close: %q", b.String()[n:])
	}
}

// Lines that come more often than a heartbeat keep it away.
func TestNoHeartbeatWhileBusy(t *testing.T) {
	t.Parallel()
	var b lockedBuffer
	l := NewLog(&b, true, Info, redact.New())
	l.quiet = time.Second
	l.Stage("busy", nil)
	for range 60 {
		l.Printf(Info, "line")
		time.Sleep(20 * time.Millisecond)
	}
	l.Close()
	if strings.Contains(b.String(), "still at") {
		t.Errorf("a heartbeat among lines:\n%s", b.String())
	}
}

func TestManyWriters(t *testing.T) {
	t.Parallel()
	var b lockedBuffer
	l := NewLog(&b, true, Debug, redact.New())
	l.quiet = time.Millisecond
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			w := l.Foreign()
			for j := range 50 {
				l.Stage(fmt.Sprint("stage ", i), func() string { return "state" })
				l.Printf(Warn, "line %d", j)
				fmt.Fprintf(w, "out %d\n", j)
				l.Mask("0123456789abcdef")
			}
			_ = w.Close()
		})
	}
	group.Wait()
	l.Close()
	if open, shut := strings.Count(b.String(), "::group::"), strings.Count(b.String(), "::endgroup::"); open != shut || open != 400 {
		t.Errorf("%d groups opened, %d closed", open, shut)
	}
}

func BenchmarkForeign(b *testing.B) {
	l := NewLog(io.Discard, true, Debug, redact.New("a-known-value-of-the-run"))
	line := []byte(strings.Repeat("some output of a command ", 4) + "\n")
	b.SetBytes(int64(len(line)))
	for w := l.Foreign(); b.Loop(); {
		_, _ = w.Write(line)
	}
}
