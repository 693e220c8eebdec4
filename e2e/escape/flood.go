package escape

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"issuesmith/e2e/stand"
)

// floodBudget is how much a flood of 256 MiB of output may add to the memory of action and executor.
const floodBudget = 40 << 20

// flooded measures that, as proportional set size.
func (s *Scene) flooded(ctx context.Context) (Outcome, error) {
	if os.Geteuid() != 0 {
		return Outcome{NotRun, "the memory of a closed process can be read by root only"}, nil
	}
	cmd := s.step(ctx, nil, s.sandboxed("issuesmith", []string{"--output-limit", "512MiB"}, "./attempt", "flood", "256", "400")...)
	if err := cmd.Start(); err != nil {
		return Outcome{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }() // ended already is fine
	var first, most int64
	var flooding time.Time
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-ended:
			switch {
			case first == 0:
				return Outcome{Failed, fmt.Sprintf("it was over before it was measured: %v", err)}, nil
			case most-first > floodBudget:
				return Outcome{Escaped, fmt.Sprintf("action and executor grew from %d to %d KiB", first>>10, most>>10)}, nil
			}
			return Outcome{Refused, fmt.Sprintf("action and executor: %d KiB before, %d KiB at most", first>>10, most>>10)}, nil
		default:
		}
		size, command := s.product()
		if !command {
			continue
		}
		if flooding.IsZero() {
			flooding = time.Now().Add(300 * time.Millisecond)
		}
		if time.Now().Before(flooding) {
			first = max(first, size)
		}
		most = max(most, size)
	}
	return Outcome{Escaped, "the flood did not end in 30 s"}, nil
}

// product is the memory of the scene's action and executor, and whether a command runs below them.
func (s *Scene) product() (size int64, command bool) {
	all := stand.Processes()
	var action int
	for _, p := range all {
		if strings.HasPrefix(p.Command, s.path("bin/issuesmith")+" sandbox") {
			action = p.PID
		}
	}
	if action == 0 {
		return 0, false
	}
	for _, p := range stand.Below(action) {
		if strings.HasPrefix(p.Command, "./attempt") {
			command = true
		} else if !strings.HasPrefix(p.Command, "bash") {
			size += proportional(p.PID)
		}
	}
	return size, command
}

// proportional reads the proportional set size of a process, in bytes.
func proportional(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}
