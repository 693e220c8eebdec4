// Package sandbox starts every process of the program; nothing else may.
//
// Commands can build and test, and nothing else: they reach the worktree, a private HOME and TMPDIR, the toolchains, and the
// addresses that are listed. The action, which holds the secrets, starts one executor a Sandbox; the executor has none, takes the
// strongest isolation the place gives, and starts each command on a thread that has entered the command's domain.
package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

// A Sandbox runs commands over one worktree, one at a time.
type Sandbox struct {
	options Options
	owner   Owner
	top     os.FileInfo // the worktree's folder as it was found
	order   order
	report  Report
	names   []string // what the listed names resolve to

	mu       sync.Mutex // held while a command runs
	executor *executor  // nil when it has ended
}

// A WeakError says why a strict sandbox refuses the place.
type WeakError struct{ Report Report }

func (e *WeakError) Error() string {
	return "the sandbox is strict and this place is too weak for it: " + strings.Join(e.Report.Weak, "; ") +
		" (sandbox: best-effort runs all the same and says what is open)"
}

// New prepares the folders and starts the executor. It fails when there is no shell, when the commands' user could not enter the
// folders, and, with a *WeakError, when Strict is asked for and the place does not give it.
func New(o Options) (*Sandbox, error) {
	if o.Mode == "" {
		o.Mode = Strict
	}
	s := &Sandbox{options: o, owner: DropOwner()}
	if err := subreaper(); err != nil {
		return nil, fmt.Errorf("becoming the parent of orphaned commands: %w", err)
	}
	if err := s.prepareFolders(); err != nil {
		return nil, err
	}
	if err := s.give(); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

// start starts the executor and judges what it reached.
func (s *Sandbox) start() error {
	e, why, err := startExecutor(s.order)
	if err != nil {
		return fmt.Errorf("starting the sandbox: %w", err)
	}
	s.report = s.describe(e, why)
	if s.options.Mode == Strict && len(s.report.Weak) > 0 {
		_ = e.stop()
		return &WeakError{s.report}
	}
	if !e.order.Namespaces && !e.order.Open {
		s.report.Names = append(s.report.Names, publishNames("/etc/hosts", s.order.Targets, s.owner.Drop && inContainer())...)
	}
	s.executor = e
	return nil
}

func (s *Sandbox) prepareFolders() error {
	o := s.options
	for _, dir := range []string{o.Home, o.Tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("preparing the commands' private folder: %w", err)
		}
		if s.owner.Drop {
			if err := os.Chown(dir, s.owner.UID, s.owner.GID); err != nil {
				return fmt.Errorf("giving %s to the commands' user: %w", dir, err)
			}
		}
	}
	var err error
	if s.top, err = os.Stat(o.Dir); err != nil {
		return fmt.Errorf("looking at the worktree: %w", err)
	}
	return nil
}

// give gathers what commands get.
func (s *Sandbox) give() error {
	o := s.options
	path := s.owner.searchPath(o.Path)
	shell := ""
	for _, name := range []string{"bash", "sh"} {
		if shell = lookIn(path, name); shell != "" {
			break
		}
	}
	if shell == "" {
		return errors.New("no bash and no sh on the PATH that commands may use: install bash")
	}
	found := findReads(path, os.Environ(), o.Toolchains, o.Caches)
	read := found.read
	if err := fillCaches(o.Home, o.Caches, s.owner); err != nil {
		return err
	}
	if git := lookIn(path, "git"); o.History != "" && git != "" {
		folder := filepath.Join(filepath.Dir(o.History), "bin")
		if err := installGit(folder, git, o.History, o.Dir); err != nil {
			return err
		}
		read = append(append(read, folder, o.History), alternates(o.History)...)
		path = folder + string(filepath.ListSeparator) + path
	}
	if err := errors.Join(gitConfig(o.Home, s.owner), phpConfig(o.Home, s.owner)); err != nil {
		return err
	}
	targets, names := resolve(o.Network.Allow)
	s.names = names
	s.order = order{
		Env: append([]string{"SHELL=" + shell}, environment(os.Environ(), path, o, found)...), Shell: shell,
		Files:   fileRules{Write: []string{o.Dir, o.Home, o.Tmp, "/dev/shm"}, Read: read, Devices: devices},
		Folders: []string{o.Dir, o.Home, o.Tmp}, Tmp: o.Tmp, Hosts: hostsFile(targets),
		Off: o.Mode == Off, Drop: s.owner.Drop, UID: s.owner.UID, GID: s.owner.GID,
		Targets: targets, Open: o.Network.Open, Limits: o.Limits.withDefaults(),
	}
	if st, ok := s.top.Sys().(*syscall.Stat_t); ok && s.owner.Drop && int(st.Uid) != s.owner.UID {
		s.order.Lender = &lender{UID: int(st.Uid), GID: int(st.Gid)}
	}
	return nil
}

// Report says what isolation was reached.
func (s *Sandbox) Report() Report { return s.report }

// Owner is who files of the worktree must belong to.
func (s *Sandbox) Owner() Owner { return s.owner }

// Close ends the executor and everything it started. HOME and TMPDIR stay: another sandbox may go on with them.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.executor == nil {
		return nil
	}
	err := s.executor.stop()
	s.executor = nil
	return err
}

// RemoveAll removes a folder that commands may have filled: with trees of any depth, and folders whose permissions are gone,
// such as those of a Go module cache.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if err := errors.Join(emptyFolder(dir), os.Remove(dir)); err != nil {
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
