package escape

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"issuesmith/e2e/stand"
)

// killed is row 25: the action is killed while a command runs that has left a daemon behind. A second later nothing of it may live.
func (s *Scene) killed(ctx context.Context) (Outcome, error) {
	lives, why, err := s.afterKill(ctx, true)
	if err != nil || lives {
		return Outcome{Escaped, why}, err
	}
	if s.Place.Name != PlaceUser {
		return Outcome{Refused, why}, nil // the control is made in one place
	}
	lives, outside, err := s.afterKill(ctx, false)
	if err == nil && !lives {
		return Outcome{ByPlace, outside}, nil
	}
	return Outcome{Refused, why}, err
}

// afterKill kills the action, or without a sandbox the command itself, and reports whether anything lives a second later.
func (s *Scene) afterKill(ctx context.Context, sandboxed bool) (lives bool, why string, err error) {
	s.count++
	line, victim := []string{"./attempt", "linger", s.mark(), "./beat", "30"}, "./attempt linger "+s.mark()
	if sandboxed {
		line, victim = s.sandboxed("issuesmith", nil, line...), s.path("bin/issuesmith")+" sandbox"
	}
	cmd := s.step(ctx, nil, line...)
	if err := cmd.Start(); err != nil {
		return false, "", err
	}
	defer func() { _ = cmd.Wait() }() // it is killed
	defer func() {
		for _, p := range s.mine() {
			_ = p.Kill() // gone already is fine
		}
	}()
	action, err := s.started(ctx, victim)
	if err != nil {
		return false, "", err
	}
	// The daemon has no parent any more but whoever adopted it: it is found by its mark, all others by their parents.
	doomed := map[int]bool{}
	for _, p := range append(stand.Below(action.PID), s.mine()...) {
		around := strings.HasPrefix(p.Command, "docker ") || strings.HasPrefix(p.Command, "bash -c")
		if p.PID != action.PID && !around { // the step around it ends by itself
			doomed[p.PID] = true
		}
	}
	if err := action.Kill(); err != nil {
		return false, "", err
	}
	killed := time.Now()
	for {
		var left []string
		for _, p := range stand.Processes() {
			if doomed[p.PID] {
				left = append(left, p.Command)
			}
		}
		took := time.Since(killed).Round(time.Millisecond)
		if len(left) == 0 && !s.beats() {
			return false, fmt.Sprintf("%d processes dead after %v", len(doomed), took), nil
		}
		if took > time.Second {
			return true, fmt.Sprintf("alive after %v: %q", took, left), nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// started waits until the command's daemon lives and returns the process whose command line begins with victim.
func (s *Scene) started(ctx context.Context, victim string) (stand.Process, error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		all := s.mine()
		daemon := slices.ContainsFunc(all, func(p stand.Process) bool { return strings.Contains(p.Command, "daemon-child second") })
		i := slices.IndexFunc(all, func(p stand.Process) bool { return strings.HasPrefix(p.Command, victim) })
		if daemon && i >= 0 {
			return all[i], nil
		}
	}
	return stand.Process{}, fmt.Errorf("the command did not start: %v", s.mine())
}

// mine are the processes that have the current mark among their arguments.
func (s *Scene) mine() []stand.Process {
	return slices.DeleteFunc(stand.Processes(), func(p stand.Process) bool {
		return !slices.Contains(strings.Fields(p.Command), s.mark())
	})
}
