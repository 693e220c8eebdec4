package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCommandRuleset(t *testing.T) {
	t.Parallel()
	const connect, scopes = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	for abi, want := range []unix.LandlockRulesetAttr{
		{},
		{Handled_access_fs: 0x1fff},
		{Handled_access_fs: 0x3fff},
		{Handled_access_fs: 0x7fff},
		{Handled_access_fs: 0x7fff, Handled_access_net: connect},
		{Handled_access_fs: 0xffff, Handled_access_net: connect},
		{Handled_access_fs: 0xffff, Handled_access_net: connect, Scoped: scopes},
		{Handled_access_fs: 0xffff, Handled_access_net: connect, Scoped: scopes},
		{Handled_access_fs: 0xffff, Handled_access_net: connect, Scoped: scopes},
		{Handled_access_fs: 0x1ffff, Handled_access_net: connect, Scoped: scopes},
		{Handled_access_fs: 0x1ffff, Handled_access_net: connect, Scoped: scopes},
	} {
		if got := commandRuleset(abi, false); got != want {
			t.Errorf("version %d: %+v, want %+v", abi, got, want)
		}
		want.Handled_access_net = 0
		if got := commandRuleset(abi, true); got != want {
			t.Errorf("version %d with TCP open: %+v, want %+v", abi, got, want)
		}
	}
	for _, right := range []uint64{unix.LANDLOCK_ACCESS_FS_MAKE_CHAR, unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV} {
		if writeRights&right != 0 || readRights&right != 0 {
			t.Errorf("folders give the right %#x", right)
		}
	}
	if _, err := newRuleset(0, fileRules{}, false); err == nil {
		t.Error("a ruleset without Landlock")
	}
	if _, err := newScopes(5); err == nil {
		t.Error("scopes in version 5")
	}
}

// The folders of a confinement.
const (
	writable = iota
	readOnly
	closed
)

func opening(folder int, name string, flags int) func(confinement) error {
	return in(folder, name, func(path string) error { return openOnce(path, flags) })
}

func openOnce(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func in(folder int, name string, do func(path string) error) func(confinement) error {
	return func(c confinement) error { return do(filepath.Join(c.Folders[folder], name)) }
}

func overTCP(do func(s int, to *unix.SockaddrInet4) error) func(confinement) error {
	return func(c confinement) error {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(s) }()
		return do(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: c.Port})
	}
}

var landlockAttempts = map[string]func(confinement) error{
	"write inside":   opening(writable, "new", unix.O_WRONLY|unix.O_CREAT),
	"folder inside":  in(writable, "made", func(p string) error { return unix.Mkdir(p, 0o700) }),
	"socket inside":  in(writable, "fifo", func(p string) error { return unix.Mkfifo(p, 0o600) }),
	"link inside":    in(writable, "symbolic", func(p string) error { return unix.Symlink("file", p) }),
	"cut inside":     in(writable, "file", func(p string) error { return unix.Truncate(p, 1) }),
	"move inside":    in(writable, "", func(p string) error { return unix.Rename(p+"/mover", p+"/sub/moved") }),
	"remove inside":  in(writable, "old", unix.Unlink),
	"device inside":  in(writable, "device", func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o600, 1<<8|3) }),
	"execute inside": in(writable, "program", runOnce),

	"read":         opening(readOnly, "file", unix.O_RDONLY),
	"list":         opening(readOnly, ".", unix.O_RDONLY|unix.O_DIRECTORY),
	"execute":      in(readOnly, "program", runOnce),
	"write":        opening(readOnly, "file", unix.O_WRONLY),
	"make":         opening(readOnly, "new", unix.O_WRONLY|unix.O_CREAT),
	"cut":          in(readOnly, "file", func(p string) error { return unix.Truncate(p, 1) }),
	"remove":       in(readOnly, "file", unix.Unlink),
	"move out":     func(c confinement) error { return unix.Rename(c.Folders[writable]+"/file", c.Folders[readOnly]+"/out") },
	"hard link in": func(c confinement) error { return unix.Link(c.Folders[closed]+"/file", c.Folders[writable]+"/in") },

	"read closed":               opening(closed, "file", unix.O_RDONLY),
	"list closed":               opening(closed, ".", unix.O_RDONLY|unix.O_DIRECTORY),
	"read closed through links": opening(writable, "link", unix.O_RDONLY),
	"cut closed":                in(closed, "file", func(p string) error { return unix.Truncate(p, 1) }),
	"read one file of closed":   opening(closed, "listed", unix.O_RDONLY),
	"read what a link leads to": opening(closed, "target", unix.O_RDONLY),
	"list where a link leads":   opening(closed, "folder", unix.O_RDONLY|unix.O_DIRECTORY),
	"device":                    func(confinement) error { return openOnce("/dev/null", unix.O_RDWR|unix.O_TRUNC) },
	"other device":              func(confinement) error { return openOnce("/dev/zero", unix.O_RDONLY) },

	"connect": overTCP(func(s int, to *unix.SockaddrInet4) error { return unix.Connect(s, to) }),
	"serve": overTCP(func(s int, to *unix.SockaddrInet4) error {
		if err := unix.Bind(s, &unix.SockaddrInet4{Addr: to.Addr}); err != nil {
			return err
		}
		return unix.Listen(s, 1)
	}),
	"abstract socket": func(c confinement) error {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(s, &unix.SockaddrUnix{Name: "@" + c.Folders[writable]})
			_ = unix.Close(s)
		}
		return err
	},
	"signal": func(c confinement) error { return unix.Kill(c.Other, 0) },
}

