package escape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// things is the test's side of the scenery: where things are, what has arrived, what is asked there.
type things struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{}

	mu      sync.Mutex
	places  map[string]string
	arrived []string
	answers chan string
}

// start starts the scenery in the place.
func (s *Scene) start(ctx context.Context) error {
	sockets := s.path("sockets")
	if err := os.RemoveAll(sockets); err != nil {
		return err
	}
	if err := os.Mkdir(sockets, 0o755); err != nil {
		return err
	}
	if err := s.give(); err != nil {
		return err
	}
	argv := s.Place.entered(s.path("bin/attempt"), s.path("bin/attempt"), "scenery", sockets, s.secret)
	// It has secrets of its own: it is a process of the same user as the program.
	env := []string{"PATH=/usr/bin:/bin", "SECRET=canary-scenery-" + s.secret}
	cmd := s.Place.command(ctx, s.Dir, env, argv...)
	t := &things{cmd: cmd, gone: make(chan struct{}), places: map[string]string{}, answers: make(chan string, 1)}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if t.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return err
	}
	ready := make(chan struct{})
	go func() {
		t.read(out, ready)
		_ = cmd.Wait() // that it ended is what matters
		close(t.gone)
	}()
	select {
	case <-ready:
	case <-t.gone:
		return fmt.Errorf("the scenery ended: %s", errs.String())
	case <-time.After(20 * time.Second):
		return errors.New("the scenery is not ready after 20 s")
	}
	s.things = t
	// A file in shared memory that belongs to somebody else.
	return s.things.plantShared(ctx, s)
}

// plantShared leaves a file in /dev/shm of the place.
func (t *things) plantShared(ctx context.Context, s *Scene) error {
	script := "rm -f /dev/shm/planted-$0; echo canary-shared-$0 > /dev/shm/planted-$0"
	return s.Place.command(ctx, s.Dir, []string{"PATH=/usr/bin:/bin"}, "sh", "-c", script, s.secret).Run()
}

func (t *things) read(out io.Reader, ready chan struct{}) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		t.mu.Lock()
		switch word {
		case "at":
			name, value, _ := strings.Cut(rest, " ")
			t.places[name] = value
		case "arrived":
			t.arrived = append(t.arrived, rest)
		case "ready":
			close(ready)
		case "=":
			t.answers <- rest
		}
		t.mu.Unlock()
	}
}

// at is where something is; "" when the place does not have it.
func (t *things) at(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.places[name]
}

// arrivals are what has arrived since the last call.
func (t *things) arrivals() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.arrived
	t.arrived = nil
	return all
}

// ask asks the scenery. It is an error when it is dead.
func (t *things) ask(question string) (string, error) {
	if _, err := fmt.Fprintln(t.in, question); err != nil {
		return "", errors.New("the scenery was killed")
	}
	select {
	case answer := <-t.answers:
		return answer, nil
	case <-t.gone:
		return "", errors.New("the scenery was killed")
	case <-time.After(20 * time.Second):
		return "", errors.New("the scenery does not answer: it was stopped")
	}
}

func (t *things) close() {
	_ = t.in.Close() // it may be dead
	select {
	case <-t.gone:
	case <-time.After(2 * time.Second):
		_ = t.cmd.Process.Kill()
		<-t.gone
	}
}
