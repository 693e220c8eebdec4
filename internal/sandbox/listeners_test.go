package sandbox

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 64646        0 4711 1 0000000000000000 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 20 4 30 10 -1
`
	tcp6Table = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: B80D0120000000000000000001000000:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 9 1 0 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:01BB 0000000000000000FFFF00000100007F:0001 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0
`
)

func TestParseTCP(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort
	for _, c := range []struct {
		table string
		want  []tcpSocket
	}{
		{tcpTable, []tcpSocket{
			{at("127.0.0.1:8080"), at("0.0.0.0:0"), true, 4711},
			{at("0.0.0.0:80"), at("0.0.0.0:0"), true, 4712},
			{at("127.0.0.1:8080"), at("127.0.0.1:54321"), false, 4713},
		}},
		{tcp6Table, []tcpSocket{
			{at("[2001:db8::1]:443"), at("[::]:0"), true, 9},
			{at("127.0.0.1:443"), at("127.0.0.1:1"), false, 0},
		}},
	} {
		var got []tcpSocket
		if err := parseTCP(strings.NewReader(c.table), func(s tcpSocket) bool { got = append(got, s); return true }); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("parsed as %v\nwant %v", got, c.want)
		}
	}
	for _, table := range []string{"title\nwords\n", strings.Replace(tcpTable, "0100007F", "01007F", 1), strings.Replace(tcpTable, "4711", "x", 1)} {
		if err := parseTCP(strings.NewReader(table), func(tcpSocket) bool { return true }); err == nil {
			t.Errorf("parsed %q", table)
		}
	}
}

func FuzzListenersTable(f *testing.F) {
	f.Add(tcpTable)
	f.Add(tcp6Table)
	f.Fuzz(func(t *testing.T, table string) {
		_ = parseTCP(strings.NewReader(table), func(s tcpSocket) bool {
			if !s.local.IsValid() || !s.remote.IsValid() {
				t.Fatalf("%q: an address that is none", table)
			}
			return true
		})
	})
}

// TestListenersAlike: both ways to ask know the same.
func TestListenersAlike(t *testing.T) {
	t.Parallel()
	for _, at := range []struct{ network, address, want string }{
		{"tcp4", "127.0.0.1:0", "127.0.0.1"},
		{"tcp4", "0.0.0.0:0", "0.0.0.0"},
		{"tcp6", "[::1]:0", "::1"},
		{"tcp", ":0", "::"},
	} {
		l, _ := serveOn(t, at.network, at.address)
		asked, err := askListeners(l.Port())
		if err != nil {
			t.Fatal(err)
		}
		read, err := readListeners()
		if err != nil {
			t.Fatal(err)
		}
		for name, all := range map[string][]tcpSocket{"asked": asked, "read": read} {
			i := slices.IndexFunc(all, func(s tcpSocket) bool { return s.local.Port() == l.Port() })
			if i < 0 || all[i].local.Addr().String() != at.want || !all[i].listening || !(&broker{members: us}).hold([]uint64{all[i].inode}) {
				t.Errorf("%s %s: %s %v", at.network, at.address, name, all)
			}
		}
	}
	if all, err := askListeners(1); err != nil || len(all) != 0 {
		t.Errorf("port 1: %v, %v", all, err)
	}
}

func FuzzListenersAnswer(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 100))
	f.Add([]byte{20, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, packet []byte) {
		if all, _, err := parseListeners(packet, nil); err != nil && all != nil {
			t.Fatalf("%x: sockets beside an error", packet)
		}
	})
}

// TestListenersComeFirst holds what readListeners relies on.
func TestListenersComeFirst(t *testing.T) {
	t.Parallel()
	at, accepted := serveOn(t, "tcp", "localhost:0")
	for range 20 { // their ends stay in the table for a minute
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		<-accepted
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue // no IPv6
		}
		others, late := 0, 0
		if err := parseTCP(file, func(s tcpSocket) bool {
			switch {
			case !s.listening:
				others++
			case others > 0:
				late++
			}
			return true
		}); err != nil {
			t.Error(err)
		}
		_ = file.Close()
		if late > 0 || others == 0 && table == "/proc/self/net/tcp" {
			t.Errorf("%s: %d listeners behind %d others", table, late, others)
		}
	}
}

func TestTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		local, to string
		want      bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.1:81", false},
		{"127.0.0.1:80", "127.0.0.2:80", false},
		{"0.0.0.0:80", "127.0.0.2:80", true},
		{"0.0.0.0:80", "[::1]:80", false},
		{"[::]:80", "127.0.0.1:80", true},
		{"[::]:80", "[::1]:80", true},
		{"[::1]:80", "127.0.0.1:80", false},
		{"192.0.2.1:80", "127.0.0.1:80", false},
	} {
		if got := takes(netip.MustParseAddrPort(c.local), netip.MustParseAddrPort(c.to)); got != c.want {
			t.Errorf("a listener on %s takes what goes to %s: %v", c.local, c.to, got)
		}
	}
}

func us() []int { return []int{os.Getpid()} }

