package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// How often a running command is measured: never in its first moments, so that short commands pay nothing; then when it could
// be at a limit at the earliest, and so seldom that measuring costs no more than a hundredth, but for commands of a hundred processes.
const (
	firstSample  = 50 * time.Millisecond
	betweenLeast = 25 * time.Millisecond
	betweenMost  = 250 * time.Millisecond
	betweenDisk  = 200 * time.Millisecond
	costShare    = 100
	forkTime     = 200 * time.Microsecond // a process more,
	fillRate     = 8                      // bytes of memory more in a nanosecond, at the fastest
	sharedEvery  = 5                      // samples between two looks for shared memory that nobody maps
	exactShare   = 20
	exactMost    = time.Second
	lookAgain    = 5 * time.Millisecond
	linksMax     = 20_000 // descriptors looked at for memory files, in one sample
)

// A watch measures a running command and ends it when it uses more than its limits.
//
// It does not see what happens between two samples, nor memory that the kernel keeps for sockets and pipes, nor memory files and shared
// pages that no process maps or has a readable descriptor of. Commands have the highest oom_score_adj, so that the kernel takes them first
// when memory runs out. Processor time is missed of children whose parent ignores their end. Memory that is shared and also in a file may
// count once where it is twice.
type watch struct {
	limits  Limits
	members func() []int // processes of the running command
	disk    *diskMeter   // of the sandbox, for all of its commands
	kill    func()       // ends the command; called once
	// sharedMemory is /dev/shm, whose files are memory; "" for none. Where it is not private, what it held before the command
	// does not count. What other programs put there meanwhile does: who owns what can be hidden, that it fills up cannot.
	sharedMemory string
	private      bool
	sharedBefore int64

	samples    int
	cpuSeen    time.Duration
	reaped     time.Duration // at the start
	swapBefore int64
	exactAfter time.Time
}

// start begins to measure. stop ends that and returns the limit that was exceeded in words for the agent, such as
// "memory-limit: the command used more than 4 GiB", or "".
func (w *watch) start() (stop func() (exceeded string)) {
	w.limits = w.limits.withDefaults()
	if !w.private {
		w.sharedBefore = w.sharedFiles()
	}
	w.reaped, w.swapBefore = reapedCPU(), freeSwap()
	w.disk.begin()

	var exceeded string
	var first sync.Once
	var over atomic.Bool
	ended := make(chan struct{})
	var finished sync.WaitGroup
	// A walk through large folders must not keep memory waiting.
	for _, look := range []look{w.sample, func() (string, time.Duration) { return w.sampleDisk(over.Load), betweenDisk }} {
		finished.Go(func() {
			if found := every(ended, look); found != "" {
				first.Do(func() { exceeded = found; w.kill() })
			}
		})
	}
	return func() string {
		over.Store(true)
		close(ended)
		finished.Wait()
		return exceeded
	}
}

// A look says what is exceeded, and when it may be at the earliest where nothing is.
type look func() (exceeded string, earliest time.Duration)

// every looks again and again until ended is closed or something is found.
func every(ended <-chan struct{}, look look) string {
	timer := time.NewTimer(firstSample)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return ""
		case <-timer.C:
		}
		began := time.Now()
		found, earliest := look()
		if found != "" {
			return found
		}
		timer.Reset(min(max(betweenLeast, earliest, costShare*time.Since(began)), betweenMost))
	}
}

// sample measures everything but the disk once.
func (w *watch) sample() (exceeded string, earliest time.Duration) {
	w.samples++
	cpu := reapedCPU() - w.reaped // before the rest: a process that ends in between must not count twice
	pids := w.members()
	if len(pids) > w.limits.Processes {
		return fmt.Sprintf("process-limit: the command had more than %d processes", w.limits.Processes), 0
	}
	members := usages(pids)
	for _, u := range members {
		cpu += u.cpu
	}
	if w.cpuSeen = max(w.cpuSeen, cpu); w.cpuSeen > w.limits.CPU {
		return "cpu-limit: the command used more than " + w.limits.CPU.String() + " of processor time", 0
	}
	used := w.memory(members)
	if used > w.limits.Memory {
		return "memory-limit: the command used more than " + size(w.limits.Memory), 0
	}
	return "", min(time.Duration(w.limits.Processes-len(pids))*forkTime, time.Duration((w.limits.Memory-used)/fillRate))
}

// memory is what members use: a sum that may be too high and is cheap; near the limit exactly, and again after a moment where
// it is more, since between vfork and exec one memory can look like two.
func (w *watch) memory(members map[int]usage) (used int64) {
	for look := 0; look < 3; look++ {
		if look > 0 {
			time.Sleep(lookAgain)
			members = usages(w.members())
		}
		files := w.sharedFiles()
		used = max(0, w.swapBefore-freeSwap()) // perhaps another's
		for _, u := range members {
			used += u.resident
		}
		if w.samples%sharedEvery == 0 || used+files > w.limits.Memory/2 {
			files += memoryFiles(members, linksMax)
		}
		if used += files; used <= w.limits.Memory {
			return used
		}
		began := time.Now()
		if look == 0 && began.Before(w.exactAfter) {
			return w.limits.Memory
		}
		private, shared := exactly(members)
		w.exactAfter = time.Now().Add(min(exactShare*time.Since(began), exactMost))
		if used = private + max(shared, files); used <= w.limits.Memory { // mapped files of memory are in both
			return used
		}
	}
	return used
}

// sampleDisk measures the folders once.
func (w *watch) sampleDisk(ended func() bool) string {
	if w.disk.exceeds(w.limits.Disk, w.members, ended) {
		return "disk-limit: worktree, HOME and TMPDIR together hold more than " + size(w.limits.Disk)
	}
	return ""
}

// sharedFiles is what lies in /dev/shm and counts.
func (w *watch) sharedFiles() int64 {
	var st unix.Statfs_t
	if w.sharedMemory == "" || unix.Statfs(w.sharedMemory, &st) != nil {
		return 0
	}
	return max(0, int64(st.Blocks-st.Bfree)*st.Bsize-w.sharedBefore) // #nosec G115 -- sizes of a file system
}

// memoryFiles is the memory of anonymous files (memfd_create(2)) that members hold open, each counted once. It looks at no
// more descriptors than given; which processes come first differs from time to time.
func memoryFiles(members map[int]usage, most int) int64 {
	var sum int64
	seen := map[fileID]bool{}
	for _, u := range members {
		_ = eachDescriptor(u.folder, func(path, to string) bool { // of one that is closed its mapped pages count
			most--
			if !strings.HasPrefix(to, "/memfd:") {
				return most > 0
			}
			var st unix.Stat_t
			if unix.Stat(path, &st) == nil && !seen[idOf(&st)] {
				seen[idOf(&st)] = true
				sum += st.Blocks * 512
			}
			return most > 0
		})
		if most <= 0 {
			break
		}
	}
	return sum
}
