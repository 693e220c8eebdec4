package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// How often a running command is measured: never in its first moments, so that short commands pay nothing, and
// so seldom that measuring costs no more than a fiftieth.
const (
	firstSample  = 50 * time.Millisecond
	betweenLeast = 25 * time.Millisecond
	betweenMost  = 250 * time.Millisecond
	costShare    = 50
	sharedEvery  = 8 // samples between two looks for shared memory that nobody maps
)

// A watch measures a running command and ends it when it uses more than its limits.
type watch struct {
	limits  Limits
	members func() []int // processes of the running command
	folders []string     // worktree and private folders
	kill    func()       // ends the command; may be called once
	// sharedMemory is /dev/shm, whose files are memory; "" for none. Where it is not private, what it held before the command
	// does not count. What other programs put there meanwhile does: who owns what can be hidden, that it fills up cannot.
	sharedMemory string
	private      bool
	sharedBefore int64

	samples int
	cpuSeen time.Duration
	disk    diskMeter
}

// start begins to measure. stop ends that and returns the limit that was exceeded in words for the agent, such as
// "memory-limit: the command used more than 4 GiB", or "".
func (w *watch) start() (stop func() (exceeded string)) {
	w.limits = w.limits.withDefaults()
	if !w.private {
		w.sharedBefore = w.sharedFiles()
	}
	ended := make(chan struct{})
	var finished sync.WaitGroup
	var exceeded string
	finished.Go(func() {
		timer := time.NewTimer(firstSample)
		defer timer.Stop()
		for {
			select {
			case <-ended:
				return
			case <-timer.C:
			}
			began := time.Now()
			if exceeded = w.sample(); exceeded != "" {
				w.kill()
				return
			}
			timer.Reset(min(max(betweenLeast, costShare*time.Since(began)), betweenMost))
		}
	})
	w.disk.begin(w.folders)
	return func() string {
		close(ended)
		finished.Wait()
		return exceeded
	}
}

// sample measures once.
func (w *watch) sample() string {
	w.samples++
	members := w.members()
	if len(members) > w.limits.Processes {
		return fmt.Sprintf("process-limit: the command had more than %d processes", w.limits.Processes)
	}
	var resident int64
	var cpu time.Duration
	for _, pid := range members {
		resident += residentOf(pid)
		cpu += cpuOf(pid)
	}
	// A process that has ended and was not waited for by a member is missing in the sum.
	w.cpuSeen = max(w.cpuSeen, cpu)
	if w.cpuSeen > w.limits.CPU {
		return "cpu-limit: the command used more than " + w.limits.CPU.String() + " of processor time"
	}
	files := w.sharedFiles()
	if w.samples%sharedEvery == 0 || resident+files > w.limits.Memory/2 {
		files += memoryFiles(members)
	}
	if resident+files > w.limits.Memory {
		// Pages that processes share were counted once for each: now exactly, and mapped files of memory not twice.
		if used := max(proportionalOf(members), files); used > w.limits.Memory {
			return "memory-limit: the command used more than " + size(w.limits.Memory)
		}
	}
	if w.disk.exceeds(w.limits.Disk) {
		return "disk-limit: worktree, HOME and TMPDIR together hold more than " + size(w.limits.Disk)
	}
	return ""
}

// sharedFiles is what lies in /dev/shm and counts.
func (w *watch) sharedFiles() int64 {
	var st unix.Statfs_t
	if w.sharedMemory == "" || unix.Statfs(w.sharedMemory, &st) != nil || st.Type != unix.TMPFS_MAGIC {
		return 0 // a folder of a disk is no memory
	}
	return max(0, int64(st.Blocks-st.Bfree)*st.Bsize-w.sharedBefore) // #nosec G115 -- sizes of a file system
}

// memoryFiles is the memory of anonymous files (memfd_create(2)) that members hold open, each counted once.
func memoryFiles(members []int) int64 {
	var sum int64
	seen := map[uint64]bool{}
	for _, pid := range members {
		eachDescriptor(pid, func(path, to string) {
			if !strings.HasPrefix(to, "/memfd:") {
				return
			}
			var st unix.Stat_t
			if unix.Stat(path, &st) == nil && !seen[st.Ino] {
				seen[st.Ino] = true
				sum += st.Blocks * 512
			}
		})
	}
	return sum
}
