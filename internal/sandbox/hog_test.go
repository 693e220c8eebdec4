package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	fill := func(much int) {
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
		fill(much)
	case "memfds":
		for range 10 {
			fill(much / 10)
		}
	case "headless":
		go func() {
			time.Sleep(100 * time.Millisecond)
			keep(make([]byte, much))
		}()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // of the first thread alone
	case "burst":
		for began := time.Now(); time.Since(began) < 150*time.Millisecond; {
			runtime.Gosched()
		}
		os.Exit(0)
	case "spawner":
		p, err := unix.Mmap(-1, 0, 200<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			os.Exit(3)
		}
		keep(p)
		for began := time.Now(); time.Since(began) < 2*time.Second; {
			if err := exec.Command("/bin/true").Run(); err != nil {
				os.Exit(3)
			}
		}
		os.Exit(0)
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

// bringHog puts this test binary into a sandbox's worktree as ./hog.
func bringHog(t testing.TB, s *Sandbox) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	hog := filepath.Join(s.options.Dir, "hog")
	if err := os.WriteFile(hog, program, 0o755); err != nil {
		t.Fatal(err)
	}
}
