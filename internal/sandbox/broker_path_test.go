package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shortDir is a folder whose sockets have short enough names.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serveAt accepts on a unix socket and says nothing.
func serveAt(t testing.TB, network, path string) {
	t.Helper()
	l, err := net.Listen(network, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
}

func TestBrokerPaths(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	in, private, out := base+"/in", base+"/private", base+"/out"
	for _, dir := range []string{in + "/sub", private, out} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	serveAt(t, "unix", in+"/s")
	serveAt(t, "unix", in+"/sub/s")
	serveAt(t, "unixpacket", in+"/packets")
	serveAt(t, "unix", private+"/s")
	serveAt(t, "unix", out+"/s")
	abstract := "broker-test-" + strconv.Itoa(os.Getpid())
	serveAt(t, "unix", "@"+abstract)
	for link, to := range map[string]string{
		in + "/link": out + "/s", in + "/folder": out, in + "/inner": "s", base + "/in-link": in, in + "/loop": "loop", base + "/inner": in,
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone, err := net.ListenUnix("unix", &net.UnixAddr{Name: in + "/gone"})
	if err != nil {
		t.Fatal(err)
	}
	gone.SetUnlinkOnClose(false)
	_ = gone.Close()

	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(cwd, in+"/s")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{isolated: true, folders: []string{in, private + "/", base + "/missing", base + "/inner"}}
	for _, c := range []struct {
		path    string
		err     error
		refused []string
	}{
		{in + "/s", nil, nil},
		{in + "/s\x00rest", nil, nil},
		{in + "/sub/s", nil, nil},
		{in + "/sub//.././s", nil, nil},
		{private + "/s", nil, nil},
		{in + "/packets", nil, nil},
		{in + "/missing", unix.ENOENT, nil},
		{in + "/file/s", unix.ENOTDIR, nil},
		{in + "/file", unix.ECONNREFUSED, nil},
		{in + "/sub", unix.ECONNREFUSED, nil},
		{in + "/gone", unix.ECONNREFUSED, nil},
		{out + "/s", unix.EACCES, []string{out + "/s"}},
		{in + "/../out/s", unix.EACCES, []string{in + "/../out/s"}},
		{in, unix.EACCES, []string{in}},
		{in + "side/s", unix.ENOENT, nil},
		{in + "/link", unix.EACCES, []string{in + "/link"}},
		{in + "/folder/s", unix.EACCES, []string{in + "/folder/s"}},
		{in + "/inner", unix.EACCES, []string{in + "/inner"}},
		{in + "/loop", unix.EACCES, []string{in + "/loop"}},
		{base + "/in-link/s", unix.EACCES, []string{base + "/in-link/s"}},
		{base + "/inner/s", unix.EACCES, []string{base + "/inner/s"}},
		{out + "/nobody", unix.ENOENT, nil},
		{"\x00" + abstract, unix.EACCES, []string{"@" + abstract}},
		{"\x00", unix.EACCES, []string{"@"}},
		{"", unix.EINVAL, nil},
	} {
		refused := brokered(t, b, func() {
			if err := connectPath(unix.SOCK_STREAM, c.path); !errors.Is(err, c.err) {
				t.Errorf("%q: connect gives %v, want %v", c.path, err, c.err)
			}
		})
		if !slices.Equal(refused, c.refused) {
			t.Errorf("%q: refused %q, want %q", c.path, refused, c.refused)
		}
	}
	if len(relative) <= 107 {
		brokered(t, b, func() {
			if err := connectPath(unix.SOCK_STREAM, relative); err != nil {
				t.Errorf("relative: %v", err)
			}
		})
	}
	// As a control: outside of the broker these lead out.
	for _, path := range []string{out + "/s", in + "/link", in + "/folder/s", "\x00" + abstract} {
		if err := connectPath(unix.SOCK_STREAM, path); err != nil {
			t.Errorf("without the broker %q: %v", path, err)
		}
	}
}

// connectPath connects a new unix socket and closes it.
func connectPath(kind int, path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeSocket(fd)
	if err := connectOn(fd, sockaddrUnix(path)); err != nil {
		return err
	}
	_, err = unix.Getpeername(fd)
	return err
}

// TestBrokerFullQueue: where there is no room a non-blocking caller hears it, and another one waits.
func TestBrokerFullQueue(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	path := dir + "/s"
	server, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSocket(server)
	if err := errors.Join(unix.Bind(server, &unix.SockaddrUnix{Name: path}), unix.Listen(server, 0)); err != nil {
		t.Fatal(err)
	}
	first, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSocket(first)
	if err := unix.Connect(first, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	b := &broker{folders: []string{dir}}
	brokered(t, b, func() {
		if err := connectPath(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, path); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("non-blocking: %v", err)
		}
	})
	time.AfterFunc(100*time.Millisecond, func() {
		for range 2 {
			if fd, _, err := unix.Accept(server); err == nil {
				closeSocket(fd)
			}
		}
	})
	brokered(t, b, func() {
		start := time.Now()
		if err := connectPath(unix.SOCK_STREAM, path); err != nil {
			t.Errorf("blocking: %v", err)
		}
		if waited := time.Since(start); waited < 50*time.Millisecond {
			t.Errorf("it waited %s only", waited)
		}
	})
}
