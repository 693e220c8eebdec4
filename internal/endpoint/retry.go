package endpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxTries = 5
	// maxWait bounds a wait where the context has no deadline.
	maxWait = time.Hour
)

// backoff is how long to wait after the given try (from 1): half a second, doubled each time up to
// 30 s, half of it at random, so that many runs do not come back at the same moment.
func backoff(try int) time.Duration {
	d := min(500*time.Millisecond<<min(try-1, 10), 30*time.Second)
	return d/2 + rand.N(d/2+1) // #nosec G404 -- jitter, no secret
}

// wait waits for the next try. It returns at once with false when there is none: the failure is
// final, the tries are used up, or the wait would outlast the context's deadline.
func (c *chat) wait(ctx context.Context, e *Error, try int) bool {
	if !e.again() || try >= c.tries {
		return false
	}
	d := c.backoff(try)
	if e.RetryAfter > 0 {
		d = e.RetryAfter
	}
	left := maxWait
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	if d >= left {
		return false
	}
	if c.tell != nil {
		what := string(e.Kind)
		if e.Status != 0 {
			what = "status " + strconv.Itoa(e.Status)
		}
		c.tell(fmt.Sprintf("%s failed (%s: %s), try %d of %d follows", c.Name(), what, e.Message, try+1, c.tries), d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// retryAfter reads how long an endpoint asks to wait: Retry-After in seconds (also with a
// fraction) or as a date, OpenAI's retry-after-ms; 0 when it says nothing or the time has passed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := scaled(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := scaled(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

func scaled(s string, unit time.Duration) (time.Duration, bool) {
	const most = 1e7 * float64(time.Second)
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || v != v || v < 0 {
		return 0, false
	}
	return time.Duration(min(v*float64(unit), most)), true
}
