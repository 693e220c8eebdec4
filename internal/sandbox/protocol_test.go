package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is a wire whose other end the test holds as well.
func pair(t testing.TB) (ours, theirs *wire) {
	t.Helper()
	ours, file, err := wirePair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	theirs = newWire(fd)
	t.Cleanup(func() { _, _ = ours.close(), theirs.close() })
	return ours, theirs
}

func TestWireCarriesDescriptorsAndLongScripts(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	script := bytes.Repeat([]byte("\x00'\""), 128<<10/3) // the longest a shell takes, of what is long in JSON
	go func() {
		_ = ours.send(message{Run: &runMessage{Script: script, Dir: "/d"}}, int(write.Fd()))
		_ = write.Close()
	}()
	m, fd, err := theirs.receive()
	if err != nil || m.Run == nil || !bytes.Equal(m.Run.Script, script) || fd < 0 {
		t.Fatalf("got descriptor %d, %v", fd, err)
	}
	if _, err := unix.Write(fd, []byte("through")); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	if text, _ := io.ReadAll(read); string(text) != "through" {
		t.Errorf("got %q", text)
	}
	_ = ours.close()
	if _, _, err := theirs.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestScriptTooLongIsAnErrorAndTheNextCommandRuns(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, size := range []int{200 << 10, 2 << 20} {
		if r, err := s.Run(t.Context(), Command{Script: "true " + strings.Repeat("x", size)}); err == nil {
			t.Errorf("%d bytes: %+v", size, r)
		}
		if got := run(t, s, Command{Script: "echo next"}).Output(); got != "next\n" {
			t.Errorf("got %q", got)
		}
	}
}

// FuzzActionProtocol plays an executor that was taken over: whatever it says, the action connects to what is listed and to nothing else,
// and does not fail.
func FuzzActionProtocol(f *testing.F) {
	for _, m := range []message{
		{Dial: &dialMessage{ID: 1, Target: 0}},
		{Dial: &dialMessage{ID: 2, Target: 1}},
		{Dial: &dialMessage{ID: 3, Target: -1}},
		{End: &ending{Exit: 1, Signal: "SIGKILL", Exceeded: "memory-limit", Refused: []string{"192.0.2.1:1"}}},
		{Ready: &readyMessage{Layers: []Layer{{Name: "x"}}}},
		{Kill: true},
	} {
		packet, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packet)
	}
	f.Add([]byte(`{"Dial":{"ID":18446744073709551615,"Target":9223372036854775807}}`))
	f.Add([]byte(`{"Dial":{"Target":0.5}}`))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	listed := target{Name: "listed", Address: netip.MustParseAddrPort(listener.Addr().String())}
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, err := parseMessage(packet, 0)
		if err != nil || m.Dial == nil {
			return
		}
		ours, theirs := pair(t)
		e := &executor{wire: ours, order: &order{Targets: []target{listed}}}
		e.dial(*m.Dial)
		answer, fd, err := theirs.receive()
		if err != nil || answer.Dialled == nil || answer.Dialled.ID != m.Dial.ID {
			t.Fatalf("answer %+v, %v", answer, err)
		}
		if fd >= 0 {
			defer func() { _ = unix.Close(fd) }()
		}
		if m.Dial.Target != 0 {
			if fd >= 0 || answer.Dialled.Errno != int(unix.EACCES) {
				t.Fatalf("target %d: descriptor %d, errno %d", m.Dial.Target, fd, answer.Dialled.Errno)
			}
			return
		}
		if fd < 0 {
			t.Fatalf("the listed target was refused: errno %d", answer.Dialled.Errno)
		}
		peer, err := unix.Getpeername(fd)
		if to, ok := peer.(*unix.SockaddrInet4); err != nil || !ok || to.Port != int(listed.Address.Port()) {
			t.Fatalf("connected to %+v, %v", peer, err)
		}
	})
}
