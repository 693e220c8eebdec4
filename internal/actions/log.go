package actions

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"issuesmith/internal/redact"
)

const (
	lineLimit = 4_000            // bytes of a log line
	quietTime = 25 * time.Second // without a line until a heartbeat: below the promised 30 s
)

// A Level of log lines.
type Level int

// The levels.
const (
	Debug Level = iota
	Info
	Notice // what a person should see without opening the log
	Warn
	Error
)

// marked is how a level shows: the workflow command of its annotation, and the mark of
// its lines elsewhere.
func (level Level) marked() (annotation, mark string) {
	switch level {
	case Debug:
		return "", "debug: "
	case Notice:
		return "notice", ""
	case Warn:
		return "warning", "warning: "
	case Error:
		return "error", "error: "
	default:
		return "", ""
	}
}

// A Log writes for a person: stages as groups in a step, every line redacted and cut, foreign
// output unable to run workflow commands, a heartbeat line at least every 30 s while a stage runs.
// It is safe for concurrent use.
type Log struct {
	inStep  bool
	level   Level
	redact  *redact.Redactor
	started time.Time
	quiet   time.Duration // quietTime, less in tests
	closed  chan struct{}

	mu      sync.Mutex
	w       io.Writer
	last    time.Time // of the last line
	stage   string    // "" when none is open
	since   time.Time // of the stage
	state   func() string
	beating bool
	done    bool
}

// NewLog writes to w. inStep selects workflow commands.
func NewLog(w io.Writer, inStep bool, level Level, r *redact.Redactor) *Log {
	if r == nil {
		r = redact.New()
	}
	now := time.Now()
	return &Log{w: w, inStep: inStep, level: level, redact: r, started: now, last: now, quiet: quietTime, closed: make(chan struct{})}
}

// Stage ends the last stage's group and opens the next. Heartbeats call state for their
// text, from another goroutine; it may be nil.
func (l *Log) Stage(name string, state func() string) {
	name = redact.Cut(unbracket(strings.Join(splitLines(l.clean(name)), " ")), 200)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	l.endGroup()
	l.stage, l.since, l.state = name, time.Now(), state
	if l.inStep {
		l.write(command("group", name))
	} else {
		l.write("== " + name)
	}
	if !l.beating {
		l.beating = true
		go l.beat()
	}
}

// Printf writes at a level; Notice, Warn and Error become annotations in a step. Text of
// several lines becomes several lines, each of them marked.
func (l *Log) Printf(level Level, format string, args ...any) {
	if level < l.level {
		return
	}
	annotation, mark := level.marked()
	lines := splitLines(l.clean(fmt.Sprintf(format, args...)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	for _, line := range lines {
		line = cut(line)
		if annotation != "" && l.inStep {
			// Escaping makes some lines longer, and a command must not be cut.
			if escaped := command(annotation, unbracket(line)); len(escaped) <= lineLimit {
				l.write(escaped)
				continue
			}
		}
		l.write(l.plain(mark + line))
	}
}

// cut shortens a line so that it fits with what is put before it.
func cut(line string) string { return redact.Cut(line, lineLimit-50) }

// clean takes secrets, terminal escapes and control characters out. It comes before
// everything else that looks at the text: what it takes out could have hidden a command.
func (l *Log) clean(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return l.redact.Text(text)
}

// plain is a line as it may stand in the log.
func (l *Log) plain(line string) string {
	if l.inStep {
		return inert(line)
	}
	return line
}

// write puts one finished line out. l.mu is held.
func (l *Log) write(line string) {
	now := time.Now()
	l.last = now
	if !l.inStep {
		line = fmt.Sprintf("[%6s] %s", clock(now.Sub(l.started)), line)
	}
	// A log that cannot be written has nobody left to tell.
	_, _ = io.WriteString(l.w, line+"\n")
}

// clock is a time as minutes and seconds.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// beat writes a line whenever a stage has been silent for too long.
func (l *Log) beat() {
	timer := time.NewTimer(l.quiet)
	defer timer.Stop()
	for {
		select {
		case <-l.closed:
			return
		case <-timer.C:
		}
		timer.Reset(l.heartbeat())
	}
}

// heartbeat writes the line if it is due, and returns when to look again.
func (l *Log) heartbeat() time.Duration {
	l.mu.Lock()
	wait, stage, since, state := l.quiet-time.Since(l.last), l.stage, l.since, l.state
	l.mu.Unlock()
	if wait > 0 {
		return wait
	}
	if stage == "" {
		return l.quiet
	}
	text := "still at " + stage + ", " + clock(time.Since(since))
	if state != nil {
		// Outside the lock: it may log, or wait for one who does.
		if doing := strings.Join(splitLines(l.clean(state())), " "); doing != "" {
			text += ": " + doing
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done && l.stage == stage {
		l.write(l.plain(cut(text)))
	}
	return l.quiet
}

// endGroup closes the stage that is open. l.mu is held.
func (l *Log) endGroup() {
	if l.stage != "" && l.inStep {
		l.write(command("endgroup", ""))
	}
	l.stage, l.state = "", nil
}

// EndStage closes the stage's group, so that what follows is seen without opening it.
func (l *Log) EndStage() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.endGroup()
	}
}

// Mask tells the runner to mask the values (each line of them). Outside a step it does nothing.
func (l *Log) Mask(values ...string) {
	if !l.inStep {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, value := range values {
		for _, line := range splitLines(value) {
			// act looks for the last "::" of a line and would print such a mask instead
			// of taking it; so the value is masked in parts.
			for part := range strings.SplitSeq(line, "::") {
				if part = strings.TrimSpace(part); !redact.Ordinary(part) && utf8.ValidString(part) && !l.done {
					_, _ = io.WriteString(l.w, command("add-mask", part)+"\n") // see write; the runner shows no line
				}
			}
		}
	}
}

// Close ends the group and the heartbeat. Nothing is written afterwards.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	l.endGroup()
	l.done = true
	close(l.closed)
}
