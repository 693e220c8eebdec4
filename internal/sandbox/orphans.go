package sandbox

import (
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A command of our own user can kill its reaper. Then its processes become children of this one, which is
// a subreaper for that reason, and are killed here: this process has no other children than reapers.

var (
	subreaper = sync.OnceValue(func() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

	reapersMu sync.Mutex
	reapers   = map[int]bool{} // started and not yet waited for
)

// begin starts a reaper.
func begin(cmd *exec.Cmd) error {
	reapersMu.Lock()
	defer reapersMu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	reapers[cmd.Process.Pid] = true
	return nil
}

// await waits for a reaper's end.
func await(cmd *exec.Cmd) error {
	err := cmd.Wait()
	reapersMu.Lock()
	defer reapersMu.Unlock()
	delete(reapers, cmd.Process.Pid)
	return err
}

// sweepOrphans kills what a killed reaper left behind, for at most deathLimit.
func sweepOrphans() {
	for end := time.Now().Add(deathLimit); time.Now().Before(end); time.Sleep(500 * time.Microsecond) {
		// No reaper starts meanwhile: a new one must not be taken for an orphan.
		reapersMu.Lock()
		orphans := orphaned()
		for _, pid := range orphans {
			below := append(descendants(pid), pid)
			for _, p := range below {
				_ = unix.Kill(p, unix.SIGSTOP)
			}
			for _, p := range append(below, descendants(pid)...) {
				_ = unix.Kill(p, unix.SIGKILL)
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		reapersMu.Unlock()
		if len(orphans) == 0 {
			return
		}
	}
}

// orphaned lists the children of this process that are no reapers.
func orphaned() []int {
	var orphans []int
	for _, pid := range children(os.Getpid()) {
		if !reapers[pid] {
			orphans = append(orphans, pid)
		}
	}
	return orphans
}
