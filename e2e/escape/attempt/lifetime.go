package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var lifetimeAttempts = map[string]func([]string) verdict{
	"daemon":      daemon,
	"outlive":     outlive,
	"chain":       forkChain,
	"linger":      linger,
	"foreign":     foreign,
	"foreign-x32": foreignX32,
}

// beatFile grows while what an attempt has left behind lives.
func beatFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
}

// startDaemon leaves a process of its own session behind that holds stdout, forked twice, deaf to signals.
func startDaemon(mark, beat, seconds string) error {
	cmd := exec.Command("/proc/self/exe", "daemon-child", "first", mark, beat, seconds)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Run()
}

// daemon: args are a mark by which the process is found, a file it writes to, and how long it lives.
func daemon(args []string) verdict {
	if len(args) != 3 {
		return untested("mark, file and seconds are needed")
	}
	if err := startDaemon(args[0], args[1], args[2]); err != nil {
		return refused("%v", err)
	}
	return left("a daemon")
}

// outlive leaves a daemon behind and kills who would end it, where it can.
func outlive(args []string) verdict {
	if len(args) != 3 {
		return untested("mark, file and seconds are needed")
	}
	if err := startDaemon(args[0], args[1], args[2]); err != nil {
		return refused("%v", err)
	}
	v := left("a daemon")
	_ = killParents(nil) // whether it can is another attempt
	return v
}

// left marks the command's end, after which nothing of it may live, by the time of a file.
func left(what string) verdict {
	if err := os.WriteFile("ended", nil, 0o666); err != nil {
		return untested("%v", err)
	}
	return verdict{wordDone, "left " + what}
}

func daemonChild(args []string) error {
	generation, beat := args[0], args[2]
	seconds, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	if generation == "first" {
		cmd := exec.Command("/proc/self/exe", "daemon-child", "second", args[1], args[2], args[3])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	}
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGPIPE, unix.SIGQUIT)
	f, err := beatFile(beat)
	if err != nil {
		return err
	}
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := f.WriteString("."); err != nil {
			return err
		}
	}
	return nil
}

// forkChain: args are a file and how many seconds the chain goes on.
func forkChain(args []string) verdict {
	if len(args) != 2 {
		return untested("file and seconds are needed")
	}
	f, err := beatFile(args[0])
	if err != nil {
		return untested("%v", err)
	}
	seconds, err := strconv.Atoi(args[1])
	if err != nil {
		return untested("%v", err)
	}
	var until unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &until); err != nil {
		return untested("%v", err)
	}
	until.Sec += int64(seconds)
	beat := int(f.Fd())
	for range 3 {
		pid, errno := fork()
		if errno != 0 {
			return refused("%v", errno)
		}
		if pid == 0 {
			chain(beat, until)
		}
	}
	time.Sleep(50 * time.Millisecond)
	return left("three chains of forks")
}

// linger leaves a daemon behind and goes on itself.
func linger(args []string) verdict {
	if len(args) != 3 {
		return untested("mark, file and seconds are needed")
	}
	if err := startDaemon(args[0], args[1], args[2]); err != nil {
		return refused("%v", err)
	}
	fmt.Println("lingering")
	if err := daemonChild([]string{"second", args[0], args[1], args[2]}); err != nil {
		return refused("%v", err)
	}
	return escaped("lived on")
}

// foreign runs programs for the 32-bit system call table: one of i386, one of this architecture that uses the old
// entry. Their exit status is 42 when they got a socket.
func foreign([]string) verdict {
	if len(foreignPrograms) == 0 {
		return untested("this architecture has no second system call table")
	}
	var t tries
	for name, program := range foreignPrograms {
		path := "./foreign-" + name
		if err := os.WriteFile(path, program, 0o700); err != nil {
			t.note(name, err)
			continue
		}
		cmd := exec.Command(path)
		err := cmd.Run()
		_ = os.Remove(path)
		state := cmd.ProcessState
		switch {
		case state == nil:
			t.note(name, err)
		case state.ExitCode() == 42:
			t.note("got a socket by "+name, nil)
		default:
			t.note(name, fmt.Errorf("%s: %v", name, state))
		}
	}
	return t.verdict()
}
