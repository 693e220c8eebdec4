package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaperName is argv[0] of the program when it is started as a reaper.
const reaperName = "issuesmith-reaper"

// Descriptors the reaper inherits beside stdout and stderr.
const (
	controlFD = 3
	reportFD  = 4
)

// An order is what the reaper is to start. It travels over the control pipe.
type order struct {
	Argv     []string
	Dir      string
	Env      []string
	Drop     bool
	UID, GID int
}

// An ending is how the command ended; Error is set when it could not be started.
type ending struct {
	Exit   int
	Signal string
	Error  string
}

// The program becomes a reaper before anything else of it runs, so that every binary that links
// this package, tests included, can start commands.
func init() {
	if len(os.Args) > 0 && os.Args[0] == reaperName {
		runtime.LockOSThread()
		reap()
		os.Exit(0)
	}
}

// killed is the ending of a command that was killed.
func killed() ending {
	return ending{Exit: 128 + int(unix.SIGKILL), Signal: unix.SignalName(unix.SIGKILL)}
}

// reap starts one command, waits for it, kills all its descendants and reports. When
// the control pipe closes first (time limit, cancel, or death of the parent by SIGKILL), it kills them at once.
func reap() {
	report := json.NewEncoder(os.NewFile(reportFD, "report"))
	var o order
	control := bufio.NewReader(os.NewFile(controlFD, "control"))
	line, err := control.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err == nil {
		err = confine()
	}
	if err != nil {
		_ = report.Encode(ending{Error: err.Error()})
		return
	}
	cmd := exec.Command(o.Argv[0], o.Argv[1:]...) // #nosec G204 -- running the given command is its purpose
	cmd.Dir, cmd.Env = o.Dir, o.Env
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if o.Drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.GID)} // #nosec G115 -- a fixed small number
	}
	if err := cmd.Start(); err != nil {
		_ = report.Encode(ending{Error: err.Error()})
		return
	}
	var once sync.Once
	finish := func(end ending) {
		once.Do(func() {
			sweep()
			_ = report.Encode(end)
			os.Exit(0)
		})
	}
	go func() {
		_, _ = io.Copy(io.Discard, control)
		finish(killed())
	}()
	finish(waitFor(cmd.Process.Pid))
}

// confine makes the reaper the parent of every orphan below it, closes its memory to the commands,
// and forbids them new privileges. It must run on the thread that starts the command.
func confine() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the subreaper: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbidding new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the memory: %w", err)
	}
	// Descriptors that our own caller left open would reach the command as well.
	if err := unix.CloseRange(controlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing inherited descriptors: %w", err)
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// waitFor reaps until the command itself has ended; orphans that end meanwhile are reaped too.
func waitFor(pid int) ending {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR || err == nil && got != pid:
			continue
		case err != nil:
			return ending{Error: "waiting for the command: " + err.Error()}
		case status.Signaled():
			return ending{Exit: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
		default:
			return ending{Exit: status.ExitStatus()}
		}
	}
}
