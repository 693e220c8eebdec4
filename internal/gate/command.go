package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
)

const (
	outputEnd = 6000     // characters of output kept from each end
	rawEnd    = 64 << 10 // bytes kept of each end before terminal escapes are taken out
	torn      = 1 << 10  // bytes given up at the cut when there is no line end near
)

// run runs one command. The error is ctx's, or an *InfraError when the command could not be started.
func run(ctx context.Context, s *sandbox.Sandbox, what, script string, timeout time.Duration, r *redact.Redactor) (Command, error) {
	result, err := s.Run(ctx, sandbox.Command{Script: script, Timeout: timeout, Keep: rawEnd})
	if err != nil {
		if ctx.Err() != nil {
			return Command{}, fmt.Errorf("%s was stopped: %w", what, stopped(ctx))
		}
		return Command{}, &InfraError{What: what, Detail: "it could not be run: " + err.Error(), Remedy: "see that bash and the tools it needs are installed on the runner", Err: err}
	}
	return Command{
		Command:  script,
		Exit:     result.Exit,
		TimedOut: result.TimedOut,
		Duration: result.Duration,
		Output:   noted(output(result, r), result.Notes, r),
	}, nil
}

// noted is a command's output with what the sandbox says about it, in which a path that the command made up may stand.
func noted(output string, notes []string, r *redact.Redactor) string {
	if len(notes) == 0 {
		return output
	}
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return output + clean(strings.Join(notes, "\n"), r) + "\n"
}

// stopped is why a context ended: callers may ask for context.Canceled or for its cause.
func stopped(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// output is what is kept of a command's output: known secrets taken out before anything is
// cut, since half a secret would not be known any more.
func output(result *sandbox.Result, r *redact.Redactor) string {
	head, tail := string(result.Head), string(result.Tail)
	lost := result.Size - int64(len(head)) - int64(len(tail))
	if lost > 0 { // the sandbox has cut already, perhaps through a secret
		h, t := upToLine(head), fromLine(tail)
		lost += int64(len(head) - len(h) + len(tail) - len(t))
		head, tail = clean(h, r), clean(t, r)
	} else {
		head, tail, lost = clean(head+tail, r), "", 0
	}
	return ends(head, tail, lost, outputEnd)
}

// upToLine drops the last, perhaps torn, line; of a very long one only its end.
func upToLine(s string) string {
	end := max(0, len(s)-torn)
	if i := strings.LastIndexByte(s, '\n'); i >= end {
		return s[:i+1]
	}
	return strings.ToValidUTF8(s[:end], "")
}

// fromLine drops the first, perhaps torn, line; of a very long one only its beginning.
func fromLine(s string) string {
	end := min(len(s), torn)
	if i := strings.IndexByte(s[:end], '\n'); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s[end:], "")
}

// clean makes foreign text fit for the model: no terminal escapes, no known values. Patterns are not
// applied, since text that the model reads must be the text it can edit.
func clean(s string, r *redact.Redactor) string {
	s = redact.Escapes(s)
	if r != nil {
		s = r.Values(s)
	}
	return s
}

// ends keeps the first and the last characters of a text, at most keep of each, in whole lines. lost is the number of
// bytes between head and tail that are gone already; with an empty tail, head is everything.
func ends(head, tail string, lost int64, keep int) string {
	if lost == 0 {
		all := head + tail
		if utf8.RuneCountInString(all) <= 2*keep {
			return all
		}
		h, t := upToLine(firstRunes(all, keep)), fromLine(lastRunes(all, keep))
		return cut(h, t, int64(len(all)-len(h)-len(t)))
	}
	h, t := head, tail
	if short := firstRunes(head, keep); short != head {
		h = upToLine(short)
	}
	if short := lastRunes(tail, keep); short != tail {
		t = fromLine(short)
	}
	return cut(h, t, lost+int64(len(head)-len(h)+len(tail)-len(t)))
}

// lastLines is the end of a text in whole lines, at most keep characters.
func lastLines(s string, keep int) string {
	if short := lastRunes(s, keep); short != s {
		return fromLine(short)
	}
	return s
}

func cut(head, tail string, lost int64) string {
	return fmt.Sprintf("%s\n[… %d bytes cut …]\n%s", strings.TrimSuffix(head, "\n"), lost, tail)
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// ended says how a command ended, for people and the model.
func (c Command) ended() string {
	took := c.Duration.Round(10 * time.Millisecond)
	if c.Duration > 10*time.Second {
		took = c.Duration.Round(time.Second)
	}
	switch {
	case c.TimedOut:
		return fmt.Sprintf("stopped after %s, the time limit of a command", took)
	case c.Exit == 0:
		return fmt.Sprintf("exit 0 after %s", took)
	case c.Exit > 128:
		return fmt.Sprintf("exit %d (signal %d) after %s", c.Exit, c.Exit-128, took)
	}
	return fmt.Sprintf("exit %d after %s", c.Exit, took)
}

// Setup runs the setup commands; the first failure is an *InfraError. The results so far are returned as well.
func Setup(ctx context.Context, s *sandbox.Sandbox, commands []string, timeout time.Duration, progress func(string)) ([]Command, error) {
	var done []Command
	for _, script := range commands {
		if progress != nil {
			progress("setup command " + quoted(script))
		}
		what := "setup command " + quoted(script)
		c, err := run(ctx, s, what, script, timeout, nil)
		if err != nil {
			return done, err
		}
		done = append(done, c)
		if !c.OK() {
			detail := c.ended()
			if out := strings.TrimSpace(c.Output); out != "" {
				detail += ", its output ends:\n" + lastLines(out, 2000) + "\n"
			}
			return done, &InfraError{What: what, Detail: detail, Remedy: "repair setup-commands or the runner and queue the issue again; the model was not asked"}
		}
	}
	return done, nil
}

// quoted is a command as it stands in a sentence: its first line, cut when long.
func quoted(script string) string {
	line, rest, more := strings.Cut(strings.TrimSpace(script), "\n")
	if short := firstRunes(line, 120); short != line || more && strings.TrimSpace(rest) != "" {
		line = short + "…"
	}
	return "`" + line + "`"
}
