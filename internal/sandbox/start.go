package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startLimit is how long an executor may take to be ready.
const startLimit = 30 * time.Second

// dialLimit is how long a connect to a listed address may take.
const dialLimit = 20 * time.Second

// An executor is the action's side of one executor process.
type executor struct {
	cmd   *exec.Cmd
	wire  *wire
	ready readyMessage
	order *order
	ends  chan ending   // of the running command
	gone  chan struct{} // closed when the process talks no more
}

// startExecutor starts the strongest executor the place allows: with namespaces, else without. why is why there are none.
func startExecutor(o order) (e *executor, why string, err error) {
	if !o.Off {
		o.Namespaces, o.UserNS = true, !o.Drop
		if removed(layerUserNS) && o.UserNS {
			o.Namespaces = false
		}
	}
	if o.Namespaces {
		e, err = launchExecutor(o)
		var refusal *refusedError
		if !errors.As(err, &refusal) {
			return e, "", err
		}
		why = refusal.Error()
	}
	o.Namespaces, o.UserNS = false, false
	if !o.Off {
		o.Env = inSharedTmp(o.Env, o.Tmp)
	}
	e, err = launchExecutor(o)
	return e, why, err
}

func launchExecutor(o order) (*executor, error) {
	sealed, err := o.seal()
	if err != nil {
		return nil, err
	}
	defer func() { _ = sealed.Close() }()
	ours, theirs, err := wirePair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{prepareName}
	if o.UserNS {
		cmd.Args = []string{launcherName}
	} else if flags := o.cloneFlags(); flags != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	}
	// The order brings the commands' environment; the executor needs none. One built with the race detector would wait
	// a second before it ends.
	cmd.Env = append([]string{"GORACE=atexit_sleep_ms=0"}, mutations()...)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs, sealed}
	if err := begin(cmd); err != nil {
		_ = ours.close()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) {
			return nil, &refusedError{fmt.Errorf("creating namespaces: %w", err)}
		}
		return nil, fmt.Errorf("starting the executor: %w", err)
	}
	_ = theirs.Close()
	e := &executor{cmd: cmd, wire: ours, order: &o, ends: make(chan ending, 1), gone: make(chan struct{})}
	if err := e.awaitReady(); err != nil {
		_ = e.stop()
		return nil, err
	}
	go e.listen()
	return e, nil
}

func (e *executor) awaitReady() error {
	_ = e.wire.fd.SetReadDeadline(time.Now().Add(startLimit))
	m, fd, err := e.wire.receive()
	_ = e.wire.fd.SetReadDeadline(time.Time{})
	if fd >= 0 {
		_ = unix.Close(fd)
	}
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("starting the executor: it ended at once")
	case err != nil:
		return fmt.Errorf("starting the executor: %w", err)
	case m.Ready == nil:
		return errors.New("starting the executor: it did not say what it reached")
	case m.Ready.Refused != "":
		return &refusedError{errors.New(m.Ready.Refused)}
	case m.Ready.Error != "":
		return errors.New("starting the executor: " + m.Ready.Error)
	}
	e.ready = *m.Ready
	return nil
}

// listen takes what the executor says until it ends.
func (e *executor) listen() {
	defer close(e.gone)
	for {
		m, fd, err := e.wire.receive()
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		if err != nil {
			return
		}
		switch {
		case m.End != nil:
			select {
			case e.ends <- *m.End:
			default: // nobody asked
			}
		case m.Dial != nil:
			go e.dial(*m.Dial)
		}
	}
}

// dial connects to a listed target for the broker. Only what is listed can be asked for.
func (e *executor) dial(d dialMessage) {
	fd, err := -1, error(unix.EACCES)
	if d.Target >= 0 && d.Target < len(e.order.Targets) {
		fd, err = connect(e.order.Targets[d.Target])
	}
	answer := dialledMessage{ID: d.ID}
	if err != nil {
		answer.Errno = int(errnoOf(err))
	}
	_ = e.wire.send(message{Dialled: &answer}, fd)
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}

// connect returns a connected TCP socket in blocking mode.
func connect(t target) (fd int, err error) {
	family := unix.AF_INET6
	var address unix.Sockaddr = &unix.SockaddrInet6{Port: int(t.Address.Port()), Addr: t.Address.Addr().As16()}
	if t.Address.Addr().Is4() {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: int(t.Address.Port()), Addr: t.Address.Addr().As4()}
	}
	if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	limit := unix.NsecToTimeval(dialLimit.Nanoseconds())
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
	if err == nil {
		err = unix.Connect(fd, address)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{})
	}
	if err == nil {
		return fd, nil
	}
	_ = unix.Close(fd)
	if errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.EAGAIN) {
		err = unix.ETIMEDOUT
	}
	return -1, err
}

// run has the executor run a command and returns how it ended. At the end of ctx or of the time limit everything is killed first.
func (e *executor) run(ctx context.Context, m runMessage, output *os.File, limit time.Duration, stop <-chan struct{}) (end ending, timedOut bool, err error) {
	err = e.wire.send(message{Run: &m}, int(output.Fd())) // #nosec G115 -- a descriptor
	_ = output.Close()
	if err != nil {
		return ending{}, false, fmt.Errorf("telling the executor: %w", err)
	}
	var expired <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case end = <-e.ends:
		return end, false, nil
	case <-e.gone:
		return killed(), false, errGone
	case <-expired:
		timedOut = true
	case <-stop:
	case <-ctx.Done():
	}
	_ = e.wire.send(message{Kill: true}, -1)
	select {
	case end = <-e.ends:
		return end, timedOut, nil
	case <-e.gone:
		return killed(), timedOut, errGone
	case <-time.After(deathLimit):
		return killed(), timedOut, errors.New("its processes did not die")
	}
}

// errGone: the executor has ended in mid-command, killed by it perhaps.
var errGone = errors.New("the executor has ended")

// stop ends the executor and everything it started.
func (e *executor) stop() error {
	err := e.wire.close()
	ended := make(chan error, 1)
	go func() { ended <- await(e.cmd) }()
	var exit error
	select {
	case exit = <-ended:
	case <-time.After(deathLimit):
		_ = e.cmd.Process.Kill()
		exit = <-ended
		err = errors.New("ending the executor: it had to be killed")
	}
	if exit != nil && (!e.order.Namespaces || removed(layerPIDNS)) {
		// It was killed and could not kill what it had started; with a pid namespace the kernel has.
		sweepOrphans()
	}
	return err
}
