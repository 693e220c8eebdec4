package sandbox

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A target is an address that commands may connect to, as the action resolved it.
type target struct {
	Name    string         // host as listed
	Address netip.AddrPort // IPv4 addresses are unmapped
}

// A broker answers the connects of commands (seccomp_unotify(2)): it copies the address once, decides, connects a socket
// of its own and swaps it in, so that nothing can be changed between check and use.
//
// What the swap costs the caller: options and a local address given before the connect are lost (but for Nagle's delay, which is
// off), a registration with epoll from before it too; the connect of a non-blocking socket is over when it returns, and a connected
// socket that connects again gets another connection instead of EISCONN. The other end of a unix socket sees the executor's process
// ID, and the same user. An open network costs nothing of that where the caller's socket can be borrowed.
type broker struct {
	targets  []target
	open     bool     // setup with an open network: every internet address
	folders  []string // unix sockets below these, and nowhere else
	isolated bool     // own network namespace: loopback belongs to the sandbox alone
	// dedicated says that commands run as a user of their own, whom file permissions keep from the sockets of others.
	dedicated bool
	// dial asks the action, whose network is the real one, for a connected socket to targets[i].
	dial func(i int) (fd int, err error)
	// members lists the processes of the running command.
	members func() []int
}

// A route is what the broker does with an address.
type route int

const (
	routeNone   route = iota // refused
	routeTarget              // the action connects
	routeInside              // loopback
	routePath                // a unix socket, if it lies below the folders
	routeOpen                // not decided here: every internet address
)

// route decides about an address; i is the target's index.
func (b *broker) route(a address) (r route, i int) {
	switch {
	case a.family == unix.AF_UNIX:
		return routePath, -1
	case b.open:
		return routeOpen, -1
	case a.family == unix.AF_UNSPEC:
		// It dissolves a connection, and no caller of a stream socket needs that. The caller's own socket is what it would act
		// on, which could by then be one that leads elsewhere.
		return routeNone, -1
	}
	if i = slices.IndexFunc(b.targets, func(t target) bool { return t.Address == a.inet }); i >= 0 {
		return routeTarget, i
	}
	if a.inet.Addr().IsLoopback() {
		return routeInside, -1
	}
	return routeNone, -1
}

// Bounds of a session.
const (
	connectsAtOnce = 64 // each may hold a thread, and threads count against process-limit
	refusedKept    = 8
)

// A session is the broker's work for one command.
type session struct {
	*broker
	listener *listener
	ctx      context.Context // ends with the session
	work     sync.WaitGroup

	mu      sync.Mutex
	refused []string
}

// serve answers the connects reported to listener until it is closed or its last process has ended, and closes it. The returned
// function stops it, waits, and lists what was refused (at most 8, each once), as "192.0.2.1:443" or a path.
func (b *broker) serve(fd int) (stop func() (refused []string)) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{broker: b, listener: newListener(fd), ctx: ctx}
	s.work.Go(func() {
		defer cancel()
		defer s.listener.close()
		s.loop()
	})
	return func() []string {
		cancel()
		s.listener.close()
		s.work.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(s.refused)
	}
}

func (s *session) loop() {
	slots := make(chan struct{}, connectsAtOnce)
	for {
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		n, err := s.listener.receive()
		if err != nil {
			return
		}
		s.work.Go(func() {
			defer func() { <-slots }()
			s.listener.answer(n.id, s.handle(n))
		})
	}
}

// handle returns nil when the caller has its connected socket, or the error its connect gives.
func (s *session) handle(n *notification) error {
	ctx, cancel := context.WithTimeout(s.ctx, dialLimit)
	defer cancel()
	c, err := s.read(n)
	if err != nil {
		return err
	}
	switch r, i := s.route(c.to); r {
	case routeTarget:
		return s.connectTarget(ctx, c, i)
	case routeInside:
		return s.connectInside(ctx, c)
	case routePath:
		return s.connectPath(ctx, c)
	case routeOpen:
		return s.connectOpen(ctx, c)
	case routeNone:
	}
	return s.refuse(c.to)
}

// refuse notes the address for the report.
func (s *session) refuse(a address) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := a.String(); name != "" && len(s.refused) < refusedKept && !slices.Contains(s.refused, name) {
		s.refused = append(s.refused, name)
	}
	return unix.EACCES
}
