package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// errIdle ends a request whose endpoint fell silent.
var errIdle = errors.New("the endpoint fell silent")

// afterFinish is how long usage or the end of the stream may take once the turn is complete.
const afterFinish = 5 * time.Second

// A clock ends a request that waits too long. Before the first token any byte, a comment
// too, shows that the endpoint is at work (a local model is loaded for minutes); between tokens
// only data does. It belongs to the goroutine that reads the answer.
type clock struct {
	timer *time.Timer
	first time.Duration
	next  time.Duration
	limit time.Duration // the one that runs
	begun bool
}

func startClock(cancel context.CancelCauseFunc, first, next time.Duration) *clock {
	return &clock{
		timer: time.AfterFunc(first, func() { cancel(errIdle) }),
		first: first, next: next, limit: first,
	}
}

// token is called for every event once the answer has begun.
func (k *clock) token() {
	k.begun = true
	k.run(k.next)
}

// finished is called for every event after the finish reason.
func (k *clock) finished() { k.run(min(k.next, afterFinish)) }

func (k *clock) run(limit time.Duration) {
	k.limit = limit
	k.timer.Reset(limit)
}

// watch is r with the clock set back by its bytes until the first token.
func (k *clock) watch(r io.Reader) io.Reader { return watched{r, k} }

type watched struct {
	io.Reader
	clock *clock
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 && !w.clock.begun {
		w.clock.run(w.clock.first)
	}
	return n, err
}

// why says in words that the clock ran out.
func (k *clock) why() string {
	if k.begun {
		return fmt.Sprintf("nothing for %s in the middle of the answer (token-timeout)", k.limit)
	}
	return fmt.Sprintf("nothing for %s before the first token (first-token-timeout)", k.limit)
}
