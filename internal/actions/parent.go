package actions

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ErrParentGone is the cause of a context that WatchParent has cancelled.
var ErrParentGone = errors.New("the process that started this one is gone: the job was probably cancelled")

// ErrUnread is the cause when nobody reads the log any more.
var ErrUnread = errors.New("nobody reads the log any more: the job was probably cancelled")

// parentPoll is how often the parent is looked for. Polling, since the kernel's own signal
// (PR_SET_PDEATHSIG) follows the parent's thread, which a runner written in Go may end any time.
const parentPoll = 500 * time.Millisecond

// WatchParent cancels when the parent process is gone (the runner kills only the direct
// child). context.Cause then is ErrParentGone. It cancels as well, with ErrUnread, when stdout or stderr is a pipe whose
// reader is gone: a write to it would otherwise kill the process before it could tell the forge.
func WatchParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	parent := os.Getppid()
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	go func() {
		ticker := time.NewTicker(parentPoll)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-unread:
				cancel(ErrUnread)
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
	return ctx, func() { signal.Stop(unread); cancel(context.Canceled) }
}
