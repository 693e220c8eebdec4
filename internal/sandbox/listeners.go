package sandbox

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where commands share the host's network, loopback is a way to the services of others. A command may connect to a port when
// whoever would take the connection is a process of this sandbox, as /proc/net/tcp and the processes' descriptors tell.

// listens says who takes connections to an address.
type listens int

const (
	listensNobody listens = iota
	listensMember         // processes of this sandbox, and nobody else
	listensOther          // somebody else, or it could not be told
)

// A tcpSocket is a line of /proc/net/tcp or tcp6. IPv4-mapped addresses are unmapped.
type tcpSocket struct {
	local, remote netip.AddrPort
	listening     bool
	inode         uint64 // 0: no process has it
}

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
		case attempt == 2:
			return listensOther
		}
		time.Sleep(time.Millisecond)
	}
}

// listenersOn returns the inodes of all sockets that could take a connection to the address.
func listenersOn(to netip.AddrPort) (inodes []uint64, err error) {
	err = eachTCP(func(s tcpSocket) bool {
		if s.listening && takes(s.local, to) {
			inodes = append(inodes, s.inode)
		}
		// The kernel lists those that listen first (tcp_get_idx); of the others a busy machine has thousands.
		return s.listening
	})
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

// reached reports whether the other end of a connection is a process of this sandbox.
func (b *broker) reached(fd int, to netip.AddrPort) bool {
	switch b.listening(to) {
	case listensMember:
		return true
	case listensOther:
		return false
	case listensNobody:
	}
	// A server for one connection has closed its listener: look for the connection itself.
	name, err := unix.Getsockname(fd)
	if err != nil {
		return false
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
		if !s.listening && s.local == to && s.remote == from {
			ends = append(ends, s.inode)
		}
		return true
	})
	return err == nil && len(ends) > 0 && b.hold(ends)
}

// eachTCP visits the TCP sockets of this network namespace, each table until visit returns false.
func eachTCP(visit func(tcpSocket) bool) error {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(table)
		if errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			continue
		}
		if err != nil {
			return err
		}
		err = parseTCP(file, visit)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

var errTable = errors.New("an unknown form of /proc/net/tcp")

// parseTCP reads a table: a title, then a line a socket (proc_pid_net(5)).
func parseTCP(r io.Reader, visit func(tcpSocket) bool) error {
	lines := bufio.NewScanner(r)
	lines.Scan()
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			return errTable
		}
		local, localErr := parseHexAddress(fields[1])
		remote, remoteErr := parseHexAddress(fields[2])
		inode, inodeErr := strconv.ParseUint(fields[9], 10, 64)
		if err := errors.Join(localErr, remoteErr, inodeErr); err != nil {
			return err
		}
		const listen = "0A" // TCP_LISTEN
		if !visit(tcpSocket{local, remote, fields[3] == listen, inode}) {
			return nil
		}
	}
	return lines.Err()
}

// parseHexAddress reads an address as words of 32 bits in the machine's order, and a port: 0100007F:1F90.
func parseHexAddress(text string) (netip.AddrPort, error) {
	words, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(words)
	if err != nil {
		return netip.AddrPort{}, errTable
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, errTable
	}
	for word := range slices.Chunk(raw, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	ip, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, errTable
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), nil // #nosec G115 -- parsed as 16 bits
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
