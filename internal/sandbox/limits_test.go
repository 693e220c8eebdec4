package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tight are limits below what the hogs take.
var tight = Limits{Memory: 256 << 20, Processes: 40, FileSize: 100 << 20, Disk: 200 << 20, OpenFiles: 64, CPU: time.Second, Output: 8 << 20}

func TestLimitsEndACommandAndTheNextOneRuns(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{Limits: tight})
	bringHog(t, s)
	for _, c := range []struct{ name, script, note string }{
		{"private memory", "./hog hog private", "memory-limit"},
		{"shared memory", "./hog hog shared", "memory-limit"},
		{"memory file", "./hog hog memfd", ""}, // its size is bounded by file-size-limit first
		{"memory files", "./hog hog memfds", "memory-limit"},
		{"memory of a process whose first thread has ended", "./hog hog headless", "memory-limit"},
		{"files of memory", "for i in 1 2 3 4 5 6; do head -c 90M /dev/zero > /dev/shm/$i || exit 9; done; sleep 20", ""},
		{"processor time", "./hog hog spin", "cpu-limit"},
		{"processor time of orphans", "for i in $(seq 60); do (./hog hog burst &); sleep 0.2; done", "cpu-limit"},
		// Two children each: 63 processes, that make no more whatever happens.
		{"fork bomb", "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 20; }; f 5", "process-limit"},
		{"processes", "for i in $(seq 100); do sleep 20 & done; wait", "process-limit"},
		{"a file", "head -c 150M /dev/zero > big", "file-size-limit"},
		{"a disk", "for i in 1 2 3 4; do head -c 90M /dev/zero > $HOME/f$i; done; sleep 20", "disk-limit"},
		{"a disk, by files without a name", "for i in 1 2 3 4; do exec {f}>$TMPDIR/f; rm $TMPDIR/f; head -c 90M /dev/zero >&$f; done; sleep 20", "disk-limit"},
		{"a disk, in a closed folder", "mkdir d; cd d; chmod 300 .; for i in 1 2 3 4; do head -c 90M /dev/zero > f$i; done; sleep 20", "disk-limit"},
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
		if r := run(t, s, Command{Script: "chmod -fR u+rwx d; rm -rf d big $HOME/f* /dev/shm/[0-9]; echo next"}); r.Output() != "next\n" {
			t.Fatalf("%s: the next command: %q", c.name, r.Output())
		}
	}
}

func TestFloodIsCut(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{Limits: Limits{Output: 256 << 20}})
	r := run(t, s, Command{Script: "yes", Timeout: time.Minute})
	if r.TimedOut || r.Exit == 0 || r.Duration > 10*time.Second { // a fraction of a second, where nothing else runs
		t.Errorf("exit %d after %v and %d MiB", r.Exit, r.Duration, r.Size>>20)
	}
	if kept := len(r.Head) + len(r.Tail); kept > 2*defaultKeep {
		t.Errorf("%d bytes kept", kept)
	}
	t.Logf("%d MiB in %v", r.Size>>20, r.Duration)
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

func TestMemoryOfAStartingChildIsItsParents(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{Limits: Limits{Memory: 300 << 20}})
	bringHog(t, s)
	if r := run(t, s, Command{Script: "./hog hog spawner"}); r.Exit != 0 {
		t.Errorf("exit %d, %q, %q", r.Exit, r.Output(), r.Notes)
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
