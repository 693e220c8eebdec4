package sandbox

import (
	"bytes"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound what one command may use. A zero field means the default.
type Limits struct {
	Memory    int64         `json:"memory"`     // bytes of all processes of a command together; default 4 GiB
	Processes int           `json:"processes"`  // processes of a command at one time; default 512
	FileSize  int64         `json:"file_size"`  // bytes of one file that a command writes; default 1 GiB
	Disk      int64         `json:"disk"`       // bytes of worktree and private folders together; default 4 GiB
	OpenFiles int           `json:"open_files"` // descriptors of one process; default 8192
	CPU       time.Duration `json:"cpu"`        // processor time of all processes of a command together, in nanoseconds; default 1 h
	Output    int64         `json:"output"`     // bytes a command may print; default 128 MiB
}

func (l Limits) withDefaults() Limits {
	byDefault := func(n *int64, preset int64) {
		if *n <= 0 {
			*n = preset
		}
	}
	byDefault(&l.Memory, 4<<30)
	byDefault(&l.FileSize, 1<<30)
	byDefault(&l.Disk, 4<<30)
	byDefault(&l.Output, 128<<20)
	if l.Processes <= 0 {
		l.Processes = 512
	}
	if l.OpenFiles <= 0 {
		l.OpenFiles = 8192
	}
	if l.CPU <= 0 {
		l.CPU = time.Hour
	}
	return l
}

// threadsEach is how many threads a process may have on average: the kernel counts threads where the limit counts processes.
const threadsEach = 8

// limitProcess sets the resource limits of the calling process, which commands inherit. counted says that the kernel counts the
// commands' processes apart from those of others. Memory is not among them: RLIMIT_DATA keeps programs built with
// AddressSanitizer, which map terabytes, from starting; the watch measures what is really used.
func limitProcess(l Limits, counted bool) error {
	l = l.withDefaults()
	seconds := uint64((l.CPU + time.Second - 1) / time.Second) // #nosec G115 -- positive; the watch comes first
	limits := []struct {
		name       string
		resource   int
		soft, hard uint64
	}{
		{"core", unix.RLIMIT_CORE, 0, 0},
		{"open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles), uint64(l.OpenFiles)}, // #nosec G115 -- positive
		{"file size", unix.RLIMIT_FSIZE, uint64(l.FileSize), uint64(l.FileSize)},     // #nosec G115 -- positive
		{"processor time", unix.RLIMIT_CPU, seconds, seconds + 5},
	}
	if counted {
		n := uint64(l.Processes) * threadsEach // #nosec G115 -- positive
		limits = append(limits, struct {
			name       string
			resource   int
			soft, hard uint64
		}{"processes", unix.RLIMIT_NPROC, n, n})
	}
	for _, limit := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(limit.resource, &now); err != nil {
			return fmt.Errorf("reading the limit on %s: %w", limit.name, err)
		}
		// Not above what this process itself may have.
		now.Cur, now.Max = min(limit.soft, now.Max), min(limit.hard, now.Max)
		if err := unix.Setrlimit(limit.resource, &now); err != nil {
			return fmt.Errorf("setting the limit on %s: %w", limit.name, err)
		}
	}
	return nil
}

// hint names the limit that a failed command may have met, or is "".
func (l Limits) hint(r *Result) string {
	last := r.Tail
	if len(last) == 0 {
		last = r.Head
	}
	last = last[max(0, len(last)-4096):]
	says := func(text string) bool { return bytes.Contains(last, []byte(text)) }
	switch {
	case r.Exit == 128+int(unix.SIGXFSZ) || says("File too large") || says("EFBIG"):
		return "it may have met file-size-limit: " + size(l.FileSize) + " a file"
	case r.Exit == 128+int(unix.SIGXCPU):
		return "stopped by cpu-limit: " + l.CPU.String() + " of processor time"
	case says("No space left on device") || says("ENOSPC"):
		return "the disk is full, or it has met memory-limit, half of which /dev/shm may hold: " + size(l.Memory/2)
	case says("Too many open files") || says("EMFILE"):
		return fmt.Sprintf("it may have met open-files-limit: %d a process", l.OpenFiles)
	case says("Resource temporarily unavailable") || says("Cannot fork") || says("EAGAIN"):
		return fmt.Sprintf("it may have met process-limit: %d processes with %d threads each", l.Processes, threadsEach)
	}
	return ""
}

// size is n in the largest unit that needs no fraction.
func size(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
