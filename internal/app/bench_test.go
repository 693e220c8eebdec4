package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkVersion is the cost of a start: the released binary's size, and the time and peak
// memory of its smallest command. Budget: 15 ms, 20 MiB, 25 MiB of binary.
func BenchmarkVersion(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "issuesmith")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "issuesmith")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building: %v\n%s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	var peak int64
	for b.Loop() {
		started := time.Now()
		cmd := exec.Command(binary, "version")
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(started))
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, usage.Maxrss)
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(peak)/1024, "MiB-peak")
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB-binary")
	b.ReportMetric(0, "ns/op")
}
