package sandbox

import (
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Where commands share the host's network, loopback is a way to the services of others. A command may connect to a port when
// whoever would take the connection is a process of this sandbox, as the kernel's list of sockets and the processes' descriptors tell.

// listens says who takes connections to an address.
type listens int

const (
	listensNobody listens = iota
	listensMember         // processes of this sandbox, and nobody else
	listensOther          // somebody else, or it could not be told
)

// listening says who would take a connection to a loopback address. The list of a command's processes can miss one while others
// come and go, so a stranger is looked at again before it is called one.
func (b *broker) listening(to netip.AddrPort) listens {
	for attempt := 0; ; attempt++ {
		inodes, err := listenersOn(to)
		switch {
		case err == nil && len(inodes) == 0:
			return listensNobody
		case err == nil && b.hold(inodes):
			return listensMember
		case attempt == 1:
			return listensOther
		}
		time.Sleep(time.Millisecond)
	}
}

// listenersOn returns the inodes of all sockets that could take a connection to the address.
func listenersOn(to netip.AddrPort) (inodes []uint64, err error) {
	all, err := askListeners(to.Port())
	if err != nil { // a kernel without sock_diag(7), or a container's filter
		all, err = readListeners()
	}
	for _, s := range all {
		if takes(s.local, to) {
			inodes = append(inodes, s.inode)
		}
	}
	return inodes, err
}

// takes reports whether a socket that listens on local may get connections to the address. One that listens on all IPv6 addresses
// may get IPv4 as well; the table does not say whether.
func takes(local, to netip.AddrPort) bool {
	if local.Port() != to.Port() {
		return false
	}
	ip := local.Addr()
	return ip == to.Addr() || ip == netip.IPv6Unspecified() || ip == netip.IPv4Unspecified() && to.Addr().Is4()
}

// reached says who is at the other end of a connection to a loopback address: nobody when it has ended already.
func (b *broker) reached(fd int, to netip.AddrPort) listens {
	if l := b.listening(to); l != listensNobody {
		return l
	}
	// A server for one connection closes its port when it has it: look for the connection itself.
	name, err := unix.Getsockname(fd)
	if err != nil {
		return listensOther
	}
	var from netip.AddrPort
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		from = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)) // #nosec G115 -- a port
	case *unix.SockaddrInet6:
		from = netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)) // #nosec G115 -- a port
	}
	var ends []uint64
	err = eachTCP(func(s tcpSocket) bool {
		if s.inode != 0 && s.local == to && s.remote == from {
			ends = append(ends, s.inode)
		}
		return true
	})
	switch {
	case err == nil && len(ends) == 0:
		return listensNobody
	case err == nil && b.hold(ends):
		return listensMember
	}
	return listensOther
}

// descriptorsSeen bounds the work for one connect.
const descriptorsSeen = 1 << 17

// hold reports whether each of the sockets is in the hands of a process of this sandbox.
func (b *broker) hold(inodes []uint64) bool {
	missing := make(map[string]bool, len(inodes))
	for _, inode := range inodes {
		missing["socket:["+strconv.FormatUint(inode, 10)+"]"] = true
	}
	left := descriptorsSeen
	link := make([]byte, 64)
	for _, pid := range b.members() {
		folder, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
		if err != nil {
			continue // it has ended, or is closed to us
		}
		names, _ := folder.Readdirnames(left) // what could not be read stays missing
		for _, name := range names {
			if n, err := unix.Readlinkat(int(folder.Fd()), name, link); err == nil { // #nosec G115 -- a descriptor
				delete(missing, string(link[:n]))
			}
		}
		_ = folder.Close() // nothing was written
		left -= len(names)
		if len(missing) == 0 {
			return true
		}
		if left <= 0 {
			return false
		}
	}
	return false
}
