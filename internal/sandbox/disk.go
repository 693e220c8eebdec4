package sandbox

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of measuring folders. An exact walk costs, so it is made when enough free space has gone for the limit to be within
// reach, and else seldom: another program may have given back what a command took, and not every file system says at once what has gone.
const (
	firstStep    = 256 << 20 // bytes gone before the first walk, or a quarter of the limit
	leastStep    = 16 << 20  // before another one, or a sixteenth of the limit
	betweenWalks = 200 * time.Millisecond
	walkShare    = 20 // of the time at most 1/20 is for walks that are due,
	unaskedWalk  = 3 * time.Second
	unaskedShare = 100 // and 1/100 for others
	walkLimit    = 10 * time.Second
	openFilesMax = 100_000 // descriptors looked at in a walk
	leastFile    = 512     // bytes that even an empty file takes somewhere
)

// A diskMeter says when the folders of a sandbox hold more than a limit.
type diskMeter struct {
	folders []string
	space   func(folders []string) freeBytes
	born    freeBytes // when the sandbox began: what is hidden from the walks adds up from command to command

	// Of the running command.
	start   time.Time
	begun   freeBytes
	walked  freeBytes // at the last walk
	held    int64     // found by the last walk; -1 before the first
	next    time.Time // no walk before
	unasked time.Time // a walk at the latest
}

// newDiskMeter measures the folders of one sandbox, command by command.
func newDiskMeter(folders []string) *diskMeter {
	return &diskMeter{folders: folders, space: freeSpace, born: freeSpace(folders)}
}

// begin is the start of a command.
func (m *diskMeter) begin() {
	m.start, m.begun = time.Now(), m.space(m.folders)
	m.walked, m.held = m.begun, -1
	m.next, m.unasked = time.Time{}, m.start.Add(unaskedWalk)
}

// exceeds reports whether the folders hold more than the limit and the command has written part of it: where they held too much
// before, a command may delete. members are its processes, whose open files count though they have no name. ended breaks a walk off.
func (m *diskMeter) exceeds(limit int64, members func() []int, ended func() bool) bool {
	began := time.Now()
	gone, some := m.walked.lost(m.space(m.folders)), min(limit/16, leastStep)
	step := min(limit/4, firstStep)
	if m.held >= 0 {
		step = max(limit-m.held, some)
	}
	if began.Before(m.next) || gone < step && began.Before(m.unasked) {
		return false
	}
	h := holdings{since: m.start, enough: func(h *holdings) bool { return h.bytes > limit && h.fresh > some }, ended: ended}
	h.unnamed(members())
	h.walk(m.folders)
	if ended() {
		return false
	}
	cost := time.Since(began)
	m.next = began.Add(max(betweenWalks, walkShare*cost))
	m.unasked = began.Add(max(unaskedWalk, unaskedShare*cost))
	m.walked, m.held = m.space(m.folders), h.bytes
	// Space that is gone and not found is the command's where something is hidden, and another program's where nothing is.
	return h.enough(&h) || h.hidden && m.begun.lost(m.walked) > some && m.born.lost(m.walked) > limit
}

// freeBytes is the free space of file systems.
type freeBytes map[[2]int32]int64

// freeSpace is the free space of each file system that folders lie on.
func freeSpace(folders []string) freeBytes {
	free := freeBytes{}
	for _, folder := range folders {
		var st unix.Statfs_t
		if unix.Statfs(folder, &st) == nil {
			free[st.Fsid.Val] = int64(st.Bfree) * st.Bsize // #nosec G115 -- a size
		}
	}
	return free
}

// lost is how much has gone since.
func (f freeBytes) lost(now freeBytes) int64 {
	var sum int64
	for system, before := range f {
		if left, ok := now[system]; ok {
			sum += max(0, before-left)
		}
	}
	return sum
}

// holdings are what files take on disk.
type holdings struct {
	since  time.Time
	bytes  int64
	fresh  int64 // of files that were changed since
	hidden bool  // something could not be looked at
	enough func(*holdings) bool
	ended  func() bool
}

// add counts a file. One with several names is found by each of them, so that nothing has to be remembered; commands cannot
// give it a name elsewhere.
func (h *holdings) add(st *unix.Stat_t) {
	size := max(st.Blocks*512, leastFile) / int64(max(st.Nlink, 1)) // #nosec G115 -- a count
	h.bytes += size
	// Unlike the time of modification this one cannot be set.
	if !time.Unix(st.Ctim.Unix()).Before(h.since) {
		h.fresh += size
	}
}

// walk adds what the files below folders take, each inode once.
func (h *holdings) walk(folders []string) {
	over := func() bool { return h.enough(h) || h.ended() }
	roots := map[fileID]bool{}
	var open []int
	for _, folder := range folders {
		fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			h.hidden = true
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || roots[idOf(&st)] {
			_ = unix.Close(fd)
			continue
		}
		roots[idOf(&st)] = true
		open = append(open, fd)
	}
	for _, fd := range open {
		t := &tree{
			file: func(_ int, _ string, st *unix.Stat_t) { h.add(st) },
			enter: func(dir int, name string) (int, error) {
				return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			},
			folder: func(st *unix.Stat_t) { h.bytes += st.Blocks * 512 },
			ended:  over, until: time.Now().Add(walkLimit),
		}
		t.walk(fd)
		h.hidden = h.hidden || t.hidden && !over()
	}
}

// unnamed adds the files that processes hold open and that have no name any more.
func (h *holdings) unnamed(members []int) {
	seen := map[fileID]bool{}
	looked := 0
	for _, pid := range members {
		u, ok := usageOf(pid)
		if !ok {
			continue
		}
		err := eachDescriptor(u.folder, func(path, to string) bool {
			looked++
			name, gone := descriptorName(to)
			var st unix.Stat_t
			if gone && !inMemory(name) && unix.Stat(path, &st) == nil && st.Nlink == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG && !seen[idOf(&st)] {
				seen[idOf(&st)] = true
				h.add(&st)
			}
			return looked < openFilesMax
		})
		h.hidden = h.hidden || err != nil || looked >= openFilesMax
		if looked >= openFilesMax || h.ended() {
			return
		}
	}
}

// inMemory reports whether a descriptor's file is one of memory, which the memory limit counts.
func inMemory(name string) bool {
	return strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/dev/")
}
