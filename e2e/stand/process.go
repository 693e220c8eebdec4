package stand

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is one long-running program of the stand with its log in a file.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func launch(name string, cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the child has its own copy
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended does not matter; that it ended does
		close(p.done)
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already is fine
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // gone already is fine
		<-p.done
	}
}

func (p *process) dead() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) tail(limit int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-limit):])
}

// A Process is what /proc tells of a running process.
type Process struct {
	PID     int
	Parent  int
	UID     int
	Exe     string // "" when it may not be read
	Cwd     string // "" when it may not be read
	Command string // arguments joined by blanks
	State   byte   // of /proc/PID/stat; Z is a zombie
}

// Kill sends SIGKILL.
func (p Process) Kill() error { return syscall.Kill(p.PID, syscall.SIGKILL) }

// Processes lists what runs on this machine, zombies left out.
func Processes() []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok && p.State != 'Z' {
			all = append(all, p)
		}
	}
	return all
}

func readProcess(pid int) (Process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	p := Process{PID: pid}
	info, err := os.Stat(dir)
	if err != nil {
		return p, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		p.UID = int(st.Uid)
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return p, false
	}
	// The name in parentheses may hold blanks and parentheses: read behind the last one.
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return p, false
	}
	p.State = fields[0][0]
	p.Parent, _ = strconv.Atoi(fields[1]) // procfs writes a number
	cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p.Command = strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
	p.Exe, _ = os.Readlink(filepath.Join(dir, "exe"))
	p.Cwd, _ = os.Readlink(filepath.Join(dir, "cwd"))
	return p, true
}

// ours lists the processes that were started for this stand.
func (s *Stand) ours() []Process {
	var out []Process
	for _, p := range Processes() {
		below := strings.HasPrefix(p.Cwd, s.Dir+"/") || strings.HasPrefix(p.Exe, s.Dir+"/")
		if p.PID != os.Getpid() && (below || s.user.drop && p.UID == s.user.uid) {
			out = append(out, p)
		}
	}
	return out
}

// Issuesmith lists the running issuesmith processes of a repository's jobs, which
// their environment names (a host-mode workspace has a random name).
func (s *Stand) Issuesmith(repo string) []Process {
	var out []Process
	for _, p := range s.ours() {
		if !strings.HasPrefix(filepath.Base(p.Exe), "issuesmith") {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "environ"))
		if err == nil && strings.Contains("\x00"+string(env), "\x00GITHUB_REPOSITORY="+repo+"\x00") {
			out = append(out, p)
		}
	}
	return out
}

// Below lists a process and all its descendants.
func Below(pid int) []Process {
	all := Processes()
	in := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.Parent] && !in[p.PID] {
				in[p.PID], grown = true, true
			}
		}
	}
	var out []Process
	for _, p := range all {
		if in[p.PID] {
			out = append(out, p)
		}
	}
	return out
}

// Marked lists the stand's processes whose command line holds a text.
func (s *Stand) Marked(text string) []Process {
	var out []Process
	for _, p := range s.ours() {
		if strings.Contains(p.Command, text) {
			out = append(out, p)
		}
	}
	return out
}

// Command makes a command that runs in dir as the stand's user, with nothing of the
// caller's environment but PATH and what env says.
func (s *Stand) Command(dir, home string, env []string, program string, args ...string) *exec.Cmd {
	cmd := s.user.command(program, dir, home, args...)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}
