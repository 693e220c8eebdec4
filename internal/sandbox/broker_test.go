package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listenHere puts a filter on the calling thread, which must be locked and never be unlocked, and returns its listener.
func listenHere(o filterOptions) (int, error) {
	o.Broker = true
	program, err := filter(nativeArch(), o)
	if err != nil {
		return -1, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	return install(program, true)
}

// brokered runs f on a thread whose connects go to the broker; it returns what was refused.
func brokered(t testing.TB, b *broker, f func()) []string {
	t.Helper()
	listener, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		fd, err := listenHere(filterOptions{Datagrams: b.open})
		if err != nil {
			t.Error(err)
			close(listener)
			return
		}
		listener <- fd
		f()
	}()
	fd, ok := <-listener
	if !ok {
		t.FailNow()
	}
	stop := b.serve(fd)
	<-done
	return stop()
}

// child starts a program whose connects go to the broker.
func child(t testing.TB, b *broker, cmd *exec.Cmd) (stop func() []string) {
	t.Helper()
	type started struct {
		fd  int
		err error
	}
	done := make(chan started)
	go func() {
		runtime.LockOSThread()
		fd, err := listenHere(filterOptions{Datagrams: b.open})
		if err == nil {
			err = cmd.Start()
		}
		done <- started{fd, err}
	}()
	s := <-done
	if s.err != nil {
		t.Fatal(s.err)
	}
	stop = b.serve(s.fd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		stop()
	})
	return stop
}

// connectRaw is connect(2) with any bytes on a new TCP socket. The socket stays open when it is connected.
func connectRaw(raw []byte) (fd int, err error) {
	domain := unix.AF_INET
	if len(raw) > 1 && raw[0] == unix.AF_INET6 {
		domain = unix.AF_INET6
	}
	if fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	if err := connectOn(fd, raw); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func connectOn(fd int, raw []byte) error {
	raw = append(raw, 0)
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)-1))
	if e != 0 {
		return e
	}
	return nil
}

// serveOn accepts on the address until the test ends and counts.
func serveOn(t testing.TB, network, address string) (netip.AddrPort, <-chan struct{}) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan struct{}, 1<<16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- struct{}{}
			_ = c.Close()
		}
	}()
	at := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), accepted
}

// dialTargets connects as the action does.
func dialTargets(targets []target) func(int) (int, error) {
	return func(i int) (int, error) {
		domain, to := address{family: unix.AF_INET, inet: targets[i].Address}.sockaddr()
		fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		if err := unix.Connect(fd, to); err != nil {
			return -1, errors.Join(fmt.Errorf("dialling: %w", err), unix.Close(fd))
		}
		return fd, nil
	}
}

func TestBrokerDecides(t *testing.T) {
	t.Parallel()
	listed, listedGot := serveOn(t, "tcp4", "127.0.0.2:0")
	open, openGot := serveOn(t, "tcp", ":0") // on every address of both families
	closed := netip.MustParseAddrPort("127.0.0.4:9")
	targets := []target{{"db", listed}, {"gone", closed}}
	b := &broker{
		targets: targets, isolated: true, dial: dialTargets(targets),
		members: func() []int { return nil },
	}
	for _, c := range []struct {
		name  string
		raw   []byte
		err   error
		where <-chan struct{}
	}{
		{"listed", sockaddr4("127.0.0.2", listed.Port()), nil, listedGot},
		{"listed, mapped", sockaddr6("::ffff:127.0.0.2", listed.Port(), 0), nil, listedGot},
		{"listed, nobody there", sockaddr4("127.0.0.4", 9), unix.ECONNREFUSED, nil},
		{"loopback", sockaddr4("127.0.0.1", open.Port()), nil, openGot},
		{"another loopback", sockaddr4("127.9.9.9", open.Port()), nil, openGot},
		{"every address", sockaddr4("0.0.0.0", open.Port()), nil, openGot},
		{"loopback, mapped", sockaddr6("::ffff:127.0.0.1", open.Port(), 0), nil, openGot},
		{"loopback of IPv6", sockaddr6("::1", open.Port(), 0), nil, openGot},
		{"every address of IPv6", sockaddr6("::", open.Port(), 0), nil, openGot},
		{"loopback, nobody there", sockaddr4("127.0.0.5", listed.Port()), unix.ECONNREFUSED, nil},
		{"the port on another host", sockaddr4("192.0.2.1", listed.Port()), unix.EACCES, nil},
		{"the port on another host, mapped", sockaddr6("::ffff:192.0.2.1", listed.Port(), 0), unix.EACCES, nil},
		{"another host of IPv6", sockaddr6("2001:db8::1", 443, 0), unix.EACCES, nil},
		{"broadcast", sockaddr4("255.255.255.255", listed.Port()), unix.EACCES, nil},
		{"nothing", []byte{0, 0}, unix.EACCES, nil},
		{"a short one", sockaddr4("127.0.0.2", listed.Port())[:8], unix.EINVAL, nil},
		{"none", nil, unix.EINVAL, nil},
		{"another family", []byte{16, 0, 0, 0}, unix.EACCES, nil},
	} {
		brokered(t, b, func() {
			fd, err := connectRaw(c.raw)
			if !errors.Is(err, c.err) {
				t.Errorf("%s: connect gives %v, want %v", c.name, err, c.err)
			}
			if err != nil {
				return
			}
			defer closeSocket(fd)
			select {
			case <-c.where:
			case <-time.After(5 * time.Second):
				t.Errorf("%s: nothing arrived", c.name)
			}
			if domain, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); domain != int(c.raw[0]) && c.name != "listed, mapped" {
				t.Errorf("%s: the socket has family %d now", c.name, domain)
			}
		})
	}
}

