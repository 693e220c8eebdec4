package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// dropUser changes to the commands' user, without groups and capabilities. Everything here is of the calling
// thread only, which is why the stage that follows is started by exec: it has no other threads.
func (o *order) dropUser() error {
	if !removed(layerNoCaps) {
		for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
			// A capability that this kernel does not know, or a caller without CAP_SETPCAP: there is nothing to take.
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		}
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if o.Drop && !removed(layerUser) {
		uid, gid := o.UID, o.GID
		if removed(layerNoCaps) {
			_ = unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0)
		}
		if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
			return fmt.Errorf("dropping the groups: %w", e)
		}
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)); e != 0 { // #nosec G115 -- a fixed small number
			return fmt.Errorf("changing the group: %w", e)
		}
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 { // #nosec G115 -- a fixed small number
			return fmt.Errorf("changing the user: %w", e)
		}
	}
	if removed(layerNoCaps) {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// scope puts the executor into its own Landlock domain, which commands inherit: signals and abstract sockets do not leave it. Where
// kill(-1) is to rely on it, a canary process is started before, outside of the domain.
func (o *order) scope() error {
	if o.Off || removed(layerScopes) || landlockABI() < 6 {
		return nil
	}
	if !o.Namespaces || removed(layerPIDNS) {
		if err := startCanary(o.Shell); err != nil {
			return err
		}
	}
	ruleset, err := newScopes(landlockABI())
	if err != nil {
		return fmt.Errorf("building the executor's Landlock domain: %w", err)
	}
	defer func() { _ = unix.Close(ruleset) }()
	if err := restrict(ruleset); err != nil {
		return fmt.Errorf("entering the executor's Landlock domain: %w", err)
	}
	return nil
}

// startCanary starts a process that ends when canaryFD, which the next stage inherits, is closed.
func startCanary(shell string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(shell, "-c", "read -r end") // #nosec G204 -- the shell that was found
	cmd.Stdin, cmd.Env = read, []string{}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the canary: %w", err)
	}
	if err := unix.Dup3(int(write.Fd()), canaryFD, 0); err != nil { // #nosec G115 -- a descriptor
		return os.NewSyscallError("dup3", err)
	}
	return os.Setenv("CANARY", fmt.Sprint(cmd.Process.Pid))
}

// provenAlone reports whether kill(-1) from here reaches the sandbox only: in a pid namespace of our own, or when a process of the
// same user outside of the domain cannot be signalled.
func provenAlone() bool {
	if os.Getpid() == 1 {
		return true
	}
	var pid int
	if _, err := fmt.Sscan(os.Getenv("CANARY"), &pid); err != nil || pid <= 1 {
		return false
	}
	alone := errors.Is(unix.Kill(pid, 0), unix.EPERM)
	_ = unix.Close(canaryFD)
	_, _ = unix.Wait4(pid, nil, 0, nil)
	return alone
}

// build makes what every command is put into, and says which layers are in force.
func (s *service) build() ([]Layer, error) {
	o := s.order
	var err error
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err := unix.Access(o.Folders[0], unix.X_OK); err != nil {
		return nil, fmt.Errorf("commands run as user %d, who cannot enter %s (%w): choose a folder that other users may pass through", os.Getuid(), o.Folders[0], err)
	}
	s.alone = provenAlone()
	layers := s.placeLayers()
	if o.Off {
		return layers, nil
	}
	off := func(name string, err error) {
		layers = append(layers, Layer{Name: name, State: "off", Why: err.Error()})
	}
	on := func(name, why string) { layers = append(layers, Layer{Name: name, State: "on", Why: why}) }
	abi := landlockABI()
	switch {
	case abi < 1:
		off(layerFiles, errors.New("this kernel has no Landlock, or it is not enabled: Linux 5.13 with lsm=landlock,…"))
	default:
		if s.ruleset, err = newRuleset(abi, o.Files, o.Open); err != nil {
			off(layerFiles, err)
			s.ruleset = -1
		} else {
			on(layerFiles, fmt.Sprintf("Landlock version %d", abi))
		}
	}
	switch {
	case o.Open:
		off(layerTCP, errors.New("the network is open for these commands"))
	case s.ruleset >= 0 && abi >= 4:
		on(layerTCP, "no connection past the broker")
	default:
		off(layerTCP, fmt.Errorf("it needs Landlock version 4, this kernel has %d", abi))
	}
	if s.ruleset >= 0 && abi >= 6 {
		on(layerScopes, "signals and abstract sockets stay inside")
	} else {
		off(layerScopes, fmt.Errorf("it needs Landlock version 6, this kernel has %d", abi))
	}
	s.program, err = filter(nativeArch(), filterOptions{Broker: !removed(layerBroker), Datagrams: o.Open})
	if removed(layerFilter) {
		s.program = nil
	}
	if err != nil {
		return nil, fmt.Errorf("building the system call filter: %w", err)
	}
	if err := s.prove(); err != nil {
		s.program = nil
		off(layerFilter, err)
		off(layerBroker, err)
		return layers, nil
	}
	on(layerFilter, "")
	on(layerBroker, "")
	return layers, nil
}

// brokered reports whether connects go to the broker.
func (s *service) brokered() bool { return !removed(layerBroker) }

func (s *service) privateShm() bool { return s.order.Namespaces && !removed(layerMountNS) }

// prove enters the commands' domain on a thread of its own and tries what it must refuse: a unix datagram socket and a look
// into the root folder.
func (s *service) prove() error {
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		failed <- func() error {
			listener, err := s.enter()
			if err != nil {
				return err
			}
			if listener >= 0 {
				_ = unix.Close(listener)
			}
			if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil && s.program != nil {
				_ = unix.Close(fd)
				return errors.New("the filter lets unix datagram sockets through")
			}
			if fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil && s.ruleset >= 0 && !removed(layerFiles) {
				_ = unix.Close(fd)
				return errors.New("the Landlock domain lets the root folder be read")
			}
			return nil
		}()
	}()
	return <-failed
}

// placeLayers are the layers of this process itself, as the kernel reports them.
func (s *service) placeLayers() []Layer {
	o := s.order
	var layers []Layer
	add := func(name string, on bool, why string) {
		state := "off"
		if on {
			state = "on"
		}
		layers = append(layers, Layer{Name: name, State: state, Why: why})
	}
	if o.Drop && !removed(layerUser) {
		add(layerUser, os.Getuid() == o.UID, fmt.Sprintf("uid and gid %d, no groups", o.UID))
	} else {
		add(layerUser, false, "only root can give commands a user of their own")
	}
	status, _ := os.ReadFile("/proc/self/status")
	add(layerNoCaps, strings.Contains(string(status), "CapEff:\t0000000000000000") && strings.Contains(string(status), "CapPrm:\t0000000000000000"), "")
	add(layerNoPrivs, strings.Contains(string(status), "NoNewPrivs:\t1"), "")
	add(layerSweep, true, "every process of a command ends with it")
	return layers
}
