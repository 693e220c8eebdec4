package sandbox

import (
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// guard stands before a command's filter and keeps signals from the executor's process and from the thread that starts the command: that
// thread has entered the command's own domain, where Landlock lets signals through, and lives for a moment after the start.
func guard(process, thread int) ([]unix.SockFilter, error) {
	refused := []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN}
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}
	for i, number := range refused {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipTrue: uint8(len(refused) - i)}) // #nosec G115 -- six at most
	}
	program = append(
		program,
		bpf.Jump{Skip: 4},
		bpf.LoadAbsolute{Off: 16, Size: 4}, // the first argument; the kernel takes its lower half
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(process), SkipTrue: 1}, // #nosec G115 -- a process
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(thread), SkipFalse: 1}, // #nosec G115 -- a thread
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("building the guard of the executor: %w", err)
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filters[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filters, nil
}
