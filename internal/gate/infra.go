package gate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// An InfraError is not the model's fault: no attempt is spent on it.
type InfraError struct {
	What   string // what failed: "setup command `npm ci`"
	Detail string // redacted by the caller
	Remedy string
	Err    error
}

func (e *InfraError) Error() string {
	s := e.What
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Remedy != "" && strings.HasSuffix(s, "\n") {
		s += e.Remedy
	} else if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *InfraError) Unwrap() error { return e.Err }

// minFree is the room, in bytes, below which a file system counts as full.
const minFree = 1 << 20

const freeRoom = "free disk space on the runner and queue the issue again"

// diskFull reports whether the file system of a folder has no room left for files of ordinary users, or no
// inodes. File systems that make inodes as needed report none at all.
func diskFull(dir string) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	return noRoom(s.Bavail, uint64(max(s.Bsize, 0)), s.Files, s.Ffree), nil // #nosec G115 -- not negative
}

func noRoom(blocks, size, inodes, freeInodes uint64) bool {
	return size > 0 && blocks < minFree/size || inodes > 0 && freeInodes == 0
}

// saysFull matches how programs report a full disk (ENOSPC, EDQUOT, SQLite, MySQL, PostgreSQL).
var saysFull = regexp.MustCompile(`(?i)no space left on device|\bENOSPC\b|\bEDQUOT\b|disk quota exceeded|disk (is )?full|errno:? 28\b|not enough space on the disk`)

// surroundings returns an *InfraError when a failed command is explained by something around it. The
// wording of the output alone never decides, since the model's own code can print
// anything: a probe must say the same.
func (g *Gate) surroundings(what string, c Command) error {
	if !saysFull.MatchString(c.Output) {
		return nil
	}
	probe := g.full
	if probe == nil {
		probe = diskFull
	}
	full, err := probe(g.Tree.Dir())
	if err != nil {
		return err
	}
	if !full {
		return nil
	}
	return &InfraError{What: what, Detail: "the disk is full", Remedy: freeRoom, Err: syscall.ENOSPC}
}

// ours turns an error of our own work on the worktree into an *InfraError when the disk is full.
func ours(doing string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &InfraError{What: doing, Detail: err.Error(), Remedy: freeRoom, Err: err}
	}
	return err
}
