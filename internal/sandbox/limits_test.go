package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hog is this test binary as a program that takes memory in one way and keeps it.
func init() {
	if len(os.Args) != 3 || os.Args[1] != "hog" {
		return
	}
	const much = 700 << 20
	keep := func(p []byte) {
		for i := 0; i < len(p); i += 4096 {
			p[i] = 1
		}
	}
	switch os.Args[2] {
	case "private":
		keep(make([]byte, much))
	case "shared":
		p, err := unix.Mmap(-1, 0, much, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			os.Exit(3)
		}
		keep(p)
	case "memfd":
		fd, err := unix.MemfdCreate("hog", 0)
		if err != nil {
			os.Exit(3)
		}
		block := make([]byte, 1<<20)
		for range much >> 20 {
			if _, err := unix.Write(fd, block); err != nil {
				os.Exit(4)
			}
		}
	case "spin":
		for n := 0; ; n++ {
			if n < 0 {
				n = 0
			}
		}
	}
	time.Sleep(20 * time.Second)
	os.Exit(0)
}

// tight are limits below what the hogs take.
var tight = Limits{Memory: 256 << 20, Processes: 40, FileSize: 100 << 20, Disk: 200 << 20, OpenFiles: 64, CPU: time.Second, Output: 8 << 20}

func TestLimitsEndACommandAndTheNextOneRuns(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{Limits: tight})
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	hog := filepath.Join(filepath.Dir(s.options.Dir), "tree", "hog")
	if err := os.WriteFile(hog, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, script, note string }{
		{"private memory", "./hog hog private", "memory-limit"},
		{"shared memory", "./hog hog shared", "memory-limit"},
		{"memory file", "ulimit -f unlimited 2>/dev/null; ./hog hog memfd", ""}, // its size is bounded by file-size-limit first
		{"files of memory", "for i in 1 2 3 4 5 6; do head -c 90M /dev/zero > /dev/shm/$i || exit 9; done; sleep 20", ""},
		{"processor time", "./hog hog spin", "cpu-limit"},
		{"processes", "for i in $(seq 100); do sleep 20 & done; wait", "process-limit"},
		{"a file", "head -c 150M /dev/zero > big", "file-size-limit"},
		{"a disk", "for i in 1 2 3 4; do head -c 90M /dev/zero > $HOME/f$i; done; sleep 20", "disk-limit"},
		{"output", "yes", "output-limit"},
		{"open files", "exec 3<.; i=4; while [ $i -lt 200 ]; do eval \"exec $i<.\" || exit 1; i=$((i+1)); done", "open-files-limit"},
	} {
		started := time.Now()
		r := run(t, s, Command{Script: c.script, Timeout: time.Minute})
		if r.Exit == 0 || r.TimedOut || time.Since(started) > 15*time.Second {
			t.Errorf("%s: %+v after %v", c.name, r, time.Since(started))
		}
		if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q; output %.300q", c.name, notes, r.Output())
		}
		if r := run(t, s, Command{Script: "rm -f big $HOME/f* /dev/shm/[0-9]; echo next"}); r.Output() != "next\n" {
			t.Fatalf("%s: the next command: %q", c.name, r.Output())
		}
	}
}

func TestMemoryOfManyIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{Limits: Limits{Memory: 300 << 20}})
	// Ten processes share 100 MiB: a sum of what each has in RAM would be a gigabyte.
	script := `python3 -c '
import os, time
x = bytearray(100 << 20)
for i in range(9):
    if os.fork() == 0:
        time.sleep(1); os._exit(0)
for i in range(9): os.wait()
print("shared")'`
	if r := run(t, s, Command{Script: script}); r.Output() != "shared\n" {
		t.Errorf("%q, %q", r.Output(), r.Notes)
	}
}

func TestHeldCountsOnceAndFollowsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, make := range []func() error{
		func() error { return os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")) },
		func() error { return os.Symlink("/usr", filepath.Join(dir, "usr")) },
		func() error { return os.Symlink(".", filepath.Join(dir, "loop")) },
		func() error { return unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600) },
	} {
		if err := make(); err != nil {
			t.Fatal(i, err)
		}
	}
	if got := held([]string{dir}, 1<<40); got < 1<<20 || got > 1<<20+64<<10 {
		t.Errorf("held %d bytes", got)
	}
	deep := dir
	for range 300 {
		deep += "/d"
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := held([]string{dir}, 1<<30); got <= 1<<30 {
		t.Errorf("a tree of 300 folders hides what it holds: %d", got)
	}
}

func TestSharedFilesThatCameGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := write("old")
	s := noteShared(dir, false)
	fresh, busy := write("fresh"), write("busy")
	holder := exec.Command("sleep", "60")
	file, err := os.Open(busy)
	if err != nil {
		t.Fatal(err)
	}
	holder.Stdin = file
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _, _ = holder.Process.Kill(), holder.Wait(), file.Close() }()
	s.remove()
	for path, want := range map[string]bool{old: true, busy: true, fresh: false} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
}

func TestDefaultsAndSizes(t *testing.T) {
	t.Parallel()
	l := Limits{}.withDefaults()
	if l.Memory != 4<<30 || l.Processes != 512 || l.Disk != 4<<30 || l.FileSize != 1<<30 || l.OpenFiles != 8192 || l.CPU != time.Hour || l.Output != 128<<20 {
		t.Errorf("%+v", l)
	}
	for n, want := range map[int64]string{4 << 30: "4 GiB", 3 << 20: "3 MiB", 1500: "1500 bytes", 1 << 40: "1 TiB", 5 << 10: "5 KiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
