package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The executor starts commands. It is this program under another name, in two or three stages, each of which becomes
// the next: a launcher where an own user namespace is wanted, the preparation that needs rights, and the service that
// has given them up. It holds no secret.
const (
	launcherName = "issuesmith-launcher"
	prepareName  = "issuesmith-prepare"
	executorName = "issuesmith-executor"
)

// Descriptors every stage inherits beside stderr.
const (
	wireFD   = 3
	orderFD  = 4
	canaryFD = 5 // only between preparation and service
)

// The program becomes an executor before anything else of it runs, so that every binary that links
// this package, tests included, can start commands.
func init() {
	if len(os.Args) == 0 {
		return
	}
	stages := map[string]func(*order) error{launcherName: launch, prepareName: prepare, executorName: serve}
	stage, ok := stages[os.Args[0]]
	if !ok {
		return
	}
	runtime.LockOSThread()
	unix.CloseOnExec(wireFD)
	unix.CloseOnExec(orderFD)
	o, err := readOrder()
	if err == nil {
		err = stage(o)
	}
	if err != nil {
		m := readyMessage{Error: err.Error()}
		var refusal *refusedError
		if errors.As(err, &refusal) {
			m = readyMessage{Refused: err.Error()}
		}
		_ = newWire(wireFD).send(message{Ready: &m}, -1)
		os.Exit(1)
	}
	os.Exit(0)
}

// A refusedError says that the place does not give namespaces.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// launch starts the preparation in a user namespace. The action cannot do that itself: its memory is closed, and so
// its children's uid_map is closed to it as well (proc(5), PR_SET_DUMPABLE).
func launch(o *order) error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Stderr = []string{prepareName}, os.Environ(), os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(wireFD, "wire"), os.NewFile(orderFD, "order")}
	uid, gid := os.Getuid(), os.Getgid()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: o.cloneFlags(), Pdeathsig: unix.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		// Without these an exec under another number than 0 would lose what the new namespace gives.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP},
	}
	if err := cmd.Start(); err != nil {
		return &refusedError{fmt.Errorf("creating namespaces: %w", err)}
	}
	// This process stays, as the parent the executor dies with.
	_ = unix.Close(wireFD)
	_ = unix.Close(orderFD)
	return cmd.Wait()
}

// prepare does what needs rights, gives them up, and becomes the service.
func prepare(o *order) error {
	if o.Namespaces {
		if err := o.enterNamespaces(); err != nil {
			return &refusedError{err}
		}
	}
	unix.Umask(0o022)
	// When memory runs out the kernel is to take commands before the runner.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	// The kernel counts the processes of a dedicated user, or of a user namespace, by themselves.
	if !removed(layerLimits) {
		if err := limitProcess(o.Limits, o.Drop || o.UserNS && o.Namespaces); err != nil {
			return err
		}
	}
	if err := o.dropUser(); err != nil {
		return err
	}
	if !removed(layerNoPrivs) {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("forbidding new privileges: %w", err)
		}
	}
	if err := o.scope(); err != nil {
		return err
	}
	return become(executorName)
}

// become replaces this process by the next stage.
func become(name string) error {
	for _, fd := range []uintptr{wireFD, orderFD} {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	err := unix.Exec("/proc/self/exe", []string{name}, os.Environ())
	if !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("becoming the executor: %w", err)
	}
	// The binary is closed to the commands' user: go on with a copy in memory.
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("becoming the executor: the program's file %w; let other users execute it", err)
	}
	fd, err := unix.MemfdCreate("issuesmith", 0)
	if err == nil {
		_, err = io.Copy(os.NewFile(uintptr(fd), "copy"), program) // #nosec G115 -- a descriptor
	}
	if err == nil {
		err = unix.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{name}, os.Environ())
	}
	return fmt.Errorf("becoming the executor: %w", err)
}