func runOnce(path string) error {
	pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	return err
}

// A landlockCase is what an attempt gives from a version on, before it, and where nothing is restricted.
type landlockCase struct {
	name   string
	want   syscall.Errno
	from   int // version; before it the attempt works
	before syscall.Errno
}

var landlockCases = []landlockCase{
	{name: "write inside"},
	{name: "folder inside"},
	{name: "socket inside"},
	{name: "link inside"},
	{name: "cut inside"},
	{name: "move inside", from: 2, before: unix.EXDEV},
	{name: "remove inside"},
	{name: "execute inside"},
	{name: "read"},
	{name: "list"},
	{name: "execute"},
	{name: "write", want: unix.EACCES},
	{name: "make", want: unix.EACCES},
	{name: "cut", want: unix.EACCES, from: 3},
	{name: "remove", want: unix.EACCES},
	{name: "move out", want: unix.EACCES},
	{name: "hard link in", want: unix.EXDEV},
	{name: "device inside", want: unix.EACCES},
	{name: "read closed", want: unix.EACCES},
	{name: "list closed", want: unix.EACCES},
	{name: "read closed through links", want: unix.EACCES},
	{name: "cut closed", want: unix.EACCES, from: 3},
	{name: "read one file of closed"},
	{name: "read what a link leads to"},
	{name: "list where a link leads"},
	{name: "device"},
	{name: "other device", want: unix.EACCES},
	{name: "connect", want: unix.EACCES, from: 4},
	{name: "serve"},
	{name: "abstract socket", want: unix.EPERM, from: 6},
	{name: "signal", want: unix.EPERM, from: 6},
}

func TestLandlockOnThread(t *testing.T) {
	t.Parallel()
	newest := landlockABI()
	if newest < 1 {
		t.Skip("this kernel has no Landlock")
	}
	for abi := range newest + 1 {
		s := newLandlockScene(t)
		s.ABI = abi
		for name, got := range confined(t, s) {
			c := caseOf(t, name)
			want := c.want
			switch {
			case abi == 0: // the control: everything works
				want = 0
				if name == "device inside" && os.Geteuid() != 0 {
					want = unix.EPERM
				}
			case abi < c.from:
				want = c.before
			}
			if got != want {
				t.Errorf("version %d: %s: %v, want %v", abi, name, got, want)
			}
		}
	}
	s := newLandlockScene(t)
	s.ABI, s.TCP = newest, true
	if got := confined(t, s)["connect"]; got != 0 {
		t.Errorf("connect with TCP open: %v", got)
	}
}

func caseOf(t *testing.T, name string) landlockCase {
	t.Helper()
	for _, c := range landlockCases {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no case %s", name)
	return landlockCase{}
}

// newLandlockScene makes three folders and servers to connect to.
func newLandlockScene(t *testing.T) confinement {
	t.Helper()
	top := t.TempDir()
	c := confinement{Other: outsider(t)}
	for _, name := range []string{"writable", "readable", "closed"} {
		dir := filepath.Join(top, name)
		c.Folders = append(c.Folders, dir)
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"file", "old", "mover", "listed", "target", "folder/file"} {
			writeFile(t, filepath.Join(dir, file), "some text", 0o600)
		}
		program, err := os.ReadFile("/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "program"), string(program), 0o700)
	}
	link := func(target, path string) string {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	w, r, x := c.Folders[writable], c.Folders[readOnly], c.Folders[closed]
	link(x+"/file", w+"/link")
	c.Files = fileRules{
		Write: []string{w, top + "/missing", w + "/file/below"},
		Read: []string{
			r, x + "/listed", link(x+"/target", top+"/link"), link(x+"/folder", top+"/folder"), link("nothing", top+"/dangling"),
			link("round", top+"/round"), "/usr", "/bin", "/lib", "/lib64", "/proc",
		},
		Devices: []string{"/dev/null", "/dev/missing"},
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	abstract, err := net.Listen("unix", "@"+w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Close(), abstract.Close() })
	c.Port = server.Addr().(*net.TCPAddr).Port
	for _, l := range landlockCases {
		c.Try = append(c.Try, l.name)
	}
	return c
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestRestrictErrors(t *testing.T) {
	t.Parallel()
	if err := restrict(-1); err == nil || !strings.Contains(err.Error(), "Landlock") {
		t.Errorf("entering a domain that is none: %v", err)
	}
	if landlockABI() < 1 {
		t.Skip("this kernel has no Landlock")
	}
	fd, err := newRuleset(landlockABI(), fileRules{Read: []string{"/usr"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the ruleset is inherited: flags %#x, %v", flags, err)
	}
}