func TestBrokerSharedLoopback(t *testing.T) {
	t.Parallel()
	four, got := serveOn(t, "tcp4", "127.0.0.1:0")
	both, gotBoth := serveOn(t, "tcp", ":0")
	for _, c := range []struct {
		name    string
		raw     []byte
		members []int
		err     error
		refused []string
	}{
		{"ours", sockaddr4("127.0.0.1", four.Port()), us(), nil, nil},
		{"ours, mapped", sockaddr6("::ffff:127.0.0.1", four.Port(), 0), us(), nil, nil},
		{"ours on all, by IPv4", sockaddr4("127.0.0.3", both.Port()), us(), nil, nil},
		{"ours on all, by IPv6", sockaddr6("::1", both.Port(), 0), us(), nil, nil},
		{"another's", sockaddr4("127.0.0.1", four.Port()), nil, unix.EACCES, []string{four.String()}},
		{"another's on all", sockaddr4("0.0.0.0", both.Port()), []int{1 << 22}, unix.EACCES, []string{"127.0.0.1:" + port(both)}},
		{"another's on all, by IPv6", sockaddr6("::1", both.Port(), 0), nil, unix.EACCES, []string{"[::1]:" + port(both)}},
		{"nobody's", sockaddr4("127.0.0.9", four.Port()), us(), unix.ECONNREFUSED, nil},
		{"elsewhere", sockaddr4("192.0.2.1", both.Port()), us(), unix.EACCES, []string{"192.0.2.1:" + port(both)}},
	} {
		refused := brokered(t, &broker{members: func() []int { return c.members }}, func() {
			fd, err := connectRaw(c.raw)
			if !errors.Is(err, c.err) {
				t.Errorf("%s: connect gives %v, want %v", c.name, err, c.err)
			}
			if err == nil {
				closeSocket(fd)
			}
		})
		if !slices.Equal(refused, c.refused) {
			t.Errorf("%s: refused %q, want %q", c.name, refused, c.refused)
		}
	}
	if len(got) != 2 || len(gotBoth) != 2 {
		t.Errorf("%d and %d connections arrived", len(got), len(gotBoth))
	}
}

func port(at netip.AddrPort) string { _, p, _ := net.SplitHostPort(at.String()); return p }

// TestBrokerSharedPort: a port that a process of the sandbox and a stranger listen on is the stranger's too.
func TestBrokerSharedPort(t *testing.T) {
	t.Parallel()
	listen := func(at *unix.SockaddrInet4) int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) // inherited on purpose
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
		if err == nil {
			err = unix.Bind(fd, at)
		}
		if err == nil {
			err = unix.Listen(fd, 8)
		}
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	foreign := listen(at)
	name, err := unix.Getsockname(foreign)
	if err != nil {
		t.Fatal(err)
	}
	at.Port = name.(*unix.SockaddrInet4).Port
	stranger := exec.Command("sleep", "60")
	stranger.ExtraFiles = []*os.File{os.NewFile(uintptr(foreign), "foreign")}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _, _ = stranger.Process.Wait() }()
	_ = stranger.ExtraFiles[0].Close()
	ours := listen(at)
	defer closeSocket(ours)
	try := func(members []int) (err error) {
		brokered(t, &broker{members: func() []int { return members }}, func() {
			var fd int
			if fd, err = connectRaw(sockaddr4("127.0.0.1", uint16(at.Port))); err == nil {
				closeSocket(fd)
			}
		})
		return err
	}
	if err := try(us()); !errors.Is(err, unix.EACCES) {
		t.Errorf("with a stranger on the port: %v", err)
	}
	if err := try(append(us(), stranger.Process.Pid)); err != nil {
		t.Errorf("with both in the sandbox: %v", err)
	}
}

// TestBrokerPortChangesHands: what listened before the connect is not what answers afterwards.
func TestBrokerPortChangesHands(t *testing.T) {
	t.Parallel()
	at, accepted := serveOn(t, "tcp4", "127.0.0.1:0")
	var looks atomic.Int32
	b := &broker{members: func() []int {
		if looks.Add(1) == 1 {
			return us()
		}
		return nil
	}}
	refused := brokered(t, b, func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer closeSocket(fd)
		if err := connectOn(fd, sockaddr4("127.0.0.1", at.Port())); !errors.Is(err, unix.EACCES) {
			t.Errorf("connect gives %v", err)
		}
		if _, err := unix.Getpeername(fd); !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("the socket was handed out: %v", err)
		}
	})
	<-accepted
	if !slices.Equal(refused, []string{at.String()}) {
		t.Errorf("refused: %q", refused)
	}
}

// TestBrokerServerForOne: a server that closes its port as soon as it has its one connection can be reached.
func TestBrokerServerForOne(t *testing.T) {
	t.Parallel()
	for range 50 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan net.Conn)
		go func() {
			c, _ := l.Accept()
			_ = l.Close()
			closed <- c
		}()
		brokered(t, &broker{members: us}, func() {
			fd, err := connectRaw(sockaddr4("127.0.0.1", l.Addr().(*net.TCPAddr).AddrPort().Port()))
			if err != nil {
				t.Errorf("connect gives %v", err)
				_ = l.Close()
				return
			}
			closeSocket(fd)
		})
		if c := <-closed; c != nil {
			_ = c.Close()
		}
	}
}

// TestReachedByConnection looks at a connection whose listener is gone.
func TestReachedByConnection(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp4", "tcp"} { // one of both families has the connection in the other table
		l, err := net.Listen(network, ":0")
		if err != nil {
			t.Fatal(err)
		}
		to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr().(*net.TCPAddr).AddrPort().Port())
		fd, err := connectRaw(sockaddr4("127.0.0.1", to.Port()))
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		strangers := &broker{members: func() []int { return nil }}
		if got := (&broker{members: us}).reached(fd, to); got != listensMember {
			t.Errorf("%s: ours, and %d", network, got)
		}
		if got := strangers.reached(fd, to); got != listensOther {
			t.Errorf("%s: not ours, and %d", network, got)
		}
		_ = c.Close()
		if got := strangers.reached(fd, to); got != listensNobody {
			t.Errorf("%s: closed, and %d", network, got)
		}
		closeSocket(fd)
	}
}
