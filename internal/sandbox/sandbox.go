// Package sandbox starts every process of the program; nothing else may.
//
// For now it is "processes only": a base environment without the caller's
// variables, an own HOME and TMPDIR, a uid drop when root, and the death of
// every descendant after each command.
package sandbox

import (
	"context"
	"io"
	"time"
)

// Options say where commands run and what they see.
type Options struct {
	Dir  string   // the worktree: the commands' working directory
	Home string   // private HOME and caches, kept for the run; made if missing
	Tmp  string   // private TMPDIR; made if missing
	Env  []string // test-env: KEY=VALUE beside the base environment
	Path string   // the caller's PATH; entries that are relative or unreadable inside are left out
}

// A Sandbox runs commands over one worktree.
type Sandbox struct{}

// A Report says what isolation was reached.
type Report struct {
	Level string   `json:"level"` // "processes only"
	On    []string `json:"on"`    // layers in force
	Open  []string `json:"open"`  // what stays open, for a person
}

// An Owner is who the worktree's files must belong to so that commands can change them.
type Owner struct {
	UID, GID int
	Drop     bool // false: leave files with the current user
}

// A Command is one shell command.
type Command struct {
	Script  string        // run by bash -c where bash exists, else sh -c
	Dir     string        // below Options.Dir; "" is Options.Dir
	Timeout time.Duration // 0: none but the context's
	Keep    int           // bytes kept at each end of the output; default 64 KiB
	Spill   string        // file that receives the output up to 8 MiB; "" for none
	Live    io.Writer     // receives output as it comes (already the raw bytes); may be nil
}

// A Result is how a command ended. Output of stdout and stderr is one stream.
type Result struct {
	Exit     int    // exit status; 128+signal when killed by a signal
	Signal   string // "" or the signal's name
	TimedOut bool
	Duration time.Duration
	Head     []byte // first bytes of the output
	Tail     []byte // last bytes, empty when everything is in Head
	Size     int64  // bytes of output in all
}

// Output is head and tail with a mark between them when something was cut.
func (r *Result) Output() string { panic("not built") }

// New prepares the folders and probes what isolation there is.
func New(o Options) (*Sandbox, error) { panic("not built") }

// DropOwner is the owner commands will run as in this process, before any Sandbox exists.
func DropOwner() Owner { panic("not built") }

// Report says what isolation was reached.
func (s *Sandbox) Report() Report { panic("not built") }

// Owner is who files of the worktree must belong to.
func (s *Sandbox) Owner() Owner { panic("not built") }

// Run starts the command and returns when it and all its descendants are dead. A
// command that fails or times out is a Result, not an error; an error means it could
// not be run at all, or ctx ended (the descendants are dead then as well).
func (s *Sandbox) Run(ctx context.Context, c Command) (*Result, error) { panic("not built") }

// Close removes HOME and TMPDIR.
func (s *Sandbox) Close() error { panic("not built") }
