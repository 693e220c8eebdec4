// Package sandbox starts every process of the program; nothing else may.
//
// What it gives now is "processes only": a base environment without the caller's
// variables, an own HOME and TMPDIR, another user when the caller is root, no new
// privileges, and the death of every descendant after each command. It does not
// yet close the file system or the network, and its Report says so.
package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Options say where commands run and what they see.
type Options struct {
	Dir  string   // the worktree: the commands' working directory
	Home string   // private HOME and caches, kept for the run; made if missing
	Tmp  string   // private TMPDIR; made if missing
	Env  []string // test-env: KEY=VALUE beside the base environment
	// Live, when set, is asked for a writer before each command, which receives the raw output as it comes.
	Live func() io.WriteCloser
	Path string // the caller's PATH; entries that are relative or unreadable inside are left out

	Mode       Mode     // how much must be reached; "" is Strict
	Network    Network  // what commands may reach; the zero value is nothing
	Limits     Limits   // of one command
	Toolchains []string // more folders to read
	Caches     []string // host caches to read through a private copy
	History    string   // bare repository for the small git; "" for none
}

// A Mode says what happens where the place does not give every layer.
type Mode string

// The modes of the sandbox setting.
const (
	Strict     Mode = "strict"      // refuse where a credential could be read or the network is open
	BestEffort Mode = "best-effort" // run, and say what is open
	Off        Mode = "off"         // no isolation but the commands' environment, user and end
)

// A Network is what commands may reach.
type Network struct {
	Open  bool     // everything, with the host's names; for setup commands
	Allow []string // host:port
}

// A Sandbox runs commands over one worktree, one at a time or side by side.
type Sandbox struct {
	options Options
	owner   Owner
	top     os.FileInfo // the worktree's folder as it was found
	env     []string
	shell   string
}

// New prepares the folders and the environment. It fails when there is no shell or
// when the commands' user could not enter the folders.
func New(o Options) (*Sandbox, error) {
	s := &Sandbox{options: o, owner: DropOwner()}
	if err := subreaper(); err != nil {
		return nil, fmt.Errorf("becoming the parent of orphaned commands: %w", err)
	}
	for _, dir := range []string{o.Home, o.Tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("preparing the commands' private folder: %w", err)
		}
		if s.owner.Drop {
			if err := os.Chown(dir, s.owner.UID, s.owner.GID); err != nil {
				return nil, fmt.Errorf("giving %s to the commands' user: %w", dir, err)
			}
		}
	}
	if dir := o.Dir; !s.owner.enters(dir) {
		return nil, fmt.Errorf("commands run as user %d, who cannot enter %s; choose a state folder that other users may pass through", s.owner.UID, dir)
	}
	var err error
	if s.top, err = os.Stat(o.Dir); err != nil {
		return nil, fmt.Errorf("looking at the worktree: %w", err)
	}
	path := s.owner.searchPath(o.Path)
	for _, name := range []string{"bash", "sh"} {
		if s.shell = lookIn(path, name); s.shell != "" {
			break
		}
	}
	if s.shell == "" {
		return nil, errors.New("no bash and no sh on the PATH that commands may use: install bash")
	}
	s.env = environment(os.Environ(), path, o)
	return s, nil
}

// Report says what isolation was reached.
func (s *Sandbox) Report() Report {
	r := Report{
		Level: "processes only",
		Open:  []string{"commands can read what their user can read on this machine", "commands can reach the network"},
	}
	if !s.owner.Drop {
		r.Open = append(r.Open, "commands run as the same user as issuesmith and the runner, and can reach that user's other processes and files")
	}
	return r
}

// Owner is who files of the worktree must belong to.
func (s *Sandbox) Owner() Owner { return s.owner }

// Close removes HOME and TMPDIR.
func (s *Sandbox) Close() error {
	return errors.Join(RemoveAll(s.options.Home), RemoveAll(s.options.Tmp))
}

// RemoveAll removes a folder; it also removes folders whose write permission is gone, such as a Go module cache.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // #nosec G302 -- a folder about to be removed
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the commands' private folder: %w", err)
	}
	return nil
}

func lookIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if found, err := exec.LookPath(file); err == nil {
			return found
		}
	}
	return ""
}
