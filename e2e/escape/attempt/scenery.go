package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A stage is what stands outside of the sandbox in one place: listeners, a sibling process with secrets, shared memory, a key. It
// says on stdout where things are ("at NAME VALUE"), what arrived ("arrived NAME"), and answers the
// questions that come on stdin ("= ANSWER"). It ends with its stdin.
type stage struct {
	mu      sync.Mutex
	sibling *exec.Cmd
	sat     chan struct{} // closed when the sibling is dead
	secret  string
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

// scenery: args are a folder for sockets, and the end of the planted secrets' names.
func scenery(args []string) error {
	if len(args) != 2 {
		return errors.New("folder and secret are needed")
	}
	s := &stage{secret: args[1]}
	// Sockets are for everybody: only the sandbox keeps commands from them.
	unix.Umask(0)
	for _, set := range []func() error{s.internet, func() error { return s.local(args[0]) }, s.memory, s.sit} {
		if err := set(); err != nil {
			return err
		}
	}
	s.say("ready")
	for questions := bufio.NewScanner(os.Stdin); questions.Scan(); {
		word, rest, _ := strings.Cut(questions.Text(), " ")
		switch word {
		case "state":
			time.Sleep(5 * time.Millisecond) // what has arrived is said before
			s.say("= %s", s.state())
		case "exists":
			_, err := os.Lstat(rest)
			s.say("= %t", err == nil)
		case "remove":
			s.say("= %v", os.RemoveAll(rest))
		case "restore":
			if err := s.restore(); err != nil {
				return err
			}
			s.say("= done")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sibling.Process.Kill()
}

// machineAddress is an address of this machine that is no loopback; "" when there is none.
func machineAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// internet listens at one address that will be listed, and at others with the same port.
func (s *stage) internet() error {
	listed, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(listed.Addr().String())
	if err != nil {
		return err
	}
	s.accept("listed", listed)
	places := map[string]string{"loopback": "127.0.0.2:" + port, "port": "127.0.0.1:0", "six": "[::1]:" + port}
	if machine := machineAddress(); machine != "" {
		places["machine"] = machine + ":" + port
		s.say("at address %s", machine)
	}
	for name, address := range places {
		l, err := net.Listen("tcp", address)
		if err != nil && name == "six" {
			continue // no IPv6 here
		}
		if err != nil {
			return err
		}
		s.accept(name, l)
	}
	datagrams, err := net.ListenPacket("udp4", places["loopback"])
	if err != nil {
		return err
	}
	s.say("at udp %s", datagrams.LocalAddr())
	s.receive("udp", datagrams)
	return nil
}

func (s *stage) accept(name string, l net.Listener) {
	s.say("at %s %s", name, l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.say("arrived %s", name)
			_ = c.Close()
		}
	}()
}

func (s *stage) receive(name string, c net.PacketConn) {
	go func() {
		buffer := make([]byte, 2048)
		for {
			if _, _, err := c.ReadFrom(buffer); err != nil {
				return
			}
			s.say("arrived %s", name)
		}
	}()
}

// local makes sockets as a container engine, an ssh agent and others have them.
func (s *stage) local(folder string) error {
	for _, name := range []string{"docker.sock", "agent.sock"} {
		l, err := net.Listen("unix", filepath.Join(folder, name))
		if err != nil {
			return err
		}
		s.accept(name, l)
	}
	datagrams, err := net.ListenPacket("unixgram", filepath.Join(folder, "log.sock"))
	if err != nil {
		return err
	}
	s.say("at log.sock %s", datagrams.LocalAddr())
	s.receive("log.sock", datagrams)
	abstract := "escape-" + s.secret
	l, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		return err
	}
	s.accept("abstract", l)
	s.say("at abstract %s", abstract)
	datagrams, err = net.ListenPacket("unixgram", "@"+abstract+"-datagram")
	if err != nil {
		return err
	}
	s.receive("abstract datagram", datagrams)
	return nil
}

// memory plants secrets in what processes share. Where a place refuses one, it is left out.
func (s *stage) memory() error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666)
	if err == nil {
		data, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		copy(data, "canary-segment-"+s.secret)
		// It goes when this process does, and can be attached until then.
		if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
			return err
		}
		s.say("at segment %d", id)
	}
	if key, err := unix.AddKey("user", "planted", []byte("canary-key-"+s.secret), unix.KEY_SPEC_USER_KEYRING); err == nil {
		const everybody = 0x3f3f3f3f
		_ = unix.KeyctlSetperm(key, everybody)
		s.say("at key %d", key)
	}
	return nil
}

// sit starts the sibling, a process with secrets in its environment and its arguments.
func (s *stage) sit() error {
	cmd := exec.Command("/proc/self/exe", "sit", "canary-argument-"+s.secret)
	cmd.Env = []string{"SECRET=canary-sibling-" + s.secret}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	sat := make(chan struct{})
	go func() {
		_ = cmd.Wait() // that it ended is what matters
		_ = in.Close()
		close(sat)
	}()
	s.mu.Lock()
	s.sibling, s.sat = cmd, sat
	s.mu.Unlock()
	s.say("at sibling %d", cmd.Process.Pid)
	return nil
}

// sit waits until its stdin ends.
func sit([]string) error {
	_, _ = os.Stdin.Read(make([]byte, 1)) // nothing is ever written
	return nil
}

// state is all about the sibling that others could change.
func (s *stage) state() string {
	select {
	case <-s.sat:
		return "the sibling is dead"
	default:
	}
	pid := s.sibling.Process.Pid
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err.Error()
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 39 {
		return "the sibling has a short stat"
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return err.Error()
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return err.Error()
	}
	priority, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	if errno != 0 {
		return errno.Error()
	}
	return "sibling " + strconv.Itoa(pid) + " state " + strings.ReplaceAll(fields[0], "R", "S") +
		fmt.Sprintf(" nice %s policy %s files %d processors %d i/o %d", fields[16], fields[38], limit.Cur, set.Count(), priority)
}

// restore starts the sibling again when something has happened to it.
func (s *stage) restore() error {
	_ = s.sibling.Process.Kill() // may be dead
	<-s.sat
	return s.sit()
}
