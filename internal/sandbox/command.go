package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	// Exceeded names the limit that ended the command, in words for the agent; "" for none.
	Exceeded string
	// Refused are the addresses that the command tried to reach and may not, each once, at most 8.
	Refused []string
}

// How long the death of a command's processes may take before the run gives up on it.
const (
	deathLimit = 10 * time.Second
	drainLimit = 2 * time.Second
)

// Run starts the command and returns when it and all its descendants are dead. A
// command that fails or times out is a Result, not an error; an error means it could
// not be run at all, its output could not be kept, or ctx ended (the descendants are dead then as well).
func (s *Sandbox) Run(ctx context.Context, c Command) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := s.workingDir(c.Dir)
	if err != nil {
		return nil, err
	}
	out, err := newOutput(c, s.options.Live)
	if err != nil {
		return nil, err
	}
	r, err := startReaper(order{
		Argv: []string{s.shell, "-c", c.Script}, Dir: dir, Env: s.env,
		Drop: s.owner.Drop, UID: s.owner.UID, GID: s.owner.GID,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a command: %w", err), out.close())
	}
	started := time.Now()
	drained := make(chan error, 1)
	go func() { drained <- out.drain(r.output) }()

	end, timedOut, err := r.wait(ctx, c.Timeout)
	duration := time.Since(started)
	// Every holder of the pipe is dead by now; a writer that got away must not hold the run.
	_ = r.output.SetReadDeadline(time.Now().Add(drainLimit))
	drainErr := <-drained
	if errors.Is(drainErr, os.ErrDeadlineExceeded) {
		drainErr = nil
	}
	err = errors.Join(err, r.output.Close(), drainErr, out.close())
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

// A reaper is the process between us and a command: parent of all its descendants.
type reaper struct {
	cmd     *exec.Cmd
	output  *os.File // read end of the command's stdout and stderr
	control *os.File // closing it asks the reaper to kill everything
	report  *os.File // read end of the reaper's report
}

func startReaper(o order) (*reaper, error) {
	encoded, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var opened []*os.File
	pipe := func() (read, write *os.File) {
		if err == nil {
			if read, write, err = os.Pipe(); err == nil {
				opened = append(opened, read, write)
			}
		}
		return read, write
	}
	outRead, outWrite := pipe()
	controlRead, controlWrite := pipe()
	reportRead, reportWrite := pipe()
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	if err != nil {
		closeAll(opened...)
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{reaperName}
	// The order brings the command's environment; the reaper needs none. A reaper built with the race
	// detector would wait a second before it ends.
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
	cmd.Stdout, cmd.Stderr = outWrite, outWrite
	cmd.ExtraFiles = []*os.File{controlRead, reportWrite}
	err = begin(cmd)
	closeAll(outWrite, controlRead, reportWrite)
	if err == nil {
		// The order goes over the control pipe, not over an argument that all can read.
		_, err = controlWrite.Write(append(encoded, '\n'))
		if err != nil {
			_ = cmd.Process.Kill()
			_ = await(cmd)
		}
	}
	if err != nil {
		closeAll(outRead, controlWrite, reportRead)
		return nil, err
	}
	return &reaper{cmd: cmd, output: outRead, control: controlWrite, report: reportRead}, nil
}

// wait returns the reaper's report. At the end of ctx or of the time limit it has everything killed first.
func (r *reaper) wait(ctx context.Context, limit time.Duration) (end ending, timedOut bool, err error) {
	type report struct {
		ending
		err error
	}
	reported := make(chan report, 1)
	go func() {
		var got report
		got.err = json.NewDecoder(io.LimitReader(r.report, 1<<16)).Decode(&got.ending)
		reported <- got
	}()
	var expired <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	var got report
	early := false
	select {
	case got = <-reported:
		_ = r.control.Close()
	case <-expired:
		timedOut, early = true, true
	case <-ctx.Done():
		early = true
	}
	if early {
		_ = r.control.Close()
		select {
		case got = <-reported:
		case <-time.After(deathLimit):
			_ = r.cmd.Process.Kill()
			<-reported
			got.err = errors.New("its processes did not die")
		}
	}
	err = got.err
	waitErr := await(r.cmd)
	switch {
	case errors.Is(err, io.EOF):
		// The command has killed what watched over it: it ended by its own doing.
		sweepOrphans()
		got.ending, err = killed(), nil
	case err == nil && waitErr != nil:
		err = fmt.Errorf("the process that watches over it: %w", waitErr)
	}
	return got.ending, timedOut, errors.Join(err, r.report.Close())
}
