//nolint:gosec // bare system calls are what this program is for
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

var processAttempts = map[string]func([]string) verdict{
	"environ":       func(args []string) verdict { return readProc(args, false, "environ") },
	"environ-tasks": func(args []string) verdict { return readProc(args, true, "environ") },
	"mem":           openMemory,
	"maps":          func(args []string) verdict { return readProc(args, false, "maps", "smaps", "auxv", "stack", "pagemap") },
	"links":         readLinks,
	"seize":         seize,
	"vm-read":       vmRead,
	"vm-write":      vmWrite,
	"pidfd-getfd":   takeDescriptor,
	"cmdline":       cmdlines,
	"own":           own,
	"kill":          func(args []string) verdict { return signalAll(args, false) },
	"tgkill":        func(args []string) verdict { return signalAll(args, true) },
	"pidfd-signal":  pidfdSignal,
	"kill-parents":  killParents,
	"kill-all":      killAll,
	"prlimit":       prlimit,
	"priority":      priority,
	"affinity":      affinity,
	"scheduler":     scheduler,
	"io-priority":   ioPriority,
}

// outsiders are the processes an attempt is made on: those given, or, behind the word "all", every process
// that has another leader.
func outsiders(args []string) []int {
	pids := given(args)
	if len(args) == 0 || args[0] != "all" {
		return pids
	}
	seen := map[int]bool{os.Getpid(): true}
	for _, pid := range pids {
		seen[pid] = true
	}
	session, err := unix.Getsid(0)
	if err != nil {
		session = os.Getpid()
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return pids
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || seen[pid] {
			continue
		}
		if _, theirs, err := parentAndSession(pid); err == nil && theirs != session {
			pids = append(pids, pid)
		}
	}
	return pids
}

func given(args []string) []int {
	var pids []int
	for _, arg := range args {
		if pid, err := strconv.Atoi(arg); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func parentAndSession(pid int) (parent, session int, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name in parentheses may hold blanks and parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 4 {
		return 0, 0, errors.New("short stat")
	}
	parent, err = strconv.Atoi(fields[1])
	if err == nil {
		session, err = strconv.Atoi(fields[3])
	}
	return parent, session, err
}

// readProc reads files of every outsider, or of every task of theirs.
func readProc(args []string, tasks bool, names ...string) verdict {
	var t tries
	for _, pid := range outsiders(args) {
		folders := []string{fmt.Sprintf("/proc/%d", pid)}
		if tasks {
			folders, _ = filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // a good pattern
		}
		for _, folder := range folders {
			for _, name := range names {
				t.read(filepath.Join(folder, name))
			}
		}
	}
	return t.verdict()
}

// openMemory opens /proc/PID/mem, for which the kernel asks all it would ask before a read.
func openMemory(args []string) verdict {
	var t tries
	for _, pid := range outsiders(args) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || len(line) == 0 {
			continue // a thread of the kernel has no memory to read
		}
		for _, mode := range []int{os.O_RDONLY, os.O_RDWR} {
			f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), mode, 0)
			if err == nil {
				err = f.Close()
			}
			t.note(fmt.Sprintf("opened the memory of %d", pid), err)
		}
	}
	return t.verdict()
}

func readLinks(args []string) verdict {
	var t tries
	for _, pid := range outsiders(args) {
		for _, name := range []string{"cwd", "root", "exe"} {
			path := fmt.Sprintf("/proc/%d/%s", pid, name)
			target, err := os.Readlink(path)
			if errors.Is(err, unix.ENOENT) {
				continue // a thread of the kernel
			}
			t.note(path+" → "+target, err)
			if name != "exe" {
				_, err = os.ReadDir(path + "/")
				t.note("listed "+path, err)
			}
		}
		// Their numbers may be seen; what they are must not.
		folder := fmt.Sprintf("/proc/%d/fd", pid)
		descriptors, err := os.ReadDir(folder)
		if err != nil {
			t.note(folder, err)
		}
		for _, descriptor := range descriptors {
			path := filepath.Join(folder, descriptor.Name())
			target, err := os.Readlink(path)
			t.note(path+" → "+target, err)
		}
	}
	return t.verdict()
}

