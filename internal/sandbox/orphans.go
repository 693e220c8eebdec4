package sandbox

import (
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A command of our own user can kill its executor. Then its processes become children of this one, which is
// a subreaper for that reason, and are killed here: this process has no other children than executors.

var (
	subreaper = sync.OnceValue(func() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

	executorsMu sync.Mutex
	executors   = map[int]bool{} // started and not yet waited for
)

// begin starts an executor.
func begin(cmd *exec.Cmd) error {
	executorsMu.Lock()
	defer executorsMu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	executors[cmd.Process.Pid] = true
	return nil
}

// await waits for an executor's end.
func await(cmd *exec.Cmd) error {
	err := cmd.Wait()
	executorsMu.Lock()
	defer executorsMu.Unlock()
	delete(executors, cmd.Process.Pid)
	return err
}

// sweepOrphans kills what a killed executor left behind, for at most deathLimit.
func sweepOrphans() {
	for end := time.Now().Add(deathLimit); time.Now().Before(end); time.Sleep(500 * time.Microsecond) {
		// No executor starts meanwhile: a new one must not be taken for an orphan.
		executorsMu.Lock()
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
		executorsMu.Unlock()
		if len(orphans) == 0 {
			return
		}
	}
}

// orphaned lists the children of this process that are no executors.
func orphaned() []int {
	var orphans []int
	for _, pid := range children(os.Getpid()) {
		if !executors[pid] {
			orphans = append(orphans, pid)
		}
	}
	return orphans
}
