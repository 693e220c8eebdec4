//nolint:gosec // bare system calls are what this program is for
package main

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

var networkAttempts = map[string]func([]string) verdict{
	"connect":             connectAll,
	"connect-mapped":      connectMapped,
	"connect-nonblocking": connectNonblocking,
	"bind-connect":        bindConnect,
	"mptcp":               func(args []string) verdict { return connectWith(args, unix.SOCK_STREAM, ipprotoMPTCP) },
	"fastopen-sendto":     func(args []string) verdict { return fastOpen(args, sendto) },
	"fastopen-sendmsg":    func(args []string) verdict { return fastOpen(args, sendmsg) },
	"fastopen-sendmmsg":   func(args []string) verdict { return fastOpen(args, sendmmsg) },
	"fastopen-connect":    fastOpenConnect,
	"udp":                 udp,
	"raw":                 raw,
	"families":            families,
	"vsock":               vsock,
	"netlink":             netlink,
	"packet":              packet,
	"unix":                unixStream,
	"unix-link":           unixLink,
	"unix-datagram":       unixDatagram,
	"abstract":            abstract,
	"race-address":        raceAddress,
	"race-path":           racePath,
	"listen":              listen,
}

const ipprotoMPTCP = 262

const hello = "hello from inside"

// raw bytes of a socket address, as the kernel takes it.
func sockaddr(address string) ([]byte, int, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, 0, err
	}
	if ap.Addr().Is4() {
		b := make([]byte, unix.SizeofSockaddrInet4)
		*(*uint16)(unsafe.Pointer(&b[0])) = unix.AF_INET
		b[2], b[3] = byte(ap.Port()>>8), byte(ap.Port())
		copy(b[4:], ap.Addr().AsSlice())
		return b, unix.AF_INET, nil
	}
	b := make([]byte, unix.SizeofSockaddrInet6)
	*(*uint16)(unsafe.Pointer(&b[0])) = unix.AF_INET6
	b[2], b[3] = byte(ap.Port()>>8), byte(ap.Port())
	a := ap.Addr().As16()
	copy(b[8:], a[:])
	return b, unix.AF_INET6, nil
}

func connectRaw(fd int, address []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptrOf(&address[0]), uintptr(len(address)))
	return errnoOrNil(errno)
}

// greet sends a few bytes, so that whoever listens has got something.
func greet(fd int) error {
	_, err := unix.Write(fd, []byte(hello))
	return err
}

func connectAll(args []string) verdict { return connectWith(args, unix.SOCK_STREAM, 0) }

func connectWith(args []string, kind, protocol int) verdict {
	var t tries
	for _, arg := range args {
		address, family, err := sockaddr(arg)
		if err != nil {
			t.note(arg, err)
			continue
		}
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			t.note(arg, err)
			continue
		}
		if protocol == ipprotoMPTCP {
			t.note("made a socket of another protocol", nil)
		}
		t.reach(fd, address, arg)
	}
	return t.verdict()
}

// reach connects a socket, greets whom it finds, notes what came of it and closes the socket.
func (t *tries) reach(fd int, address []byte, arg string) {
	err := connectRaw(fd, address)
	if err == nil {
		err = greet(fd)
	}
	t.note("connected to "+arg, err)
	_ = unix.Close(fd)
}

// connectMapped reaches IPv4 addresses through an IPv6 socket, and by lengths a reader may get wrong.
func connectMapped(args []string) verdict {
	var t tries
	for _, arg := range args {
		ap, err := netip.ParseAddrPort(arg)
		if err != nil || !ap.Addr().Is4() {
			continue
		}
		mapped := netip.AddrPortFrom(netip.AddrFrom16(ap.Addr().As16()), ap.Port())
		six, _, err := sockaddr(mapped.String())
		if err != nil {
			t.note(arg, err)
			continue
		}
		four, _, _ := sockaddr(arg)
		for _, length := range []int{24, 28, 64, 128} { // 24: without the scope
			fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				if err = connectRaw(fd, append(six, make([]byte, 100)...)[:length]); err == nil {
					err = greet(fd)
				}
				_ = unix.Close(fd)
			}
			t.note("connected to "+mapped.String(), err)
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				if err = connectRaw(fd, append(four, make([]byte, 112)...)[:length]); err == nil {
					err = greet(fd)
				}
				_ = unix.Close(fd)
			}
			t.note("connected to "+arg, err)
		}
	}
	return t.verdict()
}

func connectNonblocking(args []string) verdict {
	var t tries
	for _, arg := range args {
		address, family, err := sockaddr(arg)
		if err != nil {
			continue
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.note(arg, err)
			continue
		}
		err = connectRaw(fd, address)
		if errors.Is(err, unix.EINPROGRESS) {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 2000)
			_, err = unix.Getpeername(fd)
		}
		if err == nil {
			err = greet(fd)
		}
		t.note("connected to "+arg, err)
		_ = unix.Close(fd)
	}
	return t.verdict()
}

