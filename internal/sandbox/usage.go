package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

var pageSize = int64(os.Getpagesize())

// residentOf is the memory of a process that is in RAM, shared pages included (proc_pid_statm(5)); 0 when it has ended.
func residentOf(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * pageSize
}

// proportionalOf is the memory of processes with shared pages divided among those that map them (proc_pid_smaps(5)). A process
// that does not let itself be read counts with all of its pages.
func proportionalOf(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
		if err != nil {
			sum += residentOf(pid)
			continue
		}
		for line := range bytes.Lines(text) {
			if value, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				var kib int64
				_, _ = fmt.Sscan(string(value), &kib)
				sum += kib << 10
				break
			}
		}
	}
	return sum
}

// ticks is the unit of times in /proc: USER_HZ, which is 100 on every architecture Go knows.
const ticks = 100

// cpuOf is the processor time of a process and of its children that it has waited for (proc_pid_stat(5)).
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name is in parentheses and may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0
	}
	var sum int64
	for _, field := range fields[11:15] {
		n, _ := strconv.ParseInt(string(field), 10, 64)
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks
}

// eachDescriptor calls f with the path and the target of every descriptor of a process.
func eachDescriptor(pid int, f func(path, to string)) {
	folder := "/proc/" + strconv.Itoa(pid) + "/fd"
	dir, err := os.Open(folder) // #nosec G304 -- of a process
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		path := folder + "/" + name
		if to, err := os.Readlink(path); err == nil {
			f(path, to)
		}
	}
}

// walkEvery is how often folders are walked at the least.
const walkEvery = 3 * time.Second

// diskSlack is how much may go from a file system before folders are walked again, in bytes; an exact walk costs.
const diskSlack = 64 << 20

// A diskMeter says when folders hold more than a limit. It looks at the free space, which costs nothing, and walks only
// when enough of it has gone.
type diskMeter struct {
	folders []string
	free    map[int64]int64 // file system → free bytes at the last walk
	walked  time.Time
	cost    time.Duration // of the last walk
}

func (m *diskMeter) begin(folders []string) {
	m.folders, m.walked = folders, time.Now().Add(-time.Second/2)
	m.free = freeSpace(folders)
}

// freeSpace is the free space of each file system that folders lie on.
func freeSpace(folders []string) map[int64]int64 {
	free := map[int64]int64{}
	for _, folder := range folders {
		var st unix.Statfs_t
		if unix.Statfs(folder, &st) == nil {
			id := int64(st.Fsid.Val[0])<<32 | int64(uint32(st.Fsid.Val[1])) // #nosec G115 -- a name
			free[id] = int64(st.Bfree) * st.Bsize                           // #nosec G115 -- a size
		}
	}
	return free
}

// exceeds reports whether the folders hold more than limit and the command has taken more space than it gave back: one that
// deletes goes on.
func (m *diskMeter) exceeds(limit int64) bool {
	free := freeSpace(m.folders)
	gone := false
	for id, before := range m.free {
		gone = gone || before-free[id] > min(diskSlack, limit/4)
	}
	// What has gone may be another's doing, and another may have given back what has gone: walked neither all the time nor never.
	since := time.Since(m.walked)
	if since < time.Second/2 || !gone && since < max(walkEvery, costShare*m.cost) {
		return false
	}
	began := time.Now()
	full := held(m.folders, limit) > limit
	m.free, m.walked, m.cost = free, time.Now(), time.Since(began)
	return full
}

// held is what the files below folders take on disk, each inode once. It stops above limit. Links are not followed, and nothing in the
// tree can block it.
func held(folders []string, limit int64) int64 {
	var sum int64
	seen := map[[2]uint64]bool{}
	var walk func(dir int, depth int)
	walk = func(dir, depth int) {
		file := os.NewFile(uintptr(dir), "folder") // #nosec G115 -- a descriptor
		defer func() { _ = file.Close() }()        // only read
		for sum <= limit {
			names, err := file.Readdirnames(256)
			for _, name := range names {
				var st unix.Stat_t
				if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
					continue
				}
				if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
					id := [2]uint64{st.Dev, st.Ino}
					if seen[id] {
						continue
					}
					seen[id] = true
				}
				sum += st.Blocks * 512
				if st.Mode&unix.S_IFMT == unix.S_IFDIR {
					if depth == maxDepth { // no project is so deep: somebody hides something
						sum = limit + 1
						return
					}
					if below, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
						walk(below, depth+1)
					}
				}
			}
			if err != nil {
				return
			}
		}
	}
	for _, folder := range folders {
		if dir, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			walk(dir, 0)
		}
	}
	return sum
}

// maxDepth bounds the descriptors of a walk.
const maxDepth = 256
