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
)

// A tcpSocket is one the kernel lists. IPv4-mapped addresses are unmapped.
type tcpSocket struct {
	local, remote netip.AddrPort
	listening     bool
	inode         uint64 // 0: no process has it, or not yet
}

// readListeners returns the sockets that listen, from the tables. The kernel walks its whole table of connections for that, some
// milliseconds, so it is the second choice.
func readListeners() (all []tcpSocket, err error) {
	err = eachTCP(func(s tcpSocket) bool {
		if s.listening {
			all = append(all, s)
		}
		// Those come first (tcp_get_idx), and of the others a busy machine has thousands.
		return s.listening
	})
	return all, err
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
