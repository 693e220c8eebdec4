package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func unixTo(t *tries, what, path string, kinds ...int) {
	for _, kind := range kinds {
		fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.note(what, err)
			continue
		}
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err == nil {
			err = greet(fd)
		}
		t.note("connected to "+what, err)
		_ = unix.Close(fd)
	}
}

func unixStream(args []string) verdict {
	var t tries
	here, err := os.Getwd()
	for _, path := range args {
		unixTo(&t, path, path, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)
		if err == nil {
			if relative, err := filepath.Rel(here, path); err == nil {
				unixTo(&t, relative, relative, unix.SOCK_STREAM)
			}
		}
		unixTo(&t, path, "/proc/self/root"+path, unix.SOCK_STREAM)
	}
	return t.verdict()
}

// unixLink reaches a socket by names inside: a symbolic link, a hard link, a link in place of a folder, a folder that
// is open and was moved.
func unixLink(args []string) verdict {
	var t tries
	for i, path := range args {
		name := fmt.Sprintf("socket-%d", i)
		for what, make := range map[string]func() error{
			"symbolic link": func() error { return os.Symlink(path, name) },
			"hard link":     func() error { return os.Link(path, name) },
		} {
			if err := make(); err != nil {
				t.note(what, err)
				continue
			}
			unixTo(&t, what+" to "+path, name, unix.SOCK_STREAM)
			_ = os.Remove(name)
		}
		if err := os.Symlink(filepath.Dir(path), name); err == nil {
			unixTo(&t, "folder link to "+path, filepath.Join(name, filepath.Base(path)), unix.SOCK_STREAM)
			_ = os.Remove(name)
		}
	}
	return t.verdict()
}

func unixDatagram(args []string) verdict {
	var t tries
	for _, path := range args {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Sendto(fd, []byte(hello), 0, &unix.SockaddrUnix{Name: path})
			_ = unix.Close(fd)
		}
		t.note("sent a datagram to "+path, err)
		// A pair is allowed; that its ends can be sent elsewhere must not be.
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Sendto(pair[0], []byte(hello), 0, &unix.SockaddrUnix{Name: path})
			_, _ = unix.Close(pair[0]), unix.Close(pair[1])
		}
		t.note("sent a datagram to "+path+" from an end of a pair", err)
	}
	return t.verdict()
}

func abstract(args []string) verdict {
	var t tries
	for _, name := range args {
		unixTo(&t, "the abstract socket "+name, "@"+name, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Sendto(fd, []byte(hello), 0, &unix.SockaddrUnix{Name: "@" + name + "-datagram"})
			_ = unix.Close(fd)
		}
		t.note("sent a datagram to the abstract socket "+name, err)
	}
	return t.verdict()
}
