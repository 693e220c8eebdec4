package agent

import (
	"context"
	"fmt"
	"time"

	"issuesmith/internal/transcript"
)

// context ends with the limits' deadline.
func (l Limits) context(parent context.Context) (context.Context, context.CancelFunc) {
	if l.Deadline.IsZero() {
		return context.WithCancel(parent)
	}
	return context.WithDeadline(parent, l.Deadline)
}

// timeReason is the Reason that the deadline stands for.
func (l Limits) timeReason() Reason {
	if l.DeadlineIs == string(RunLimit) {
		return RunLimit
	}
	return TimeLimit
}

// spent says which limit leaves no room for another request; "" when none does.
func (l Limits) spent(calls int, u transcript.Usage, now time.Time) (Reason, string) {
	switch {
	case !l.Deadline.IsZero() && !now.Before(l.Deadline):
		return l.timeReason(), timeDetail(l.timeReason(), calls)
	case l.Steps > 0 && calls >= l.Steps:
		return StepLimit, fmt.Sprintf("%d of %d model calls used", calls, l.Steps)
	case l.Cost > 0 && u.Cost >= l.Cost:
		return CostLimit, fmt.Sprintf("%.4f of %.4f USD used in %d model calls", u.Cost, l.Cost, calls)
	}
	return "", ""
}

func timeDetail(r Reason, calls int) string {
	return fmt.Sprintf("%s reached after %d model calls", r, calls)
}

// A steer tells the model at a half and at a fifth of its budget, and before the last call, what is left. It speaks at the end of the
// newest message only, so that the messages before stay as they are.
type steer struct {
	started time.Time
	told    int // levels told so far
}

// note is what to tell after a turn, "" for nothing.
func (s *steer) note(l Limits, calls int, u transcript.Usage, now time.Time) string {
	left, text := 1.0, ""
	scarcer := func(share float64, what string) {
		if share < left {
			left, text = share, what
		}
	}
	if l.Steps > 0 {
		scarcer(float64(l.Steps-calls)/float64(l.Steps), fmt.Sprintf("%d of %d model calls are left", l.Steps-calls, l.Steps))
	}
	if l.Cost > 0 {
		scarcer((l.Cost-u.Cost)/l.Cost, fmt.Sprintf("%.0f %% of the money is left", max(0, 100*(l.Cost-u.Cost)/l.Cost)))
	}
	if whole := l.Deadline.Sub(s.started); !l.Deadline.IsZero() && whole > 0 {
		rest := l.Deadline.Sub(now)
		scarcer(rest.Seconds()/whole.Seconds(), fmt.Sprintf("%s of %s are left", rest.Round(time.Second), whole.Round(time.Second)))
	}
	level, advice := 0, ""
	switch {
	case l.Steps > 0 && l.Steps-calls == 1:
		level, text, advice = 3, "1 model call is left", "Call submit now."
	case left <= 0.2:
		level, advice = 2, "Bring the change to an end, then submit."
	case left <= 0.5:
		level, advice = 1, "Go for the least change that solves the issue."
	}
	if level <= s.told || left <= 0 { // nobody reads it when nothing is left
		return ""
	}
	s.told = level
	return fmt.Sprintf("[Budget: %s. %s]", text, advice)
}

// add sums up usage: estimated when any part is, of known cost when every part is.
func add(a, b transcript.Usage) transcript.Usage {
	return transcript.Usage{
		Prompt:     a.Prompt + b.Prompt,
		Cached:     a.Cached + b.Cached,
		Completion: a.Completion + b.Completion,
		Estimated:  a.Estimated || b.Estimated,
		Cost:       a.Cost + b.Cost,
		CostKnown:  a.CostKnown && b.CostKnown,
	}
}
