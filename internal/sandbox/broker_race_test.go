package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test binary is a client under the broker when this variable says which.
const clientVariable = "BROKER_TEST_CLIENT"

func init() {
	client := strings.Fields(os.Getenv(clientVariable))
	if len(client) == 0 {
		return
	}
	err := map[string]func([]string) error{
		"connect": connectOnce, "flood": flood, "http": getOverHTTP, "datagram": datagram, "serve": serveAndAsk, "beside": besideSlow,
		"path": func(words []string) error { return connectPath(unix.SOCK_STREAM, words[0]) },
	}[client[0]](client[1:])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// clientCommand is the test binary as a client.
func clientCommand(words ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), clientVariable+"="+strings.Join(words, " "))
	return cmd
}

// client runs one to its end and returns what it says.
func client(t testing.TB, b *broker, words ...string) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := clientCommand(words...)
	cmd.Stdout, cmd.Stderr = write, write
	child(t, b, cmd)
	_ = write.Close()
	said, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

func connectOnce(words []string) error {
	at := netip.MustParseAddrPort(words[0])
	_, err := connectRaw(sockaddr4(at.Addr().String(), at.Port()))
	return err
}

// flood connects from as many threads as it is told at the same time.
func flood(words []string) error {
	at := netip.MustParseAddrPort(words[0])
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	raw := sockaddr4(at.Addr().String(), at.Port())
	var wait sync.WaitGroup
	failed := make(chan error, n)
	for range n {
		wait.Go(func() {
			runtime.LockOSThread()
			fd, err := connectRaw(raw)
			if err == nil {
				err = unix.Close(fd)
			}
			if err != nil {
				failed <- err
			}
		})
	}
	wait.Wait()
	close(failed)
	for err := range failed {
		return fmt.Errorf("%d failed: %w", len(failed)+1, err)
	}
	return nil
}

func getOverHTTP(words []string) error {
	answer, err := http.Get(words[0])
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "hello" {
		return fmt.Errorf("%q, %w", body, err)
	}
	return nil
}

// serveAndAsk is what a test suite does: a server and its client in one process.
func serveAndAsk([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	}()
	return getOverHTTP([]string{"http://" + l.Addr().String()})
}

// TestBrokerChangedAddress: a thread beside the caller changes the address all the time, from a listed one to one that is not.
func TestBrokerChangedAddress(t *testing.T) {
	t.Parallel()
	good, goodGot := serveOn(t, "tcp4", "127.0.0.1:0")
	bad, badGot := serveOn(t, "tcp4", "127.0.0.1:0")
	targets := []target{{"db", good}}
	b := &broker{targets: targets, dial: dialTargets(targets), members: func() []int { return nil }}
	race := func(rounds int) (connected, refused int) {
		raw := sockaddr4("127.0.0.1", good.Port())
		port := (*uint32)(unsafe.Pointer(&raw[0])) // family and port
		others := sockaddr4("127.0.0.1", bad.Port())
		values := [2]uint32{*port, *(*uint32)(unsafe.Pointer(&others[0]))}
		var over atomic.Bool
		var flips sync.WaitGroup
		flips.Go(func() {
			for i := 0; !over.Load(); i++ {
				atomic.StoreUint32(port, values[i&1])
			}
		})
		for range rounds {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
				break
			}
			_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
			switch e {
			case 0:
				connected++
			case unix.EACCES:
				refused++
			default:
				t.Errorf("connect gives %v", e)
			}
			closeSocket(fd)
		}
		over.Store(true)
		flips.Wait()
		return connected, refused
	}
	brokered(t, b, func() {
		connected, refused := race(2000)
		if connected == 0 || refused == 0 {
			t.Errorf("%d connected and %d refused: the race did not happen", connected, refused)
		}
		t.Logf("%d connected, %d refused", connected, refused)
	})
	if n := len(badGot); n > 0 {
		t.Errorf("%d connections arrived where none may", n)
	}
	if len(goodGot) == 0 {
		t.Error("none arrived where they may")
	}
	// As a control: without the broker they do arrive.
	race(300)
	select {
	case <-badGot:
	case <-time.After(5 * time.Second):
		t.Error("without the broker none arrived either")
	}
}

func TestBrokerFlood(t *testing.T) {
	t.Parallel()
	at, got := serveOn(t, "tcp4", "127.0.0.1:0")
	targets := []target{{"db", at}}
	b := &broker{targets: targets, dial: dialTargets(targets)}
	if said := client(t, b, "flood", at.String(), "500"); said != "" {
		t.Error(said)
	}
	if len(got) != 500 {
		t.Errorf("%d of 500 connections arrived", len(got))
	}
}

