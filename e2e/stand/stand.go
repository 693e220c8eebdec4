// Package stand starts a real Gitea and real runners for the end-to-end tests and
// gives the tests words for what people and workflows do there: push files, put a
// label on an issue, wait for a run, read its log, cancel it in the page.
//
// Everything between the runners (so the jobs) and Gitea passes through one proxy
// in the test process (Proxy): there a test can wait for the very request it is
// about, do something before or after it, or answer in Gitea's place.
package stand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"code.gitea.io/sdk/gitea"

	"issuesmith/e2e/parts"
)

// A Stand is one Gitea with its runners, shared by all tests.
type Stand struct {
	URL   string // the instance as its users and jobs see it: the proxy
	Root  string // what the instance says its address is: URL, but for containers' sake
	Dir   string // everything of this stand lies below
	Keep  string // folder jobs may leave files in for the tests: $E2E_KEEP of a job
	Proxy *Proxy
	Admin *Person

	user    user
	gitea   *process
	runners []*process
	binary  string
	config  string
	docker  *Docker
}

// Options of a stand.
type Options struct {
	Runners  int      // how many runner processes, each with its own home and tool cache
	Capacity int      // jobs a runner takes at once
	Env      []string // KEY=VALUE that runners, so jobs, see beside the base environment
	Docker   *Docker  // jobs run in its containers, by runners that DockerRunner starts
}

// Start builds what is missing and starts Gitea and the runners. The caller calls
// Stop whatever happens.
func Start(ctx context.Context, o Options) (*Stand, error) {
	built := map[string]parts.Built{}
	for _, p := range []parts.Part{parts.Gitea, parts.Runner} {
		b, err := parts.Build(ctx, p)
		if err != nil {
			return nil, err
		}
		built[p.Name] = b
	}
	dir, err := os.MkdirTemp("", "issuesmith-e2e-")
	if err != nil {
		return nil, err
	}
	place := 0
	if o.Docker != nil {
		place = 1 // such a stand may stand beside a usual one
	}
	s := &Stand{Dir: dir, Keep: filepath.Join(dir, "keep"), user: pickUser(place), docker: o.Docker}
	if err := s.start(ctx, o, built); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stand) start(ctx context.Context, o Options, built map[string]parts.Built) error {
	// The cache may lie where the borrowed user cannot read: it gets a copy.
	share := filepath.Join(s.Dir, "parts")
	for _, b := range built {
		if err := parts.CopyTree(filepath.Dir(b.Bin), share); err != nil {
			return fmt.Errorf("copying parts: %w", err)
		}
	}
	if err := os.MkdirAll(s.Keep, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(s.Dir, 0o755); err != nil {
		return err
	}
	if err := s.user.give(s.Keep); err != nil {
		return err
	}
	if err := s.startGitea(ctx, share); err != nil {
		return err
	}
	for i := range o.Runners {
		if err := s.startRunner(ctx, filepath.Join(share, "runner"), i+1, o); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends everything the stand started, jobs included, and removes its folder
// unless ISSUESMITH_E2E_LEAVE is set.
func (s *Stand) Stop() error {
	for _, r := range s.runners {
		r.stop()
	}
	if s.gitea != nil {
		s.gitea.stop()
	}
	if s.Proxy != nil {
		s.Proxy.Close()
	}
	// Jobs outlive their runner: whatever still works below the stand's folder, or as
	// the user borrowed for it, was started for it.
	for range 20 {
		left := s.ours()
		for _, p := range left {
			_ = p.Kill() // it may be gone meanwhile
		}
		if len(left) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if os.Getenv("ISSUESMITH_E2E_LEAVE") != "" {
		fmt.Fprintln(os.Stderr, "end-to-end stand left in", s.Dir)
		return nil
	}
	return os.RemoveAll(s.Dir)
}

// Logs returns the last lines of Gitea's and the runners' own logs, for a failure
// nothing else explains.
func (s *Stand) Logs() string {
	var out string
	for _, p := range append([]*process{s.gitea}, s.runners...) {
		if p != nil {
			out += "--- " + p.name + "\n" + p.tail(4000) + "\n"
		}
	}
	return out
}

// UID of the processes of this stand.
func (s *Stand) UID() int { return s.user.uid }

// Give makes the stand's user the owner of a folder, so that jobs can use it.
func (s *Stand) Give(dir string) error { return s.user.give(dir) }

// A Person is somebody with an account, or a token, on the instance.
type Person struct {
	*gitea.Client
	Name, Password, Token string
}