// A service is the executor in its last stage.
type service struct {
	order   *order
	wire    *wire
	ruleset int // of commands; -1 for none
	program []unix.SockFilter
	null    *os.File
	disk    *diskMeter // of all commands: what one hides adds up
	alone   bool       // kill(-1) reaches the sandbox and nothing else

	running atomic.Bool

	dialMu sync.Mutex
	dials  map[uint64]chan dialled // by ID: connects that wait for the action
	dialID uint64
}

type dialled struct {
	fd    int
	errno syscall.Errno
}

func serve(o *order) error {
	if !removed(layerDumpable) {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return fmt.Errorf("closing the memory: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the subreaper: %w", err)
	}
	if o.UserNS && o.Namespaces {
		// The setting did not survive the change of rights.
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	}
	if !removed(layerDescriptor) {
		// Descriptors that the action's own caller left open would reach commands as well.
		if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
			return fmt.Errorf("closing inherited descriptors: %w", err)
		}
	}
	// A handler, unlike SIG_IGN, is not inherited by commands; the first process of a pid namespace is safe from signals it
	// has no handler for, and one of ours would end it.
	signal.Notify(make(chan os.Signal, 1))
	s := &service{order: o, wire: newWire(wireFD), ruleset: -1, disk: newDiskMeter(o.Folders), dials: map[uint64]chan dialled{}}
	layers, err := s.build()
	if err != nil {
		return err
	}
	if err := s.wire.send(message{Ready: &readyMessage{Layers: layers, ABI: landlockABI()}}, -1); err != nil {
		return err
	}
	for {
		m, fd, err := s.wire.receive()
		switch {
		case err != nil:
			// The action is gone, or speaks nonsense: nothing may outlive it.
			s.killAll()
			return nil
		case m.Run != nil && fd >= 0 && s.running.CompareAndSwap(false, true):
			go s.run(*m.Run, fd)
			fd = -1
		case m.Kill:
			go s.killAll()
		case m.Dialled != nil:
			if s.answer(*m.Dialled, fd) {
				fd = -1
			}
		}
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// answer hands what the action dialled to the connect that waits for it, if it still does.
func (s *service) answer(m dialledMessage, fd int) bool {
	s.dialMu.Lock()
	waiting, ok := s.dials[m.ID]
	delete(s.dials, m.ID)
	s.dialMu.Unlock()
	if ok {
		waiting <- dialled{fd, syscall.Errno(m.Errno)} // #nosec G115 -- an errno
	}
	return ok
}

// run runs one command to the death of its last process and reports its end.
func (s *service) run(m runMessage, output int) {
	end := s.command(m, output)
	s.running.Store(false)
	_ = s.wire.send(message{End: &end}, -1)
}

func (s *service) command(m runMessage, output int) ending {
	var kept *sharedFiles
	if !s.privateShm() {
		kept = noteShared("/dev/shm", s.order.Drop)
	}
	pid, listener, err := s.start(m, output)
	_ = unix.Close(output)
	if err != nil {
		return ending{Error: err.Error()}
	}
	stopBroker := func() []string { return nil }
	if listener >= 0 {
		stopBroker = s.broker().serve(listener)
	}
	stopWatch := func() string { return "" }
	if !removed(layerWatch) {
		w := &watch{limits: s.order.Limits, members: s.members, disk: s.disk, kill: s.killAll, sharedMemory: "/dev/shm", private: s.privateShm()}
		stopWatch = w.start()
	}
	end := s.wait(pid)
	end.Exceeded = stopWatch()
	end.Refused = stopBroker()
	if strings.HasPrefix(end.Exceeded, "disk-limit") {
		// So that the next command has room; what is in the worktree and in HOME is for it to judge.
		_ = emptyFolder(s.order.Tmp)
	}
	if kept != nil {
		kept.remove()
	}
	return end
}

// start starts the command on a thread of its own, which enters the command's domain first and ends afterwards: the
// domain and the filter cannot be left again.
func (s *service) start(m runMessage, output int) (pid, listener int, err error) {
	type started struct {
		pid, listener int
		err           error
	}
	done := make(chan started, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		r := started{listener: -1}
		if r.listener, r.err = s.enter(); r.err == nil {
			null, out := s.null.Fd(), uintptr(output) // #nosec G115 -- a descriptor
			// #nosec G204 -- running the given command is its purpose
			r.pid, r.err = syscall.ForkExec(s.order.Shell, []string{filepath.Base(s.order.Shell), "-c", string(m.Script)}, &syscall.ProcAttr{
				Dir: m.Dir, Env: s.order.Env, Files: []uintptr{null, out, out}, Sys: &syscall.SysProcAttr{Setsid: true},
			})
		}
		if r.err != nil && r.listener >= 0 {
			_ = unix.Close(r.listener)
			r.listener = -1
		}
		done <- r
	}()
	r := <-done
	return r.pid, r.listener, r.err
}

// enter puts the calling thread where commands live.
func (s *service) enter() (listener int, err error) {
	if s.ruleset >= 0 {
		if err := restrict(s.ruleset); err != nil {
			return -1, fmt.Errorf("entering the Landlock domain: %w", err)
		}
	}
	if s.program == nil {
		return -1, nil
	}
	before, err := guard(os.Getpid(), unix.Gettid())
	if err != nil {
		return -1, err
	}
	listener, err = install(slices.Concat(before, s.program), s.brokered())
	if err != nil {
		return -1, fmt.Errorf("installing the system call filter: %w", err)
	}
	return listener, nil
}

// wait reaps until the command has ended and every process it left is dead.
func (s *service) wait(pid int) ending {
	var end ending
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR || err == nil && got != pid:
			continue
		case err != nil:
			// killAll has reaped it.
			end = killed()
		case status.Signaled():
			end = ending{Exit: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
		default:
			end = ending{Exit: status.ExitStatus()}
		}
		break
	}
	if !removed(layerSweep) {
		s.killAll()
	}
	return end
}

