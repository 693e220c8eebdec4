package pipeline

import (
	"context"
	"fmt"
	"time"
)

// tellEvery is the least time between two edits of the progress comment within a stage.
const tellEvery = time.Minute

// state is the text of the log's heartbeat.
func (r *run) state() string {
	text := fmt.Sprintf("%s elapsed", time.Since(r.started).Round(time.Second))
	if r.attempt > 0 {
		text += fmt.Sprintf(", attempt %d of %d, %d model calls, %s", r.attempt, r.Config.MaxAttempts, r.calls, cost(r.usage))
	}
	if r.doing != "" {
		text += ", " + oneLine(r.doing, 120)
	}
	return text
}

// tell writes the progress comment. It is a courtesy to people: its failure is a warning,
// never the end of a run.
func (r *run) tell(ctx context.Context) {
	r.told = time.Now()
	id, err := r.Forge.Comment(ctx, r.Issue, r.comment, r.Redact.Text(r.progressComment()))
	if err != nil {
		r.Log.Warnf("the progress comment could not be written: %v", err)
		return
	}
	r.comment = id
}

func (r *run) tellNowAndThen(ctx context.Context) {
	if time.Since(r.told) >= tellEvery {
		r.tell(ctx)
	}
}
