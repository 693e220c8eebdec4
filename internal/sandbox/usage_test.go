package sandbox

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestUsageOfThisProcess(t *testing.T) {
	t.Parallel()
	pid := os.Getpid()
	u, ok := usageOf(pid)
	if !ok || u.parent != os.Getppid() || u.resident < 1<<20 || u.folder != "/proc/"+strconv.Itoa(pid) {
		t.Errorf("%+v %v", u, ok)
	}
	private, shared := exactly(map[int]usage{pid: u})
	if sum := private + shared; sum < 1<<20 || sum > u.resident+64<<20 {
		t.Errorf("exactly %d and %d, resident %d", private, shared, u.resident)
	}
	if !sameMemory(pid, pid) || sameMemory(pid, os.Getppid()) {
		t.Error("address spaces are told apart wrongly")
	}
}

func TestUsageOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if u, ok := usageOf(cmd.Process.Pid); ok {
		t.Errorf("%+v", u)
	}
	if private, shared := exactly(map[int]usage{cmd.Process.Pid: {folder: "/proc/" + strconv.Itoa(cmd.Process.Pid), resident: 1 << 40}}); private+shared != 0 {
		t.Errorf("%d and %d bytes", private, shared)
	}
}

func TestUsageOfAProcessWithoutItsFirstThread(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", "hog", "headless")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	folder := "/proc/" + strconv.Itoa(cmd.Process.Pid)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if s, _ := statOf(folder); s.dead() {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the first thread goes on")
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		u, ok := usageOf(cmd.Process.Pid)
		private, _ := exactly(map[int]usage{cmd.Process.Pid: u})
		if ok && u.resident > 600<<20 && private > 600<<20 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, exactly %d", u, private)
		}
	}
}

func TestMemoryFilesCountOnceAndAreBounded(t *testing.T) {
	t.Parallel()
	fd, err := unix.MemfdCreate("a file", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if _, err := unix.Write(fd, make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(again) }()
	u, _ := usageOf(os.Getpid())
	members := map[int]usage{1: u, 2: u}
	if sum := memoryFiles(members, linksMax); sum < 3<<20 || sum >= 6<<20 {
		t.Errorf("%d bytes", sum)
	}
	if sum := memoryFiles(members, 1); sum != 0 {
		t.Errorf("%d bytes in the first descriptor", sum)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) b) c) Z 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 5 0 99 1000 250 1844674407370955\n"))
	f.Add([]byte("7 (a"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, ok := parseStat(text); ok && s.state == ' ' || !ok && s != (stat{}) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	s, ok := parseStat([]byte("7 (a) b) c) Z 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 5 0 99 1000 250 1844674407370955\n"))
	if !ok || !s.dead() || s.number[statParent] != 3 || s.number[statCPU] != 10 || s.number[statCPU+3] != 40 || s.number[statThreads] != 5 || s.number[statResident] != 250 {
		t.Errorf("%+v %v", s, ok)
	}
}

func TestCutField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, name string
		want       int64
		ok         bool
	}{
		{"Pss:                1234 kB\n", "Pss:", 1234 << 10, true},
		{"Pss_Shmem:             0 kB\n", "Pss:", 0, false},
		{"Pss:\n", "Pss:", 0, true},
		{"", "Pss:", 0, false},
	} {
		if n, ok := cutField([]byte(c.line), c.name); n != c.want || ok != c.ok {
			t.Errorf("%q: %d %v", c.line, n, ok)
		}
	}
}

// ownCPU is the processor time of this process, which a busy machine does not change much.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sleepers are processes of their own to measure.
func sleepers(b *testing.B, n int) (pids []int) {
	for range n {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		pids = append(pids, cmd.Process.Pid)
	}
	return pids
}

func BenchmarkSample(b *testing.B) {
	for _, n := range []int{1, 50, 500} {
		pids := sleepers(b, n)
		for name, members := range map[string]func() []int{
			"listed": func() []int { _ = listed(); return pids }, // in a pid namespace, of this machine's size here
			"tree":   func() []int { return descendants(os.Getpid()) },
		} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				w := watch{limits: Limits{Processes: 10_000}.withDefaults(), members: members, sharedMemory: "/dev/shm"}
				before := ownCPU(b)
				for b.Loop() {
					if found, _ := w.sample(); found != "" {
						b.Fatal(found)
					}
				}
				b.ReportMetric(float64(ownCPU(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkWatchStart is what a short command pays.
func BenchmarkWatchStart(b *testing.B) {
	folders := []string{b.TempDir(), b.TempDir(), b.TempDir()}
	disk := newDiskMeter(folders)
	for b.Loop() {
		w := watch{members: func() []int { return nil }, disk: disk, kill: func() {}, sharedMemory: "/dev/shm"}
		if found := w.start()(); found != "" {
			b.Fatal(found)
		}
	}
}

func BenchmarkHoldings(b *testing.B) {
	dir := b.TempDir()
	for i := range 100 {
		folder := dir + "/" + strconv.Itoa(i)
		if err := os.Mkdir(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		for j := range 50 {
			write(b, folder+"/"+strconv.Itoa(j), 1)
		}
	}
	before := ownCPU(b)
	for b.Loop() {
		if h := measure(dir); h.hidden {
			b.Fatalf("%+v", h)
		}
	}
	b.ReportMetric(float64(ownCPU(b)-before)/float64(b.N)/5000, "cpu-ns/file")
}
