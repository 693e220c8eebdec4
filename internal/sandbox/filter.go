package sandbox

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterOptions vary the system call filter.
type filterOptions struct {
	Broker    bool // connect goes to the broker; else connect is left alone
	Datagrams bool // internet datagram sockets, for name resolution: setup with an open network
}

// filter is the program for an architecture (unix.AUDIT_ARCH_X86_64 or unix.AUDIT_ARCH_AARCH64).
func filter(arch uint32, o filterOptions) ([]unix.SockFilter, error) {
	instructions, err := filterCode(arch, o)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("assembling the system call filter: %w", err)
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return program, nil
}

// nativeArch is the architecture this binary was built for; 0 where there is no filter for it.
func nativeArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// Places in struct seccomp_data (seccomp(2)). Both architectures are little-endian: an argument's low half comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// x32Bit marks the calls of the x32 ABI, which come with the architecture of amd64 but other numbers.
const x32Bit = 0x40000000

// filterCode is the filter before it is assembled.
func filterCode(arch uint32, o filterOptions) (code, error) {
	var number func(call) int
	switch arch {
	case unix.AUDIT_ARCH_X86_64:
		number = func(c call) int { return c.amd64 }
	case unix.AUDIT_ARCH_AARCH64:
		number = func(c call) int { return c.arm64 }
	default:
		return nil, fmt.Errorf("there is no system call filter for the architecture %#x: it is built for amd64 and arm64", arch)
	}
	var rules []span
	for name, body := range filterRules(o) {
		c, known := calls[name]
		if !known {
			return nil, fmt.Errorf("the system call %s has no number", name)
		}
		if n := number(c); n != absent {
			rules = append(rules, span{first: uint32(n), body: body}) // #nosec G115 -- from the table
		}
	}
	program := seq(load(offArch), when(bpf.JumpNotEqual, arch, kill), load(offNumber))
	if arch == unix.AUDIT_ARCH_X86_64 {
		program = seq(program, when(bpf.JumpGreaterOrEqual, x32Bit, kill))
	}
	return seq(program, search(spans(rules))), nil
}

// A span is a run of call numbers, up to the next span, that have the same answer.
type span struct {
	first uint32
	body  code
}

// spans covers all numbers: calls without a rule are allowed, and those that this program does not know do not exist.
func spans(rules []span) []span {
	slices.SortFunc(rules, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var all []span
	add := func(first uint32, body code) {
		if n := len(all); n > 0 && all[n-1].first == first {
			all[n-1].body = body
		} else {
			all = append(all, span{first, body})
		}
	}
	add(0, allow)
	for _, r := range rules {
		add(r.first, r.body)
		add(r.first+1, allow)
	}
	add(lastCall+1, deny(unix.ENOSYS))
	return slices.CompactFunc(all, func(a, b span) bool { return slices.Equal(a.body, b.body) })
}

// search finds the span of the number in the accumulator by halving. The kernel runs the filter once for every number when it is
// installed, to know which calls need no filter at all (since Linux 5.11), and that is most of the cost of a command's filter:
// halving makes it half of what a list would take (0.11 against 0.21 ms, measured).
func search(spans []span) code {
	if len(spans) == 1 {
		return spans[0].body
	}
	middle := len(spans) / 2
	below, above := search(spans[:middle]), search(spans[middle:])
	if n := len(below); n <= 0xff {
		return seq(code{bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[middle].first, SkipTrue: uint8(n)}}, below, above)
	}
	// A conditional jump is at most 255 instructions long.
	return seq(code{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[middle].first, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(below))}, // #nosec G115 -- a program has at most 4,096 instructions
	}, below, above)
}

// code is a piece of the program. A body of a rule is code that ends in an answer on every way through it.
type code []bpf.Instruction

func seq(parts ...code) code { return slices.Concat(parts...) }

// load puts a word of struct seccomp_data into the accumulator.
func load(offset int) code {
	return code{bpf.LoadAbsolute{Off: uint32(offset), Size: 4}} // #nosec G115 -- a small constant
}

// low is the low half of an argument, which is all that the kernel looks at where it is an int.
func low(arg int) code { return load(offArgs + 8*arg) }

// high is the other half, for pointers.
func high(arg int) code { return load(offArgs + 8*arg + 4) }

// mask keeps these bits of the accumulator.
func mask(bits uint32) code { return code{bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: bits}} }

// when runs body, which ends in an answer, if the accumulator passes the test; else the program goes on behind it.
func when(test bpf.JumpTest, value uint32, body code) code {
	return seq(code{bpf.JumpIf{Cond: test, Val: value, SkipFalse: uint8(len(body))}}, body) // #nosec G115 -- a body has few instructions
}

// among is when for any of the values.
func among(values []uint32, body code) code {
	var all code
	for _, v := range values {
		all = seq(all, when(bpf.JumpEqual, v, body))
	}
	return all
}

// The answers.
var (
	allow  = answer(unix.SECCOMP_RET_ALLOW)
	kill   = answer(unix.SECCOMP_RET_KILL_PROCESS)
	notify = answer(unix.SECCOMP_RET_USER_NOTIF)
)

func deny(e unix.Errno) code { return answer(unix.SECCOMP_RET_ERRNO | uint32(e)) } // #nosec G115 -- an errno

func answer(value uint32) code { return code{bpf.RetConstant{Val: value}} }
