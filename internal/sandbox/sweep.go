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

// descendants lists the processes below pid.
func descendants(pid int) []int {
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		next := children(queue[0])
		all = append(all, next...)
		queue = append(queue, next...)
	}
	return all
}

// children lists the processes whose parent is pid, from /proc/PID/task/TID/children.
func children(pid int) []int {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return nil // it has just ended
	}
	var all []int
	for _, entry := range entries {
		listed, err := os.ReadFile(tasks + "/" + entry.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(listed)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// listed lists the processes of a pid namespace, as its first process sees them.
func listed() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != 1 {
			all = append(all, pid)
		}
	}
	return all
}