func seize(args []string) verdict {
	runtime.LockOSThread()
	var t tries
	for _, pid := range outsiders(args) {
		t.note(fmt.Sprintf("seized %d", pid), unix.PtraceSeize(pid))
	}
	return t.verdict()
}

// permitted turns an answer that only comes behind the permission check into success.
func permitted(err error) error {
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

func vmRead(args []string) verdict {
	var t tries
	for _, pid := range outsiders(args) {
		buffer := make([]byte, 8)
		local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
		_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 4096, Len: 8}}, 0)
		t.note(fmt.Sprintf("read the memory of %d", pid), permitted(err))
	}
	return t.verdict()
}

func vmWrite(args []string) verdict {
	var t tries
	for _, pid := range outsiders(args) {
		buffer := make([]byte, 8)
		local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
		_, err := unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: 4096, Len: 8}}, 0)
		t.note(fmt.Sprintf("wrote the memory of %d", pid), permitted(err))
	}
	return t.verdict()
}

func takeDescriptor(args []string) verdict {
	var t tries
	for _, pid := range outsiders(args) {
		process, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.note("", err)
			continue
		}
		for fd := range 8 {
			got, err := unix.PidfdGetfd(process, fd, 0)
			if errors.Is(err, unix.EBADF) {
				err = nil // asked and answered: there is none of this number
			} else if err == nil {
				_ = unix.Close(got)
			}
			t.note(fmt.Sprintf("took descriptor %d of %d", fd, pid), err)
		}
		_ = unix.Close(process)
	}
	return t.verdict()
}

// cmdlines shows planted secrets in the arguments of processes. args: the end of the secrets' names, and names to be left out.
func cmdlines(args []string) verdict {
	var t tries
	if len(args) == 0 {
		return untested("the end of the secrets' names is needed")
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // a good pattern
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil {
			t.note(path, err)
			continue
		}
		for _, secret := range canary.FindAll(line, -1) {
			name := strings.TrimSuffix(strings.TrimPrefix(string(secret), "canary-"), "-"+args[0])
			if strings.Contains(name, "-") || slices.Contains(args[1:], name) {
				continue // of another scene, or the bait
			}
			fmt.Printf("read %s: %s\n", path, secret)
			t.note("a secret stands in "+path, nil)
		}
	}
	return t.verdict()
}

// own looks for what the caller left in this process: variables and descriptors.
func own([]string) verdict {
	var t tries
	for _, variable := range os.Environ() {
		for _, secret := range canary.FindAllString(variable, -1) {
			name, _, _ := strings.Cut(variable, "=")
			fmt.Printf("read own environment: %s\n", secret)
			t.note("the environment holds a secret in "+name, nil)
		}
	}
	for fd := range 1 << 10 {
		var st unix.Stat_t
		if fd <= 2 || unix.Fstat(fd, &st) != nil {
			continue
		}
		// What this process has opened itself closes on exec; what it inherited does not.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		target, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) // its name only helps to understand
		data := make([]byte, 1<<12)
		if n, _ := unix.Pread(fd, data, 0); n > 0 {
			show(target, data[:n])
		}
		t.note(fmt.Sprintf("descriptor %d is open: %s", fd, target), nil)
	}
	return t.verdict()
}

// signalAll asks for permission on every outsider and kills those given by number.
func signalAll(args []string, tasks bool) verdict {
	var t tries
	named := map[int]bool{}
	for _, pid := range given(args) {
		named[pid] = true
	}
	for _, pid := range outsiders(args) {
		signal := unix.Signal(0)
		if named[pid] {
			signal = unix.SIGKILL
		}
		if !tasks {
			t.note(fmt.Sprintf("signalled %d", pid), unix.Kill(pid, signal))
			continue
		}
		list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // a good pattern
		for _, task := range list {
			tid, err := strconv.Atoi(filepath.Base(task))
			if err == nil {
				t.note(fmt.Sprintf("signalled task %d of %d", tid, pid), unix.Tgkill(pid, tid, signal))
			}
		}
	}
	return t.verdict()
}

