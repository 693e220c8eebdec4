package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The action and its executor talk over a pair of sequenced-packet sockets: one JSON value a packet, with
// at most one descriptor beside it.

// packetLimit is more than the longest script that the kernel passes to a shell (128 KiB, MAX_ARG_STRLEN) takes in JSON.
const packetLimit = 256 << 10

// A message is one packet. Exactly one of its fields is set.
type message struct {
	// To the executor.
	Run     *runMessage     `json:",omitempty"` // with the write end of the output
	Kill    bool            `json:",omitempty"`
	Dialled *dialledMessage `json:",omitempty"` // with the connected socket when Errno is 0
	// From the executor.
	Ready *readyMessage `json:",omitempty"`
	End   *ending       `json:",omitempty"`
	Dial  *dialMessage  `json:",omitempty"`
}

type runMessage struct {
	Script []byte
	Dir    string
}

type dialMessage struct {
	ID     uint64
	Target int // index into order.Targets
}

type dialledMessage struct {
	ID    uint64
	Errno int
}

// readyMessage is what the executor reached. Refused is set when the place does not give it namespaces; then
// nothing else is.
type readyMessage struct {
	Refused string  `json:",omitempty"`
	Error   string  `json:",omitempty"`
	Layers  []Layer `json:",omitempty"`
	ABI     int     `json:",omitempty"` // of Landlock, as used
}

// An ending is how a command ended; Error is set when it could not be started.
type ending struct {
	Exit     int
	Signal   string   `json:",omitempty"`
	Error    string   `json:",omitempty"`
	Exceeded string   `json:",omitempty"`
	Refused  []string `json:",omitempty"`
}

// A wire is one end of the socket pair. Sends from several goroutines do not mix; one goroutine receives.
type wire struct {
	fd     *os.File
	mu     sync.Mutex
	buffer []byte
}

// wirePair makes both ends, close-on-exec.
func wirePair() (ours *wire, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range pair {
		// As far as the machine allows; a packet that does not fit is an error of send.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 2*packetLimit)
	}
	// Ours is polled, so that closing it ends a receive.
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(pair[0]), unix.Close(pair[1]))
	}
	return newWire(pair[0]), os.NewFile(uintptr(pair[1]), "executor"), nil // #nosec G115 -- a descriptor
}

func newWire(fd int) *wire {
	return &wire{fd: os.NewFile(uintptr(fd), "executor"), buffer: make([]byte, packetLimit)} // #nosec G115 -- a descriptor
}

func (w *wire) close() error { return w.fd.Close() }

// send passes fd along when it is not negative; the caller keeps it.
func (w *wire) send(m message, fd int) error {
	packet, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(packet) > packetLimit {
		return fmt.Errorf("a packet of %d bytes is too long", len(packet))
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, err := w.fd.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(s uintptr) bool {
		sendErr = unix.Sendmsg(int(s), packet, rights, nil, unix.MSG_NOSIGNAL) // #nosec G115 -- a descriptor
		return sendErr != unix.EAGAIN && sendErr != unix.EINTR
	})
	return errors.Join(err, os.NewSyscallError("sendmsg", sendErr))
}

// receive returns the next message and the descriptor that came with it, or -1. It is io.EOF when the other end is closed.
func (w *wire) receive() (message, int, error) {
	raw, err := w.fd.SyscallConn()
	if err != nil {
		return message{}, -1, err
	}
	rights := make([]byte, unix.CmsgSpace(4))
	var n, rn, flags int
	var recvErr error
	err = raw.Read(func(s uintptr) bool {
		n, rn, flags, _, recvErr = unix.Recvmsg(int(s), w.buffer, rights, unix.MSG_CMSG_CLOEXEC) // #nosec G115 -- a descriptor
		return recvErr != unix.EAGAIN && recvErr != unix.EINTR
	})
	if err = errors.Join(err, os.NewSyscallError("recvmsg", recvErr)); err != nil {
		return message{}, -1, err
	}
	if n == 0 {
		return message{}, -1, io.EOF
	}
	fd := received(rights[:rn])
	m, err := parseMessage(w.buffer[:n], flags)
	if err != nil && fd >= 0 {
		_ = unix.Close(fd)
		fd = -1
	}
	return m, fd, err
}

func parseMessage(packet []byte, flags int) (message, error) {
	var m message
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return m, errors.New("a packet between action and executor was cut")
	}
	if err := json.Unmarshal(packet, &m); err != nil {
		return m, fmt.Errorf("reading a packet between action and executor: %w", err)
	}
	return m, nil
}

// received is the one descriptor in a control message; more are closed.
func received(rights []byte) int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return -1
	}
	fd := -1
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, got := range fds {
			if fd < 0 {
				fd = got
			} else {
				_ = unix.Close(got)
			}
		}
	}
	return fd
}

// errnoOf is the errno in err's tree, or EHOSTUNREACH.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EHOSTUNREACH
}
