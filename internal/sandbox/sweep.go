package sandbox

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweep kills every descendant of this process and returns when none is left. They
// are stopped before they are killed, so that a chain of forks cannot outrun it; an orphan comes back
// to us, since we are its subreaper. The kernel ends the loop: ECHILD.
func sweep() {
	for {
		stopped := descendants(os.Getpid())
		for _, pid := range stopped {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		for _, pid := range append(stopped, descendants(os.Getpid())...) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.ECHILD {
				return
			}
			if err == unix.EINTR {
				continue
			}
			if pid == 0 || err != nil {
				break
			}
		}
		time.Sleep(500 * time.Microsecond)
	}
}

// descendants lists the processes below pid, from /proc/PID/task/TID/children.
func descendants(pid int) []int {
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		tasks := "/proc/" + strconv.Itoa(queue[0]) + "/task"
		entries, err := os.ReadDir(tasks)
		if err != nil {
			continue // it has just ended
		}
		for _, entry := range entries {
			children, err := os.ReadFile(tasks + "/" + entry.Name() + "/children") // #nosec G304 -- below /proc
			if err != nil {
				continue
			}
			for _, field := range strings.Fields(string(children)) {
				if child, err := strconv.Atoi(field); err == nil {
					all = append(all, child)
					queue = append(queue, child)
				}
			}
		}
	}
	return all
}
