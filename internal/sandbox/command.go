package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Command is one shell command.
type Command struct {
	Script  string        // run by bash -c where bash exists, else sh -c
	Dir     string        // below Options.Dir; "" is Options.Dir
	Timeout time.Duration // 0: none but the context's
	Keep    int           // bytes kept at each end of the output; default 64 KiB
	Spill   string        // file that receives the output up to 8 MiB; "" for none
}

// A Result is how a command ended. Output of stdout and stderr is one stream.
type Result struct {
	Exit     int    // exit status; 128+signal when killed by a signal
	Signal   string // "" or the signal's name
	TimedOut bool
	Duration time.Duration
	Head     []byte // first bytes of the output
	Tail     []byte // last bytes, empty when everything is in Head
	Size     int64  // bytes of output in all
	// Notes say, a line each, which limit ended or hindered the command and which addresses it may not reach.
	Notes []string
}

// How long the death of a command's processes may take before the run gives up on it.
const (
	deathLimit = 10 * time.Second
	drainLimit = 2 * time.Second
)

// scriptLimit is what fits into one argument (MAX_ARG_STRLEN, with its end).
const scriptLimit = 128<<10 - 1

// Run starts the command and returns when it and all its descendants are dead. A
// command that fails, times out or exceeds a limit is a Result, not an error; an error means it could
// not be run at all, its output could not be kept, or ctx ended (the descendants are dead then as well).
func (s *Sandbox) Run(ctx context.Context, c Command) (*Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(c.Script) > scriptLimit {
		return nil, fmt.Errorf("the command has %d bytes; the kernel passes at most %d to a shell: put it into a file", len(c.Script), scriptLimit)
	}
	dir, err := s.workingDir(c.Dir)
	if err != nil {
		return nil, err
	}
	if s.executor == nil {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	out, err := newOutput(c, s.options.Live, s.order.Limits.Output)
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a command: %w", err), out.close())
	}
	started := time.Now()
	drained := make(chan error, 1)
	go func() { drained <- out.drain(read) }()

	end, timedOut, err := s.executor.run(ctx, runMessage{Script: []byte(c.Script), Dir: dir}, write, c.Timeout, out.full)
	duration := time.Since(started)
	if err != nil {
		// The command has killed what watched over it: that was its own doing. The next one gets a new executor.
		stopErr := s.executor.stop()
		s.executor = nil
		if errors.Is(err, errGone) {
			err = stopErr
		}
	}
	// Every holder of the pipe is dead by now; a writer that got away must not hold the run.
	_ = read.SetReadDeadline(time.Now().Add(drainLimit))
	drainErr := <-drained
	if errors.Is(drainErr, os.ErrDeadlineExceeded) {
		drainErr = nil
	}
	err = errors.Join(err, read.Close(), drainErr, out.close())
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("running a command: %w", err)
	}
	if end.Error != "" {
		return nil, fmt.Errorf("starting a command: %s", end.Error)
	}
	res := out.result()
	res.Exit, res.Signal, res.TimedOut, res.Duration = end.Exit, end.Signal, timedOut, duration
	res.Notes = s.notes(res, end)
	return res, nil
}

// workingDir resolves a folder below the worktree; links that lead out of it are refused.
func (s *Sandbox) workingDir(below string) (string, error) {
	if err := s.sameTop(); err != nil {
		return "", err
	}
	dir := filepath.Join(s.options.Dir, below)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("the command's folder: %w", err)
	}
	root, err := filepath.EvalSymlinks(s.options.Dir)
	if err != nil {
		return "", fmt.Errorf("the worktree: %w", err)
	}
	if real != root && !strings.HasPrefix(real, root+string(filepath.Separator)) {
		return "", fmt.Errorf("the command's folder %q lies outside the worktree", below)
	}
	return real, nil
}

// sameTop refuses a folder that a command has put in the worktree's place, where tests would pass on something that
// nobody judged, and lets the commands' user into it again.
func (s *Sandbox) sameTop() error {
	top, err := os.Stat(s.options.Dir)
	if err != nil {
		return fmt.Errorf("the worktree's folder is gone, a command has moved or removed it: %w", err)
	}
	if !os.SameFile(top, s.top) {
		return fmt.Errorf("a command has put something else in the place of the worktree's folder %s", s.options.Dir)
	}
	if top.Mode().Perm()&0o700 != 0o700 {
		if err := os.Chmod(s.options.Dir, top.Mode().Perm()|0o700); err != nil { // #nosec G302 -- a folder
			return fmt.Errorf("opening the worktree's folder again: %w", err)
		}
	}
	return nil
}

// notes are what the command's own output does not say. They do not depend on chance: the same command gives the same.
func (s *Sandbox) notes(r *Result, end ending) []string {
	var notes []string
	limits := s.order.Limits
	switch {
	case r.Size > limits.Output:
		notes = append(notes, "stopped by output-limit: the command printed more than "+size(limits.Output))
	case end.Exceeded != "":
		notes = append(notes, "stopped by "+end.Exceeded)
	case r.Exit != 0:
		if hint := limits.hint(r); hint != "" {
			notes = append(notes, hint)
		}
	}
	if len(end.Refused) > 0 {
		slices.Sort(end.Refused)
		listed := "nothing is listed in the setting network"
		if len(s.options.Network.Allow) > 0 {
			listed = "the setting network lists " + strings.Join(s.options.Network.Allow, ", ")
		}
		notes = append(notes, "network: may not connect to "+strings.Join(end.Refused, ", ")+"; "+listed)
	}
	return notes
}
