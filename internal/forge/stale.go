package forge

import (
	"fmt"
	"time"
)

// Stale decides whether a claim may be taken over by the asker: its run is finished or
// cancelled; or it is of the asker's own run with a lower attempt; or, where the state is unknown,
// its own deadline has passed.
//
// The asker's limits never count: a sweep with a shorter one would rob a live worker. An active
// run keeps its claim beyond the deadline, for its job may still be publishing; the job itself ends.
func Stale(c Claim, asker Claim, state RunState, now time.Time) (stale bool, why string) {
	switch {
	case c.Run == asker.Run && c.Attempt < asker.Attempt:
		// "Re-run" after a kill: the run is active again, but the attempt that had the claim is dead.
		return true, fmt.Sprintf("attempt %d of run %s is over: this is attempt %d", c.Attempt, c.Run, asker.Attempt)
	case state == RunCancelled:
		return true, fmt.Sprintf("run %s was cancelled", c.Run)
	case state == RunFinished:
		return true, fmt.Sprintf("run %s has ended without giving up the claim: it was killed or lost its runner", c.Run)
	case state == RunActive:
		return false, "its run is active"
	case now.After(c.Deadline):
		return true, fmt.Sprintf("nothing can be learned about run %s, and its deadline (%s) has passed",
			c.Run, c.Deadline.UTC().Format(readable))
	}
	return false, "nothing can be learned about its run, and its deadline has not passed"
}
