package stand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"issuesmith/e2e/parts"
)

// Inside calls f on a thread that stands in the daemon's network: what f listens on is
// reached by containers, and a process that f starts has their network.
func (d *Docker) Inside(f func() error) error {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close() //nolint:errcheck // only read
	theirs, err := os.Open(d.namespace())
	if err != nil {
		return fmt.Errorf("the network of dockerd: %w", err)
	}
	defer theirs.Close() //nolint:errcheck // only read
	runtime.LockOSThread()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering the network of dockerd: %w", err)
	}
	err = f()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		// Not unlocked: the thread, which is good for nothing else now, ends with its goroutine.
		return errors.Join(err, fmt.Errorf("leaving the network of dockerd: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// loopback switches the loopback interface on, without which the runner does not reach the
// daemon's own addresses.
func (d *Docker) loopback() error {
	return d.Inside(func() error {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s) //nolint:errcheck // only a handle
		request, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_UP)
		return os.NewSyscallError("switching lo on", unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request))
	})
}

// noNames answers every question for a name with "there is none". The daemon asks it for
// what is no container's name; without an answer who asked would wait 20 seconds.
func (d *Docker) noNames() error {
	var c net.PacketConn
	if err := d.Inside(func() (err error) {
		c, err = net.ListenPacket("udp4", dockerAddress+":53") //nolint:noctx // at once
		return err
	}); err != nil {
		return err
	}
	d.closes = append(d.closes, func() { _ = c.Close() })
	go func() {
		message := make([]byte, 512)
		for {
			n, from, err := c.ReadFrom(message)
			if err != nil {
				return // closed
			}
			if n >= 12 { // the question is sent back with the header of a refusal (RFC 1035, 4.1.1)
				message[2] |= 0x80                  // an answer
				message[3] = message[3]&0xf0 | 3    // the name does not exist
				_, _ = c.WriteTo(message[:n], from) // who asked may be gone
			}
		}
	}()
	return nil
}

// Listen opens a port that containers reach, by the address the listener has, on whatever
// network of the daemon they are; 0 is any. It is closed with the daemon.
func (d *Docker) Listen(port int) (net.Listener, error) {
	var l net.Listener
	err := d.Inside(func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort(dockerAddress, strconv.Itoa(port))) //nolint:noctx // at once
		return err
	})
	if err != nil {
		return nil, err
	}
	d.closes = append(d.closes, func() { _ = l.Close() }) // closed already is fine
	return l, nil
}

// Forward lets containers reach a server of the host: it returns the host:port they
// connect to. target is what the host connects to.
func (d *Docker) Forward(target string) (string, error) {
	l, err := d.Listen(0)
	if err != nil {
		return "", err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			go pipe(c, target)
		}
	}()
	return l.Addr().String(), nil
}

// pipe connects to target and passes everything on until both sides have ended.
func pipe(c net.Conn, target string) {
	defer c.Close()                                          //nolint:errcheck // both directions have ended
	t, err := net.DialTimeout("tcp", target, 10*time.Second) //nolint:noctx // bounded
	if err != nil {
		return // the client sees its connection closed, as if nobody listened
	}
	defer t.Close() //nolint:errcheck // both directions have ended
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, t}, {t, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // an error ends this direction as well
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite() // ended already is fine
			}
		})
	}
	both.Wait()
}

// webProxy lets image builds fetch packages as this machine's apt does: it returns the
// address of a forward proxy for plain HTTP, and how to end it.
func (d *Docker) webProxy(ctx context.Context) (string, func(), error) {
	l, err := d.Listen(0)
	if err != nil {
		return "", nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, ResponseHeaderTimeout: 2 * time.Minute}
	if apt := parts.AptProxy(ctx); apt != "" {
		to, err := url.Parse(apt)
		if err != nil {
			return "", nil, fmt.Errorf("apt's proxy: %w", err)
		}
		transport.Proxy = http.ProxyURL(to)
	}
	server := &http.Server{
		// The request names its target in full, which is where it goes.
		Handler:           &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }, Transport: transport},
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = server.Serve(l) }() // ends by Close
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}
