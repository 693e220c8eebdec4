package sandbox

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Structures of <linux/inet_diag.h>. Ports and addresses are in network order, all else in the machine's.
type (
	diagID struct {
		sourcePort, destinationPort [2]byte
		source, destination         [16]byte
		device                      uint32
		cookie                      [2]uint32
	}
	diagRequest struct {
		header             unix.NlMsghdr
		family, protocol   uint8
		extension, padding uint8
		states             uint32
		id                 diagID
	}
	diagAnswer struct {
		family, state, timer, retransmissions uint8
		id                                    diagID
		expires, received, sent, user, inode  uint32
	}
)

const tcpListen = 10 // TCP_LISTEN of <net/tcp_states.h>

// askListeners returns the sockets of this network namespace that listen on a port (sock_diag(7)).
func askListeners(port uint16) ([]tcpSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer closeSocket(fd)
	second := unix.Timeval{Sec: 1} // the answers are there when the request has been sent
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &second); err != nil {
		return nil, err
	}
	var all []tcpSocket
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		r := diagRequest{family: family, protocol: unix.IPPROTO_TCP, states: 1 << tcpListen}
		r.header = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(r)), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP} // #nosec G115 -- 72
		binary.BigEndian.PutUint16(r.id.sourcePort[:], port)
		packet := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)) // #nosec G103 -- the structure as bytes
		if err := unix.Sendto(fd, packet, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return nil, err
		}
		if all, err = receiveListeners(fd, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// receiveListeners adds the answers to one request.
func receiveListeners(fd int, all []tcpSocket) ([]tcpSocket, error) {
	buffer := make([]byte, 32<<10) // as much as the kernel puts into one packet
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var done bool
		if all, done, err = parseListeners(buffer[:n], all); err != nil || done {
			return all, err
		}
	}
}

var errDiag = errors.New("the list of sockets changed or has an unknown form")

// parseListeners adds the answers in a packet; done says that no more will come.
func parseListeners(packet []byte, all []tcpSocket) (_ []tcpSocket, done bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(packet)
	if err != nil {
		return nil, false, err
	}
	for _, m := range messages {
		switch {
		case m.Header.Flags&unix.NLM_F_DUMP_INTR != 0:
			return nil, false, errDiag
		case m.Header.Type == unix.NLMSG_DONE:
			return all, true, nil
		case m.Header.Type != unix.SOCK_DIAG_BY_FAMILY || len(m.Data) < int(unsafe.Sizeof(diagAnswer{})):
			return nil, false, errDiag // an error among them: nothing is known then
		}
		var a diagAnswer
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&a)), unsafe.Sizeof(a)), m.Data) // #nosec G103 -- the structure as bytes
		ip := netip.AddrFrom16(a.id.source).Unmap()
		if a.family == unix.AF_INET {
			ip = netip.AddrFrom4([4]byte(a.id.source[:4]))
		}
		local := netip.AddrPortFrom(ip, binary.BigEndian.Uint16(a.id.sourcePort[:]))
		all = append(all, tcpSocket{local: local, listening: a.state == tcpListen, inode: uint64(a.inode)})
	}
	return all, false, nil
}