func TestBrokerServesPrograms(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }),
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	listed := l.Addr().(*net.TCPAddr).AddrPort()
	targets := []target{{"db", listed}}
	url := "http://" + listed.String()
	b := &broker{targets: targets, dial: dialTargets(targets), members: us}
	if said := client(t, b, "http", url); said != "" {
		t.Errorf("Go: %s", said)
	}
	if said := client(t, &broker{members: func() []int { return nil }}, "http", url); !strings.Contains(said, "permission denied") {
		t.Errorf("Go, not listed: %s", said)
	}
	if said := client(t, &broker{members: func() []int { return descendants(os.Getpid()) }}, "serve"); said != "" {
		t.Errorf("Go with its own server: %s", said)
	}
	for _, program := range [][]string{
		{"python3", "-c", "import sys,urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1]).read())", url},
		// A non-blocking connect, as event loops do it.
		{"python3", "-c", `import sys,asyncio
async def main(port):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    w.write(b"GET / HTTP/1.0\r\n\r\n"); await w.drain()
    print(end=(await r.read()).decode().split("\r\n\r\n")[1])
asyncio.run(main(int(sys.argv[1].rsplit(":")[-1])))`, url},
		{"node", "-e", `require("http").get(process.argv[1], r => r.pipe(process.stdout))`, url},
		{"php", "-r", `echo file_get_contents($argv[1]);`, url},
		{"curl", "-s", url},
	} {
		if _, err := exec.LookPath(program[0]); err != nil {
			t.Logf("not tried, not installed: %s", program[0])
			continue
		}
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program[0], program[1:]...)
		cmd.Stdout, cmd.Stderr = write, write
		child(t, b, cmd)
		_ = write.Close()
		if said, err := io.ReadAll(read); string(said) != "hello" {
			t.Errorf("%s: %q, %v", program[0], said, err)
		}
	}
}

// hanging is a dial that lasts until the test lets go.
func hanging(t testing.TB) (dial func(int) (int, error), begun chan struct{}, release chan int) {
	t.Helper()
	begun, release = make(chan struct{}, 1000), make(chan int)
	return func(int) (int, error) {
		begun <- struct{}{}
		fd, ok := <-release
		if !ok {
			return -1, errors.New("let go")
		}
		return fd, nil
	}, begun, release
}

// stopsSoon is what every command's end relies on.
func stopsSoon(t testing.TB, stop func() []string) {
	t.Helper()
	start := time.Now()
	done := make(chan struct{})
	go func() { stop(); stop(); close(done) }()
	select {
	case <-done:
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("stop took %s", took)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("stop hangs")
	}
}

func TestBrokerCallerKilled(t *testing.T) {
	t.Parallel()
	dial, begun, release := hanging(t)
	b := &broker{targets: []target{{"db", netip.MustParseAddrPort("192.0.2.1:1")}}, dial: dial, members: us}
	cmd := clientCommand("connect", "192.0.2.1:1")
	stop := child(t, b, cmd)
	<-begun
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = cmd.Process.Wait()
	stopsSoon(t, stop)
	// The socket that comes too late is closed.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSocket(pair[0])
	release <- pair[1]
	if n, err := unix.Read(pair[0], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("the socket lives: %d, %v", n, err)
	}
}

// TestBrokerStopsWhileConnectsHang has callers that live, of every kind of connect that can wait.
func TestBrokerStopsWhileConnectsHang(t *testing.T) {
	t.Parallel()
	dial, begun, release := hanging(t)
	defer close(release)
	full, fill := fullPort(t)
	defer fill()
	for _, at := range []string{"192.0.2.1:1", full.String()} {
		b := &broker{targets: []target{{"db", netip.MustParseAddrPort("192.0.2.1:1")}}, dial: dial, isolated: true}
		cmd := clientCommand("flood", at, "100") // more than are worked on at a time
		stop := child(t, b, cmd)
		if at == full.String() {
			time.Sleep(300 * time.Millisecond)
		} else {
			for range connectsAtOnce {
				<-begun
			}
		}
		stopsSoon(t, stop)
		_ = cmd.Process.Kill()
	}
}

// TestBrokerGoesOnBesidesSlowDials: some that wait do not keep the others.
func TestBrokerGoesOnBesidesSlowDials(t *testing.T) {
	t.Parallel()
	dial, begun, release := hanging(t)
	defer close(release)
	at, _ := serveOn(t, "tcp4", "127.0.0.1:0")
	b := &broker{targets: []target{{"db", netip.MustParseAddrPort("192.0.2.1:1")}}, dial: dial, isolated: true}
	start := time.Now()
	if said := client(t, b, "beside", "192.0.2.1:1", at.String()); said != "" {
		t.Error(said)
	}
	if took := time.Since(start); took > 5*time.Second || len(begun) == 0 {
		t.Errorf("it took %s, beside %d", took, len(begun))
	}
}

// besideSlow connects to the second address while connects to the first wait.
func besideSlow(words []string) error {
	for range 20 {
		go func() { _ = connectOnce(words[:1]) }()
	}
	time.Sleep(100 * time.Millisecond)
	return connectOnce(words[1:])
}

// TestConnectWithin breaks a connect off that the kernel would wait two minutes for.
func TestConnectWithin(t *testing.T) {
	t.Parallel()
	full, done := fullPort(t)
	defer done()
	raw := sockaddr4("127.0.0.1", full.Port())
	for _, limit := range []time.Duration{0, 50 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := connectWithin(ctx, fd, func() error { return connectOn(fd, raw) }); !errors.Is(err, unix.ETIMEDOUT) {
			t.Errorf("connect gives %v", err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		cancel()
		closeSocket(fd)
	}
}

// fullPort listens and has no room for another connection.
func fullPort(t testing.TB) (at netip.AddrPort, done func()) {
	t.Helper()
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Bind(server, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(server, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(server)
	if err != nil {
		t.Fatal(err)
	}
	at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(name.(*unix.SockaddrInet4).Port))
	open := []int{server}
	for range 3 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = connectOn(fd, sockaddr4("127.0.0.1", at.Port()))
		open = append(open, fd)
	}
	return at, func() {
		for _, fd := range open {
			closeSocket(fd)
		}
	}
}