// bindConnect binds first, and connects a socket that was connected before.
func bindConnect(args []string) verdict {
	var t tries
	for _, arg := range args {
		address, family, err := sockaddr(arg)
		if err != nil || family != unix.AF_INET {
			continue
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.note(arg, err)
			continue
		}
		_ = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		if err = connectRaw(fd, address); err == nil {
			err = greet(fd)
		}
		t.note("connected to "+arg+" from an address of its own", err)
		unspecified := make([]byte, unix.SizeofSockaddrInet4) // AF_UNSPEC dissolves the association
		_ = connectRaw(fd, unspecified)
		if err = connectRaw(fd, address); err == nil {
			err = greet(fd)
		}
		t.note("connected to "+arg+" again", err)
		_ = unix.Close(fd)
	}
	return t.verdict()
}

type sender func(fd int, address []byte) error

func sendto(fd int, address []byte) error {
	data := []byte(hello)
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptrOf(&data[0]), uintptr(len(data)), unix.MSG_FASTOPEN, uintptrOf(&address[0]), uintptr(len(address)))
	return errnoOrNil(errno)
}

type header struct {
	message unix.Msghdr
	_       uint32 // what the kernel sent, for sendmmsg
}

func messageTo(address []byte) *header {
	data := []byte(hello)
	iov := &unix.Iovec{Base: &data[0]}
	iov.SetLen(len(data))
	h := &header{message: unix.Msghdr{Name: &address[0], Namelen: uint32(len(address)), Iov: iov}}
	h.message.SetIovlen(1)
	return h
}

func sendmsg(fd int, address []byte) error {
	h := messageTo(address)
	_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptrOf(&h.message), unix.MSG_FASTOPEN)
	return errnoOrNil(errno)
}

func sendmmsg(fd int, address []byte) error {
	h := messageTo(address)
	_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptrOf(h), 1, unix.MSG_FASTOPEN, 0, 0)
	return errnoOrNil(errno)
}

func fastOpen(args []string, send sender) verdict {
	var t tries
	for _, arg := range args {
		address, family, err := sockaddr(arg)
		if err != nil {
			continue
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.note(arg, err)
			continue
		}
		t.note("sent to "+arg+" without a connect", send(fd, address))
		_ = unix.Close(fd)
	}
	return t.verdict()
}

// fastOpenConnect puts the connect off until the first write.
func fastOpenConnect(args []string) verdict {
	var t tries
	for _, arg := range args {
		address, family, err := sockaddr(arg)
		if err != nil {
			continue
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.note(arg, err)
			continue
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1)
		t.reach(fd, address, arg)
	}
	return t.verdict()
}

func udp(args []string) verdict {
	var t tries
	for _, arg := range args {
		address, family, err := sockaddr(arg)
		if err != nil {
			continue
		}
		for _, protocol := range []int{0, unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE, unix.IPPROTO_ICMP} {
			fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
			if err == nil {
				data := []byte(hello)
				_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptrOf(&data[0]), uintptr(len(data)), 0, uintptrOf(&address[0]), uintptr(len(address)))
				err = errnoOrNil(errno)
				_ = unix.Close(fd)
				t.note("made a datagram socket", nil)
			}
			t.note("sent a datagram to "+arg, err)
		}
	}
	return t.verdict()
}

func sockets(what string, families, kinds, protocols []int) verdict {
	var t tries
	for _, family := range families {
		for _, kind := range kinds {
			for _, protocol := range protocols {
				fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
				if err == nil {
					_ = unix.Close(fd)
				}
				t.note(fmt.Sprintf("made a %s socket (family %d, type %d, protocol %d)", what, family, kind, protocol), err)
			}
		}
	}
	return t.verdict()
}

func raw([]string) verdict {
	return sockets("raw", []int{unix.AF_INET, unix.AF_INET6}, []int{unix.SOCK_RAW}, []int{unix.IPPROTO_RAW, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP})
}

func netlink([]string) verdict {
	return sockets("netlink", []int{unix.AF_NETLINK}, []int{unix.SOCK_RAW, unix.SOCK_DGRAM}, []int{0, 4, 9, 12, 15, 16})
}

func packet([]string) verdict {
	return sockets("packet", []int{unix.AF_PACKET}, []int{unix.SOCK_RAW, unix.SOCK_DGRAM, unix.SOCK_PACKET}, []int{0, 0x0300})
}

func vsock([]string) verdict {
	return sockets("vsock", []int{unix.AF_VSOCK}, []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET}, []int{0})
}

// families tries every other address family, and every other protocol of the usual two.
func families([]string) verdict {
	var all []int
	for family := range unix.AF_MAX + 8 {
		switch family {
		case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK:
		default:
			all = append(all, family)
		}
	}
	kinds := []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_RDM, unix.SOCK_SEQPACKET, unix.SOCK_DCCP}
	if v := sockets("strange", all, kinds, []int{0}); v.word == wordEscaped {
		return v
	}
	// 132: SCTP, 33: DCCP, 143: Ethernet, 256: SMC.
	return sockets("strange", []int{unix.AF_INET, unix.AF_INET6}, kinds, []int{132, 33, 143, 256})
}

// listen waits for a visitor from outside at the addresses given.
func listen(args []string) verdict {
	var t tries
	for _, arg := range args {
		ap, err := netip.ParseAddrPort(arg)
		if err != nil || !ap.Addr().Is4() {
			continue
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.note(arg, err)
			continue
		}
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()})
		if err == nil {
			err = unix.Listen(fd, 1)
		}
		t.note("listens at "+arg, err)
		_ = unix.Close(fd)
	}
	return t.verdict()
}
