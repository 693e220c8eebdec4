package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// datagram connects a datagram socket, again after dissolving that, and sends.
func datagram(words []string) error {
	at := netip.MustParseAddrPort(words[0])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	raw := sockaddr4(at.Addr().String(), at.Port())
	for _, address := range [][]byte{raw, {0, 0}, raw} {
		if err := connectOn(fd, address); err != nil {
			return fmt.Errorf("connecting to %v: %w", address, err)
		}
	}
	_, err = unix.Write(fd, []byte("hello"))
	return err
}

func TestBrokerOpen(t *testing.T) {
	t.Parallel()
	at, got := serveOn(t, "tcp", ":0")
	dir := shortDir(t)
	serveAt(t, "unix", dir+"/s")
	b := &broker{open: true}
	refused := brokered(t, b, func() {
		for _, raw := range [][]byte{
			sockaddr4("127.0.0.1", at.Port()), sockaddr4("0.0.0.0", at.Port()), sockaddr6("::1", at.Port(), 0),
			sockaddr6("::ffff:127.0.0.1", at.Port(), 0),
		} {
			domain := int(raw[0])
			fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
				return
			}
			var before, after unix.Stat_t
			if err := errors.Join(unix.Fstat(fd, &before), connectOn(fd, raw), unix.Fstat(fd, &after)); err != nil {
				t.Errorf("%x: %v", raw, err)
			}
			if before.Ino != after.Ino {
				t.Errorf("%x: it is another socket now", raw)
			}
			if err := connectOn(fd, raw); !errors.Is(err, unix.EISCONN) {
				t.Errorf("%x, again: %v", raw, err)
			}
			closeSocket(fd)
		}
		if err := connectPath(unix.SOCK_STREAM, dir+"/s"); !errors.Is(err, unix.EACCES) {
			t.Errorf("a unix socket: %v", err)
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer closeSocket(fd)
		for _, raw := range [][]byte{sockaddr4("127.0.0.1", at.Port()), {0, 0}} {
			if err := connectOn(fd, raw); !errors.Is(err, unix.EACCES) {
				t.Errorf("a unix socket with %v: %v", raw, err)
			}
		}
	})
	if len(refused) != 1 || refused[0] != dir+"/s" || len(got) != 4 {
		t.Errorf("refused %q, arrived %d", refused, len(got))
	}
}

func TestBrokerOpenNonBlocking(t *testing.T) {
	t.Parallel()
	full, done := fullPort(t)
	defer done()
	brokered(t, &broker{open: true}, func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer closeSocket(fd)
		for _, want := range []error{unix.EINPROGRESS, unix.EALREADY} {
			if err := connectOn(fd, sockaddr4("127.0.0.1", full.Port())); !errors.Is(err, want) {
				t.Errorf("connect gives %v, want %v", err, want)
			}
		}
	})
}

func TestBrokerOpenDatagrams(t *testing.T) {
	t.Parallel()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if said := client(t, &broker{open: true}, "datagram", c.LocalAddr().String()); said != "" {
		t.Error(said)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	b := make([]byte, 10)
	if n, err := c.Read(b); string(b[:n]) != "hello" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if said := client(t, &broker{isolated: true}, "datagram", c.LocalAddr().String()); said == "" {
		t.Error("datagrams without an open network")
	}
}

func TestBrokerOpenStops(t *testing.T) {
	t.Parallel()
	full, done := fullPort(t)
	defer done()
	cmd := clientCommand("connect", full.String())
	stop := child(t, &broker{open: true}, cmd)
	time.Sleep(200 * time.Millisecond)
	stopsSoon(t, stop)
}

// placeVariable makes TestBrokerInPlace the broker of a poorer place.
const placeVariable = "BROKER_TEST_PLACE"

// TestBrokerInPlaces runs the broker where calls are refused to it as Docker's profile does, and as the executor is: under a user of
// its own, with its memory closed.
func TestBrokerInPlaces(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"no pidfd_getfd", "no process_vm_readv", "no sock_diag", "none", "dropped"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestBrokerInPlace$", "-test.v")
			cmd.Env = append(os.Environ(), placeVariable+"="+place)
			deniedCalls := code{}
			for _, d := range []struct {
				what   string
				number uint32
				body   code
			}{
				{"no pidfd_getfd", unix.SYS_PIDFD_GETFD, deny(unix.EPERM)},
				{"no process_vm_readv", unix.SYS_PROCESS_VM_READV, deny(unix.EPERM)},
				{"no sock_diag", unix.SYS_SOCKET, seq(low(0), when(bpf.JumpEqual, unix.AF_NETLINK, deny(unix.EPERM)), allow)},
			} {
				if place == d.what || place == "none" {
					deniedCalls = seq(deniedCalls, when(bpf.JumpEqual, d.number, d.body))
				}
			}
			if place == "dropped" && os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64646, Gid: 64646}}
			}
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			failed := make(chan error)
			go func() {
				runtime.LockOSThread()
				err := denyHere(deniedCalls)
				if err == nil {
					err = cmd.Start()
				}
				failed <- err
			}()
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "--- PASS: TestBrokerInPlace") {
				t.Errorf("%v:\n%s", err, said.String())
			}
		})
	}
}

// denyHere makes calls fail on the calling thread, as a container's profile does.
func denyHere(calls code) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	raw, err := bpf.Assemble(seq(load(offNumber), calls, allow))
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	_, err = install(program, false)
	return err
}

func TestBrokerInPlace(t *testing.T) {
	place := os.Getenv(placeVariable)
	if place == "" {
		return // TestBrokerInPlaces starts this one in each of its places
	}
	if place == "dropped" {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	dir := shortDir(t)
	serveAt(t, "unix", dir+"/s")
	at, got := serveOn(t, "tcp4", "127.0.0.1:0")
	targets := []target{{"db", at}}
	everyone := func() []int { return append(descendants(os.Getpid()), os.Getpid()) }
	shared := &broker{folders: []string{dir}, members: everyone}
	listed := &broker{targets: targets, dial: dialTargets(targets), members: func() []int { return nil }}
	for name, b := range map[string]*broker{"listed": listed, "shared loopback": shared, "isolated": {isolated: true}} {
		if said := client(t, b, "connect", at.String()); said != "" {
			t.Errorf("%s: %s", name, said)
		}
	}
	if said := client(t, shared, "path", dir+"/s"); said != "" {
		t.Errorf("unix: %s", said)
	}
	if said := client(t, listed, "connect", "127.0.0.1:1"); !strings.Contains(said, "connection refused") {
		t.Errorf("not listed: %s", said)
	}
	if said := client(t, listed, "connect", "192.0.2.1:1"); !strings.Contains(said, "permission denied") {
		t.Errorf("not listed: %s", said)
	}
	if n := len(got); n != 3 {
		t.Errorf("%d arrived", n)
	}
	borrows := place != "no pidfd_getfd" && place != "none"
	for name, b := range map[string]*broker{"open": {open: true}, "open, dedicated": {open: true, dedicated: true}} {
		said := client(t, b, "connect", at.String())
		if want := borrows || b.dedicated; (said == "") != want {
			t.Errorf("%s: %q", name, said)
		}
	}
}
