package sandbox

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// addressLimit is the longest address connect(2) takes (struct sockaddr_storage).
const addressLimit = 128

// shortestInet6 is what the kernel takes for an IPv6 address: one without the scope (SIN6_LEN_RFC2133).
const shortestInet6 = unix.SizeofSockaddrInet6 - 4

// An address is where a connect leads, read from its bytes the way the kernel reads them.
type address struct {
	family   uint16         // as given: unix.AF_INET, AF_INET6, AF_UNIX or AF_UNSPEC
	inet     netip.AddrPort // IPv4-mapped addresses are IPv4, and the unspecified ones are loopback: that is where they lead
	path     string         // of AF_UNIX
	abstract bool           // path is a name without a file
}

// parseAddress reads a sockaddr. Its errors are those of connect(2), and EACCES for the families nobody has a socket of.
func parseAddress(raw []byte) (address, error) {
	if len(raw) < 2 || len(raw) > addressLimit {
		return address{}, unix.EINVAL
	}
	a := address{family: binary.NativeEndian.Uint16(raw)}
	switch a.family {
	case unix.AF_UNSPEC:
		return a, nil
	case unix.AF_INET:
		if len(raw) < unix.SizeofSockaddrInet4 {
			return address{}, unix.EINVAL
		}
		a.inet = destination(netip.AddrFrom4([4]byte(raw[4:8])), raw)
		return a, nil
	case unix.AF_INET6:
		if len(raw) < shortestInet6 {
			return address{}, unix.EINVAL
		}
		ip := netip.AddrFrom16([16]byte(raw[8:24]))
		if ip.IsLinkLocalUnicast() && len(raw) >= unix.SizeofSockaddrInet6 { // for others the kernel ignores the scope
			if scope := binary.NativeEndian.Uint32(raw[24:]); scope != 0 {
				ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
			}
		}
		a.inet = destination(ip, raw)
		return a, nil
	case unix.AF_UNIX:
		return a, a.parsePath(raw[2:])
	}
	return address{}, unix.EACCES
}

// destination is where ip leads, with the port, which stands at the same place for both families.
func destination(ip netip.Addr, raw []byte) netip.AddrPort {
	ip = ip.Unmap()
	switch {
	case ip == netip.IPv4Unspecified():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip == netip.IPv6Unspecified():
		ip = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(raw[2:]))
}

// parsePath reads what follows the family: a path that a zero byte or the end ends, or a zero byte and an abstract name.
func (a *address) parsePath(name []byte) error {
	if len(name) == 0 || len(name) > unix.SizeofSockaddrUnix-2 {
		return unix.EINVAL
	}
	if name[0] == 0 {
		a.path, a.abstract = string(name[1:]), true
		return nil
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	a.path = string(name)
	return nil
}

// String is the address for people, whatever bytes the path is made of.
func (a address) String() string {
	switch {
	case a.inet.IsValid():
		return a.inet.String()
	case a.family != unix.AF_UNIX:
		return ""
	}
	quoted := strconv.Quote(a.path)
	name := quoted[1 : len(quoted)-1]
	if a.abstract {
		return "@" + name
	}
	return name
}

// sockaddr is the destination for a socket of the address's own family.
func (a address) sockaddr() (domain int, to unix.Sockaddr) {
	if a.family == unix.AF_INET6 {
		// As16 maps an IPv4 destination again, so that the socket answers with the family its caller uses.
		return unix.AF_INET6, &unix.SockaddrInet6{Addr: a.inet.Addr().As16(), Port: int(a.inet.Port())}
	}
	return unix.AF_INET, &unix.SockaddrInet4{Addr: a.inet.Addr().As4(), Port: int(a.inet.Port())}
}