func TestBrokerListsWhatItRefused(t *testing.T) {
	t.Parallel()
	refused := brokered(t, &broker{isolated: true}, func() {
		for range 2 {
			for i := range 10 {
				_, _ = connectRaw(sockaddr4("192.0.2."+strconv.Itoa(i), 443))
			}
		}
	})
	if len(refused) != 8 || refused[0] != "192.0.2.0:443" || refused[7] != "192.0.2.7:443" {
		t.Errorf("refused: %q", refused)
	}
	path := shortDir(t) + "/a\x1b[2J\n"
	serveAt(t, "unix", path)
	refused = brokered(t, &broker{isolated: true}, func() { _ = connectPath(unix.SOCK_STREAM, path) })
	if want := []string{strings.TrimSuffix(path, "\x1b[2J\n") + `\x1b[2J\n`}; !slices.Equal(refused, want) {
		t.Errorf("refused: %q", refused)
	}
	if refused = brokered(t, &broker{}, func() {}); len(refused) != 0 {
		t.Errorf("refused: %q", refused)
	}
}

func TestBrokerKeepsDescriptorFlags(t *testing.T) {
	t.Parallel()
	at, _ := serveOn(t, "tcp4", "127.0.0.1:0")
	raw := sockaddr4("127.0.0.1", at.Port())
	for _, flags := range []int{0, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC} {
		brokered(t, &broker{isolated: true}, func() {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|flags, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer closeSocket(fd)
			if err := connectOn(fd, raw); err != nil {
				t.Errorf("connect: %v", err)
			}
			status, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			descriptor, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if got := status & unix.O_NONBLOCK; got != flags&unix.SOCK_NONBLOCK {
				t.Errorf("flags %#x: O_NONBLOCK is %#x now", flags, got)
			}
			if got := descriptor&unix.FD_CLOEXEC != 0; got != (flags&unix.SOCK_CLOEXEC != 0) {
				t.Errorf("flags %#x: close-on-exec is %v now", flags, got)
			}
			if _, err := unix.Getpeername(fd); err != nil {
				t.Errorf("not connected: %v", err)
			}
		})
	}
}

func TestBrokerReplacesSocketsOnly(t *testing.T) {
	t.Parallel()
	at, _ := serveOn(t, "tcp4", "127.0.0.1:0")
	raw := sockaddr4("127.0.0.1", at.Port())
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	brokered(t, &broker{isolated: true}, func() {
		if err := connectOn(int(file.Fd()), raw); !errors.Is(err, unix.ENOTSOCK) {
			t.Errorf("a file: %v", err)
		}
		if err := connectOn(1<<20, raw); !errors.Is(err, unix.EBADF) {
			t.Errorf("no descriptor: %v", err)
		}
		if err := connectOn(-1, raw); !errors.Is(err, unix.EBADF) {
			t.Errorf("-1: %v", err)
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer closeSocket(fd)
		for _, bad := range []uintptr{0, 1, ^uintptr(0), 1 << 63} {
			if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), bad, 16); e != unix.EFAULT {
				t.Errorf("an address at %#x: %v", bad, e)
			}
		}
		for _, length := range []uintptr{0, 1, 129, 1 << 31, ^uintptr(0)} {
			if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), length); e != unix.EINVAL {
				t.Errorf("length %#x: %v", length, e)
			}
		}
		// Descriptor and length are ints: the kernel does not look at the upper half of their registers.
		if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd)|1<<32, uintptr(unsafe.Pointer(&raw[0])), 16|1<<32); e != 0 {
			t.Errorf("more than ints: %v", e)
		}
	})
	if left, err := file.Write(bytes.Repeat([]byte("x"), 4)); left != 4 || err != nil {
		t.Errorf("the file was replaced: %v", err)
	}
}
