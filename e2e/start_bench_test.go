package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"issuesmith/e2e/model"
	"issuesmith/e2e/stand"
)

// BenchmarkActionStart is the time from the start of the action's step to the comment that says
// "is working": cold, where the program is built first (Go there, its caches empty, no tool cache),
// and warm, where the release carries it. Budget when warm: 2 s.
func BenchmarkActionStart(b *testing.B) {
	b.Run("warm", func(b *testing.B) { startTimes(b, setup{}, 7) })
	b.Run("cold", func(b *testing.B) {
		startTimes(b, setup{uses: "issuesmith/source@v1", runner: "runner-1", time: 12 * time.Minute}, 1)
	})
}

// startTimes queues issues one after the other and reports the median.
func startTimes(b *testing.B, s setup, runs int) {
	conversations := make([]model.Conversation, runs)
	for i := range conversations {
		conversations[i] = repaired()
	}
	c := open(b, s, conversations...)
	var times []time.Duration
	for i := range runs {
		var told time.Time
		c.hook(stand.Hook{Match: stand.API("POST", "/comments"), After: func(stand.Request) { told = time.Now() }})
		c.queue(pythonTitle, pythonBody)
		run := c.run(i)
		c.ended(run, 0, "opened")
		times = append(times, told.Sub(stepStart(b, run.Log)))
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds(), "s-median")
	b.ReportMetric(times[len(times)-1].Seconds(), "s-max")
	b.ReportMetric(0, "ns/op")
}

// stepStart is when the runner began with the action's step, by its log.
func stepStart(b *testing.B, log string) time.Time {
	b.Helper()
	for _, line := range strings.Split(log, "\n") {
		stamp, text, _ := strings.Cut(line, " ")
		if strings.HasPrefix(text, "::group::Run issuesmith/") {
			at, err := time.Parse(time.RFC3339Nano, stamp)
			if err != nil {
				b.Fatal(err)
			}
			return at
		}
	}
	b.Fatal("the log does not say when the step began")
	return time.Time{}
}
