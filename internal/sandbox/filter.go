package sandbox

import "golang.org/x/sys/unix"

// filterOptions vary the system call filter.
type filterOptions struct {
	Broker    bool // connect goes to the broker; else connect is left alone
	Datagrams bool // internet datagram sockets, for name resolution: setup with an open network
}

// filter is the program for an architecture (unix.AUDIT_ARCH_X86_64 or unix.AUDIT_ARCH_AARCH64).
func filter(arch uint32, o filterOptions) ([]unix.SockFilter, error) { panic("not built") }

// nativeArch is the architecture this binary was built for.
func nativeArch() uint32 { panic("not built") }

// install puts the filter on the calling thread, which must be locked and have no-new-privs. With o.Broker it returns the
// listener that connects are reported to (close-on-exec), else -1.
func install(program []unix.SockFilter, listen bool) (listener int, err error) { panic("not built") }