// killed is the ending of a command that was killed.
func killed() ending {
	return ending{Exit: 128 + int(unix.SIGKILL), Signal: unix.SignalName(unix.SIGKILL)}
}

// killAll kills every process of the sandbox but this one and reaps until there is none, or for deathLimit.
func (s *service) killAll() {
	if !s.alone {
		sweep()
		return
	}
	for end := time.Now().Add(deathLimit); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		// Before anything is reaped: a chain of forks makes dead processes as fast as they can be reaped.
		_ = unix.Kill(-1, unix.SIGKILL)
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.ECHILD {
				return
			}
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
	}
}

// members lists the processes of the running command.
func (s *service) members() []int {
	if os.Getpid() != 1 || removed(layerMountNS) {
		return descendants(os.Getpid())
	}
	return listed()
}

// dial asks the action for a socket that is connected to a listed target.
func (s *service) dial(target int) (int, error) {
	answer := make(chan dialled, 1)
	s.dialMu.Lock()
	s.dialID++
	id := s.dialID
	s.dials[id] = answer
	s.dialMu.Unlock()
	if err := s.wire.send(message{Dial: &dialMessage{ID: id, Target: target}}, -1); err != nil {
		s.answer(dialledMessage{ID: id}, -1)
		return -1, err
	}
	var d dialled
	select {
	case d = <-answer:
	case <-time.After(dialLimit + time.Second):
		// Whoever takes it from the list first has answered.
		s.answer(dialledMessage{ID: id, Errno: int(unix.ETIMEDOUT)}, -1)
		d = <-answer
	}
	if d.errno != 0 || d.fd < 0 {
		return -1, d.errno
	}
	return d.fd, nil
}

func (s *service) broker() *broker {
	return &broker{
		targets: s.order.Targets, open: s.order.Open, folders: s.socketFolders(), isolated: s.order.isolated(),
		dedicated: s.order.Drop, dial: s.dial, members: s.members,
	}
}

func (s *service) socketFolders() []string {
	if s.order.Namespaces && !removed(layerMountNS) {
		return append([]string{"/tmp"}, s.order.Folders...)
	}
	return s.order.Folders
}
