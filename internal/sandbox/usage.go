package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

var pageSize = int64(os.Getpagesize())

// ticks is the unit of times in /proc: USER_HZ, which is 100 on every architecture Go knows.
const ticks = 100

// A usage is what one process uses.
type usage struct {
	folder   string // in /proc, of a task that lives
	parent   int
	cpu      time.Duration // its own, and of the children it has waited for
	resident int64         // bytes in RAM, pages shared with others included
}

// usageOf reads a process's figures; ok is false when it has ended.
func usageOf(pid int) (u usage, ok bool) {
	folder := "/proc/" + strconv.Itoa(pid)
	s, ok := statOf(folder)
	if !ok {
		return usage{}, false
	}
	u = usage{
		folder: folder, parent: int(s.number[statParent]), resident: s.number[statResident] * pageSize,
		cpu: time.Duration(s.number[statCPU]+s.number[statCPU+1]+s.number[statCPU+2]+s.number[statCPU+3]) * time.Second / ticks,
	}
	if s.dead() && s.number[statThreads] > 1 {
		// The first thread has ended and the others go on: only their own folders tell of the memory and the descriptors.
		u.folder, u.resident = livingTask(folder)
	}
	return u, true
}

// usages leaves out what has ended.
func usages(pids []int) map[int]usage {
	all := make(map[int]usage, len(pids))
	for _, pid := range pids {
		if u, ok := usageOf(pid); ok {
			all[pid] = u
		}
	}
	return all
}

// Fields of a stat file after the name, counted from the state (proc_pid_stat(5)).
const (
	statParent   = 1
	statCPU      = 11 // and the three that follow
	statThreads  = 17
	statResident = 21
	statFields   = 22
)

// A stat is what a stat file says after the name.
type stat struct {
	state  byte
	number [statFields]int64
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

// statOf reads the stat file in the folder of a process or a task.
func statOf(folder string) (s stat, ok bool) {
	var buffer [1024]byte
	return parseStat(readShort(folder+"/stat", buffer[:]))
}

// parseStat parses a stat file. The name is in parentheses and may hold anything.
func parseStat(text []byte) (s stat, ok bool) {
	rest := text[bytes.LastIndexByte(text, ')')+1:]
	for i := range s.number {
		rest = bytes.TrimLeft(rest, " ")
		word, after, _ := bytes.Cut(rest, []byte(" "))
		if len(word) == 0 {
			return stat{}, false
		}
		if i == 0 {
			s.state = word[0]
		} else {
			s.number[i], _ = strconv.ParseInt(string(word), 10, 64)
		}
		rest = after
	}
	return s, true
}

// livingTask is the folder of one of a process's threads that has not ended, and the process's memory in RAM.
func livingTask(folder string) (task string, resident int64) {
	tasks, err := os.ReadDir(folder + "/task")
	if err != nil {
		return folder, 0
	}
	for _, entry := range tasks {
		task := folder + "/task/" + entry.Name()
		if s, ok := statOf(task); ok && !s.dead() {
			return task, s.number[statResident] * pageSize
		}
	}
	return folder, 0
}

// readShort returns what fits into buffer, or nothing.
func readShort(path string, buffer []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:n]
}

// exactly is the memory of processes with pages that several map divided among them (proc_pid_smaps(5)), swapped pages
// included; shared is the part of it that may also be in files. A process that does not let itself be read counts with all of
// its pages.
func exactly(members map[int]usage) (private, shared int64) {
	for pid, u := range members {
		if parent, ok := members[u.parent]; ok && parent.resident > 0 && sameMemory(pid, u.parent) {
			continue // between vfork and exec
		}
		text, err := os.ReadFile(u.folder + "/smaps_rollup")
		if errors.Is(err, fs.ErrPermission) {
			private += u.resident
		}
		for line := range bytes.Lines(text) {
			if n, ok := cutField(line, "Pss:"); ok {
				private += n
			} else if n, ok := cutField(line, "Pss_Shmem:"); ok {
				private -= n
				shared += n
			} else if n, ok := cutField(line, "SwapPss:"); ok {
				private += n
			}
		}
	}
	return private, shared
}

// sameMemory reports whether two processes have one address space. Where the kernel does not tell (kcmp(2)), they have not.
func sameMemory(a, b int) bool {
	const kcmpVM = 1
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0) // #nosec G115 -- process IDs
	return errno == 0 && order == 0
}

// reapedCPU is the processor time of all children that this process has waited for, and of theirs.
func reapedCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// freeSwap is the free swap space of the machine, in bytes.
func freeSwap() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Freeswap) * int64(info.Unit) // #nosec G115 -- a size
}

// eachDescriptor calls f with the path and the target of each descriptor in a process's folder until f returns false. An
// error says that the process lives and does not let itself be looked at.
func eachDescriptor(process string, f func(path, to string) bool) error {
	dir, err := os.Open(process + "/fd") // #nosec G304 -- of a process
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		path := process + "/fd/" + name
		if to, err := os.Readlink(path); err == nil && !f(path, to) {
			return nil
		}
	}
	return nil
}

// descriptorName returns the text of a link of /proc without the mark of a file that has no name any more.
func descriptorName(to string) (name string, gone bool) {
	const mark = " (deleted)"
	if n := len(to) - len(mark); n >= 0 && to[n:] == mark {
		return to[:n], true
	}
	return to, false
}

// cutField returns the value of "Name: value kB" at the start of a line, in bytes.
func cutField(line []byte, name string) (bytesOf int64, ok bool) {
	value, ok := bytes.CutPrefix(line, []byte(name))
	if !ok {
		return 0, false
	}
	var n int64
	for _, c := range bytes.TrimLeft(value, " \t") {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n << 10, true
}
