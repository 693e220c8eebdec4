//nolint:gosec // bare system calls are what this program is for
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Each of these ends by itself when nothing stops it, so that it can be tried outside as well.
var limitAttempts = map[string]func([]string) verdict{
	"fork-bomb":     forkBomb,
	"allocate":      func(args []string) verdict { return fillMemory(args, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS) },
	"allocate-many": allocateMany,
	"share":         func(args []string) verdict { return fillMemory(args, unix.MAP_SHARED|unix.MAP_ANONYMOUS) },
	"memory-file":   memoryFile,
	"spin":          spin,
	"big-file":      bigFile,
	"fill":          fill,
	"flood":         flood,
	"many-files":    manyFiles,
}

func number(args []string, i int) int {
	if i >= len(args) {
		return 0
	}
	n, _ := strconv.Atoi(args[i]) // 0 tries nothing
	return n
}

// forkBomb makes processes that live for a while. args: how many.
func forkBomb(args []string) verdict {
	want := number(args, 0)
	for made := range want {
		pid, errno := fork()
		if errno != 0 {
			return refused("%s after %d", reason(errno), made)
		}
		if pid == 0 {
			nap(4 * time.Second)
			exit(0)
		}
		nap(2 * time.Millisecond)
	}
	nap(time.Second)
	return escaped("%d processes", want)
}

const mebibyte = 1 << 20

// fillMemory maps and touches memory. args: MiB.
func fillMemory(args []string, flags int) verdict {
	for done := 0; done < number(args, 0); done += 16 {
		data, err := unix.Mmap(-1, 0, 16*mebibyte, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			return refused("%s after %d MiB", reason(err), done)
		}
		touch(data)
	}
	nap(500 * time.Millisecond)
	return escaped("%s MiB in memory", args[0])
}

func touch(data []byte) {
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
}

// allocateMany has several processes that each stay below the limit. args: processes, MiB each.
func allocateMany(args []string) verdict {
	for made := range number(args, 0) {
		pid, errno := fork()
		if errno != 0 {
			return refused("%s after %d", reason(errno), made)
		}
		if pid == 0 {
			size := uintptr(number(args, 1)) * mebibyte
			at, _, errno := unix.RawSyscall6(unix.SYS_MMAP, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE, ^uintptr(0), 0)
			if errno != 0 || at == 0 {
				exit(uintptr(errno))
			}
			nap(8 * time.Second)
			exit(0)
		}
	}
	// All of them have their memory when none has failed for a while.
	nap(5 * time.Second)
	var status unix.WaitStatus
	if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); err == nil && pid > 0 {
		return refused("one of them ended: %s", reason(unix.Errno(status.ExitStatus())))
	}
	return escaped("%s processes with %s MiB each", args[0], args[1])
}

// memoryFile fills a file that has no name and is only memory.
func memoryFile(args []string) verdict {
	fd, err := unix.MemfdCreate("fill", unix.MFD_CLOEXEC)
	if err != nil {
		return refused("%s", reason(err))
	}
	return writeTo(os.NewFile(uintptr(fd), "fill"), number(args, 0))
}

func writeTo(f *os.File, mebibytes int) verdict {
	block := []byte(strings.Repeat("x", mebibyte))
	for done := range mebibytes {
		if _, err := f.Write(block); err != nil {
			return refused("%s after %d MiB", reason(err), done)
		}
	}
	nap(500 * time.Millisecond)
	return escaped("%d MiB in %s", mebibytes, f.Name())
}

// spin keeps all processors busy. args: seconds of processor time.
func spin(args []string) verdict {
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for used() < time.Duration(number(args, 0))*time.Second {
				for range 1 << 20 {
				}
			}
		})
	}
	all.Wait()
	return escaped("%s seconds of processor time", args[0])
}

// used is this process's processor time.
func used() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return time.Hour
	}
	return time.Duration(ts.Nano())
}

// bigFile writes one file. args: MiB, path.
func bigFile(args []string) verdict {
	f, err := os.Create(args[1])
	if err != nil {
		return refused("%s", reason(err))
	}
	defer os.Remove(args[1]) //nolint:errcheck // may be gone
	return writeTo(f, number(args, 0))
}

// fill writes files of 5 MiB into a folder. args: MiB, folder.
func fill(args []string) verdict {
	block := []byte(strings.Repeat("x", 5*mebibyte))
	folder := args[1]
	if strings.HasPrefix(folder, "$") {
		folder = os.Getenv(folder[1:])
	}
	folder = filepath.Join(folder, "fill")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return refused("%s", reason(err))
	}
	defer os.RemoveAll(folder) //nolint:errcheck // may be gone
	for done := 0; done < number(args, 0); done += 5 {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(done)), block, 0o600); err != nil {
			return refused("%s after %d MiB", reason(err), done)
		}
		nap(20 * time.Millisecond)
	}
	nap(2 * time.Second)
	return escaped("%s MiB in %s", args[0], folder)
}

// flood prints. args: MiB, and milliseconds before it begins.
func flood(args []string) verdict {
	nap(time.Duration(number(args, 1)) * time.Millisecond)
	block := []byte(strings.Repeat("y\n", mebibyte/2))
	for done := range number(args, 0) {
		if _, err := os.Stdout.Write(block); err != nil {
			return refused("%s after %d MiB", reason(err), done)
		}
	}
	return escaped("%s MiB of output", args[0])
}

// manyFiles opens descriptors. args: how many.
func manyFiles(args []string) verdict {
	want := number(args, 0)
	limit := unix.Rlimit{Cur: uint64(want) + 64, Max: uint64(want) + 64}
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) // only where it may be raised
	var hard unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &hard); err == nil {
		hard.Cur = hard.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &hard)
	}
	for made := range want {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return refused("%s after %d", reason(err), made)
		}
	}
	return escaped("%d descriptors", want)
}
