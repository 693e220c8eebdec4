package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func notEnded() bool { return false }

// measure walks folders as the watch does.
func measure(folders ...string) holdings {
	h := holdings{enough: func(*holdings) bool { return false }, ended: notEnded}
	h.walk(folders)
	return h
}

func write(t testing.TB, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
}

// deepen makes a chain of folders deeper than any path can name and returns the last one.
func deepen(t testing.TB, dir string, depth int) (last int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range depth {
		if err == nil {
			err = unix.Mkdirat(fd, "d", 0o700)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		_ = unix.Close(fd)
		fd = next
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestHoldingsCountOnceAndFollowNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), 1<<20)
	for i, make := range []func() error{
		func() error { return os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")) },
		func() error { return os.Symlink("/usr", filepath.Join(dir, "usr")) },
		func() error { return os.Symlink(".", filepath.Join(dir, "loop")) },
		func() error { return unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600) },
		func() error { return os.Truncate(filepath.Join(dir, "a"), 1<<40) }, // a hole takes nothing
	} {
		if err := make(); err != nil {
			t.Fatal(i, err)
		}
	}
	// A folder that is given twice counts once.
	if h := measure(dir, dir); h.bytes < 1<<20 || h.bytes > 1<<20+64<<10 || h.hidden {
		t.Errorf("%+v", h)
	}
}

func TestHoldingsOfDeepTrees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const depth = 2500 // PATH_MAX is 4096
	last := deepen(t, dir, depth)
	defer func() { _ = unix.Close(last) }()
	fd, err := unix.Openat(last, "f", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = unix.Write(fd, bytes.Repeat([]byte("x"), 5<<20)); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	h, folders := measure(dir), measure(t.TempDir())
	if inFiles := h.bytes - (depth+1)*folders.bytes; h.hidden || inFiles < 5<<20 || inFiles > 6<<20 {
		t.Errorf("%+v, %d in files", h, inFiles)
	}
	h = holdings{enough: func(h *holdings) bool { return h.bytes > 1<<20 }, ended: notEnded}
	if h.walk([]string{dir}); h.bytes > 2<<20 || h.hidden {
		t.Errorf("the walk went on when it had enough: %+v", h)
	}
	if err := emptyFolder(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestEmptyFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	outside, dir := filepath.Join(base, "outside"), filepath.Join(base, "dir")
	for _, path := range []string{outside, dir, filepath.Join(dir, "closed", "deep"), filepath.Join(dir, "listed")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(outside, "precious"), 1)
	write(t, filepath.Join(dir, "closed", "deep", "f"), 1)
	write(t, filepath.Join(dir, "listed", "f"), 1)
	for i := range 3000 {
		write(t, filepath.Join(dir, fmt.Sprint("many", i)), 0)
	}
	for i, make := range []func() error{
		func() error { return os.Symlink(outside, filepath.Join(dir, "link")) },
		func() error { return os.Symlink(outside, filepath.Join(dir, "closed", "link")) },
		func() error { return unix.Mkfifo(filepath.Join(dir, "fifo"), 0) },
		func() error { return os.Mkdir(filepath.Join(dir, strings.Repeat("n", 255)), 0) },
		func() error { return os.Chmod(filepath.Join(dir, "closed", "deep"), 0) },
		func() error { return os.Chmod(filepath.Join(dir, "closed"), 0) },
		func() error { return os.Chmod(filepath.Join(dir, "listed"), 0o400) },
		func() error { return os.Chmod(dir, 0o500) },
	} {
		if err := make(); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := emptyFolder(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Error("a link was followed:", err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := emptyFolder(link); err == nil {
		t.Error("a link in the folder's place was followed")
	}
}

// spaced is a meter on a file system of which others, and the test, take space.
func spaced(folders ...string) (m *diskMeter, take func(bytes int64)) {
	free := int64(1 << 40)
	m = newDiskMeter(folders)
	m.space = func([]string) freeBytes { return freeBytes{{}: free} }
	m.born = m.space(nil)
	return m, func(bytes int64) { free -= bytes }
}

func TestDiskMeter(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	none := func() []int { return nil }
	for _, c := range []struct {
		name  string
		held  int   // bytes in the folder before the command
		wrote int   // and by it
		gone  int64 // from the file system since the command's start
		older int64 // and since the sandbox's
		close bool  // something in it cannot be looked at
		want  bool
	}{
		{"little has gone", 0, 80 << 20, 1 << 20, 0, false, false},
		{"within the limit", 0, 40 << 20, 40 << 20, 0, false, false},
		{"another program's", 0, 10 << 20, 500 << 20, 0, false, false},
		{"filled by the command", 0, 80 << 20, 80 << 20, 0, false, true},
		{"filled up by the command", 40 << 20, 30 << 20, 30 << 20, 0, false, true},
		{"held before", 80 << 20, 1 << 20, 100 << 20, 0, false, false},
		{"held before, and the command adds to it", 80 << 20, 8 << 20, 20 << 20, 0, false, true},
		{"hidden", 0, 0, 70 << 20, 0, true, true},
		{"hidden, of this and earlier commands", 0, 0, 30 << 20, 50 << 20, true, true},
		{"something is closed, little has gone", 0, 0, 30 << 20, 0, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "before"), c.held)
			folders := []string{dir}
			if c.close {
				folders = append(folders, filepath.Join(dir, "missing"))
			}
			time.Sleep(20 * time.Millisecond) // the time of a file is the last tick's
			m, take := spaced(folders...)
			take(c.older)
			m.begin()
			time.Sleep(20 * time.Millisecond)
			write(t, filepath.Join(dir, "fresh"), c.wrote)
			take(c.gone)
			if got := m.exceeds(limit, none, notEnded); got != c.want {
				t.Errorf("exceeds: %v, %+v", got, m)
			}
		})
	}
}

func TestDiskMeterAfterItHasWalked(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), 40<<20)
	m, take := spaced(dir)
	m.begin()
	exceeds := func() bool {
		m.next = time.Time{}
		return m.exceeds(limit, func() []int { return nil }, notEnded)
	}
	m.unasked = time.Time{}
	if exceeds() || m.held < 40<<20 {
		t.Fatalf("%+v", m)
	}
	// Another program may give back as much as the command takes.
	m.unasked = time.Now().Add(time.Hour)
	// 24 MiB are left, so that no walk is needed before these have gone.
	held := m.held
	write(t, filepath.Join(dir, "g"), 30<<20)
	take(10 << 20)
	if exceeds() || m.held != held {
		t.Fatalf("walked for nothing: %+v", m)
	}
	take(20 << 20)
	if !exceeds() {
		t.Errorf("%+v", m)
	}
}

// TestDiskMeterStops: a walk does not hold up the end of a command.
func TestDiskMeterStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_ = unix.Close(deepen(t, dir, 3))
	m := newDiskMeter([]string{dir})
	m.begin()
	m.unasked = time.Time{}
	if m.exceeds(1, func() []int { return nil }, func() bool { return true }) {
		t.Error("what was not walked cannot exceed")
	}
	if err := emptyFolder(dir); err != nil {
		t.Fatal(err)
	}
}

func TestUnnamedFilesCount(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		t.Fatal(err)
	}
	h := holdings{ended: notEnded}
	self := os.Getpid()
	h.unnamed([]int{self, self})
	if h.bytes < 1<<20 || h.fresh != h.bytes || h.hidden {
		t.Errorf("%+v", h)
	}
}
