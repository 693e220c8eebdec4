package stand

import (
	"errors"
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
	var err error
	if p.UID, err = uidOf(dir); err != nil {
		return p, false
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
		// Folder and file of a process that closed its memory are hidden from its own user too; its arguments are not.
		below := strings.HasPrefix(p.Cwd, s.Dir+"/") || strings.HasPrefix(p.Exe, s.Dir+"/") || strings.HasPrefix(p.Command, s.Dir+"/")
		if p.PID != os.Getpid() && (below || s.user.drop && p.UID == s.user.uid) {
			out = append(out, p)
		}
	}
	return out
}

// Issuesmith lists the running issuesmith processes of a repository's jobs. They close their memory,
// so only root could read their environment; what tells them apart for everybody is the lock they
// hold in their job's temporary folder, beside which lies the checkout.
func (s *Stand) Issuesmith(repo string) []Process {
	holders := lockHolders()
	jobs := map[int]bool{}
	locks, _ := filepath.Glob(filepath.Join(s.Dir, "runner-*", "work", "*", "tmp", "issuesmith", "*", "lock")) // a good pattern
	for _, lock := range locks {
		var st syscall.Stat_t
		if err := syscall.Stat(lock, &st); err != nil {
			continue
		}
		job := filepath.Join(lock, "..", "..", "..", "..")
		configs, _ := filepath.Glob(filepath.Join(job, "*", ".git", "config")) // a good pattern
		for _, config := range configs {
			text, err := os.ReadFile(config)
			if err == nil && strings.Contains(string(text), "/"+repo+"\n") {
				jobs[holders[st.Ino]] = true
			}
		}
	}
	var out []Process
	for _, p := range s.ours() {
		if jobs[p.PID] {
			out = append(out, p)
		}
	}
	return out
}

// lockHolders reads which process holds the lock on which file (inode), from /proc/locks.
func lockHolders() map[uint64]int {
	holders := map[uint64]int{}
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" {
			continue
		}
		pid, err := strconv.Atoi(fields[4])
		inode, parseErr := strconv.ParseUint(fields[5][strings.LastIndexByte(fields[5], ':')+1:], 10, 64)
		if err == nil && parseErr == nil {
			holders[inode] = pid
		}
	}
	return holders
}

// uidOf reads the real user of a process; the owner of its folder in /proc is root once it has closed its memory.
func uidOf(dir string) (int, error) {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			return strconv.Atoi(strings.Fields(rest)[0])
		}
	}
	return 0, errors.New("no Uid in " + dir + "/status")
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
