package actions

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrParentGone is the cause of a context that WatchParent has cancelled.
var ErrParentGone = errors.New("the process that started this one is gone: the job was probably cancelled")

// parentPoll is how often the parent is looked for. Polling, since the kernel's own signal
// (PR_SET_PDEATHSIG) follows the parent's thread, which a runner written in Go may end any time.
const parentPoll = 500 * time.Millisecond

// WatchParent cancels when the parent process is gone (the runner kills only the direct
// child). context.Cause then is ErrParentGone.
func WatchParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(parentPoll)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// An orphan gets another parent: pid 1, or a subreaper.
				if os.Getppid() != parent {
					cancel(ErrParentGone)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