func pidfdSignal(args []string) verdict {
	var t tries
	named := map[int]bool{}
	for _, pid := range given(args) {
		named[pid] = true
	}
	for _, pid := range outsiders(args) {
		process, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			signal := unix.Signal(0)
			if named[pid] {
				signal = unix.SIGKILL
			}
			err = unix.PidfdSendSignal(process, signal, nil, 0)
			_ = unix.Close(process)
		}
		t.note(fmt.Sprintf("signalled %d", pid), err)
	}
	return t.verdict()
}

// killParents kills executor and action, as far as they can be seen.
func killParents([]string) verdict {
	var t tries
	for pid := os.Getppid(); pid > 0; {
		parent, _, err := parentAndSession(pid)
		if err == nil && pid > 1 {
			t.note(fmt.Sprintf("killed the ancestor %d", pid), unix.Kill(pid, unix.SIGKILL))
		}
		if err != nil || len(t.through) > 0 {
			break
		}
		if pid == 1 {
			// The first process of a pid namespace does not die by it; that it may be signalled says enough.
			t.note("signalled the first process", unix.Kill(1, 0))
		}
		pid = parent
	}
	return t.verdict()
}

// killAll kills everything it may. Where it runs as root that would be the machine.
func killAll([]string) verdict {
	if os.Geteuid() == 0 {
		return untested("as root it would end the machine")
	}
	if err := unix.Kill(-1, unix.SIGKILL); err != nil {
		return refused("%v", err)
	}
	return verdict{wordDone, "killed what could be killed"}
}

// others are those given, and the parent: inside that is the executor.
func others(args []string) []int {
	pids := given(args)
	if len(args) > 0 && args[0] == "all" {
		pids = append(pids, os.Getppid())
	}
	return pids
}

func prlimit(args []string) verdict {
	var t tries
	for _, pid := range others(args) {
		limit := unix.Rlimit{Cur: 333, Max: 333}
		t.note(fmt.Sprintf("set a limit of %d", pid), unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil))
	}
	return t.verdict()
}

// priority changes, behind the word "user", also that of every process of the user.
func priority(args []string) verdict {
	var t tries
	for _, pid := range others(args) {
		t.note(fmt.Sprintf("set the priority of %d", pid), unix.Setpriority(unix.PRIO_PROCESS, pid, 7))
		// 0 is a group outside of this pid namespace; as an argument it would be the own one.
		if group, err := unix.Getpgid(pid); err == nil && group != 0 {
			t.note(fmt.Sprintf("set the priority of group %d", group), unix.Setpriority(unix.PRIO_PGRP, group, 7))
		}
	}
	if os.Geteuid() != 0 && slices.Contains(args, "user") {
		t.note("set the priority of the user", unix.Setpriority(unix.PRIO_USER, os.Getuid(), 7))
	}
	return t.verdict()
}

func affinity(args []string) verdict {
	var t tries
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return untested("sched_getaffinity: %v", err)
	}
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			set.Zero()
			set.Set(cpu)
			break
		}
	}
	for _, pid := range others(args) {
		t.note(fmt.Sprintf("set the affinity of %d", pid), unix.SchedSetaffinity(pid, &set))
	}
	return t.verdict()
}

func scheduler(args []string) verdict {
	const batch = 3 // SCHED_BATCH
	var t tries
	for _, pid := range others(args) {
		var none int32
		_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), batch, uintptr(unsafe.Pointer(&none)))
		t.note(fmt.Sprintf("set the scheduler of %d", pid), errnoOrNil(errno))
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: batch}
		t.note(fmt.Sprintf("set the scheduler of %d", pid), unix.SchedSetAttr(pid, &attr, 0))
	}
	return t.verdict()
}

func ioPriority(args []string) verdict {
	const idle = 3 << 13 // IOPRIO_CLASS_IDLE
	var t tries
	for _, pid := range others(args) {
		_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(pid), idle)
		t.note(fmt.Sprintf("set the i/o priority of %d", pid), errnoOrNil(errno))
	}
	return t.verdict()
}

func errnoOrNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
