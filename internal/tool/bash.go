package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"issuesmith/internal/sandbox"
)

//go:embed bash.md
var bashText string

const bashSchema = `{"type":"object","properties":{"command":{"type":"string","description":"script for bash -c"},"timeout_s":{"type":"integer","minimum":1,"description":"seconds, if fewer than usual"}},"required":["command"],"additionalProperties":false}`

const (
	shownEnd   = 5000      // bytes of each end of an output that the model sees
	maxCommand = 100 << 10 // below the kernel's limit of 128 KiB for one argument
)

type bashArguments struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_s"`
}

func (a bashArguments) problem() string {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return `"command" is missing or empty.`
	case a.Timeout < 0:
		return `"timeout_s" is negative.`
	}
	return ""
}

func (s *Set) bash(ctx context.Context, a bashArguments) (Result, error) {
	if len(a.Command) > maxCommand {
		return failed("the command is %d bytes long, the most is %d. Make files with write_file.", len(a.Command), maxCommand), nil
	}
	if strings.IndexByte(a.Command, 0) >= 0 {
		return failed("the command has a NUL byte in it, which no shell takes."), nil
	}
	timeout := s.bench.Timeout
	if wanted := time.Duration(min(a.Timeout, 1<<20)) * time.Second; wanted > 0 && (timeout == 0 || wanted < timeout) {
		timeout = wanted
	}
	if err := os.MkdirAll(s.bench.Outputs, 0o700); err != nil {
		return Result{}, fmt.Errorf("making the folder for outputs: %w", err)
	}
	file := s.freeOutput()
	name := "output/" + strconv.Itoa(s.outputs)
	r, err := s.bench.Sandbox.Run(ctx, sandbox.Command{Script: a.Command, Timeout: timeout, Spill: file})
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return Result{}, ended
		}
		root, refusal := s.root()
		if refusal != "" {
			return failed("the command could not be started: %s", refusal), nil
		}
		return Result{}, errors.Join(fmt.Errorf("running a command: %w", err), root.Close())
	}
	if err := s.cleanKept(file); err != nil {
		return Result{}, err
	}
	result := Result{Failed: r.Exit != 0 || r.TimedOut}
	result.Text, result.Kept = s.outcome(r, name, timeout)
	return result, nil
}

// outcome is a command's result as the model reads it. No duration is in it: the same command with the same effect gives the
// same text, which replay and the search for loops live on.
func (s *Set) outcome(r *sandbox.Result, name string, timeout time.Duration) (text, kept string) {
	var b strings.Builder
	switch {
	case r.TimedOut:
		fmt.Fprintf(&b, "timed out after %s and was killed\n", timeout)
	case r.Signal != "":
		fmt.Fprintf(&b, "exit %d (killed by signal %s)\n", r.Exit, r.Signal)
	default:
		fmt.Fprintf(&b, "exit %d\n", r.Exit)
	}
	for _, note := range r.Notes {
		b.WriteString(note + "\n")
	}
	head, tail := r.Head, r.Tail
	if int64(len(head)+len(tail)) == r.Size { // nothing is missing between them: one text, so that no value hides at the seam
		head, tail = append(head[:len(head):len(head)], tail...), nil
	}
	if len(head) == 0 {
		return b.String() + "(no output)", ""
	}
	holds := "the whole"
	if r.Size > maxKept {
		holds = fmt.Sprintf("the first %d MiB", maxKept>>20)
	}
	where := fmt.Sprintf(" of %d; read_file %s has %s", r.Size, name, holds)
	first := s.Clean(string(head))
	if tail == nil {
		shown := cutMiddle(first, shownEnd, shownEnd, where)
		b.WriteString(shown)
		if len(shown) == len(first) {
			name = ""
		}
		return b.String(), name
	}
	// What the sandbox keeps of each end is far more than is shown, so that no value is cut at the inner borders.
	first = headOf(first, shownEnd)
	last := tailOf(s.Clean(string(tail)), shownEnd)
	fmt.Fprintf(&b, "%s\n[… %d bytes cut%s …]\n%s", first, r.Size-int64(len(first)+len(last)), where, last)
	return b.String(), name
}

// maxKept is what the sandbox keeps of an output, in bytes.
const maxKept = 8 << 20

// freeOutput takes the next number whose file does not exist: an earlier attempt has kept its outputs in the same folder.
func (s *Set) freeOutput() string {
	for {
		s.outputs++
		file := s.outputFile(s.outputs)
		if _, err := os.Lstat(file); err != nil {
			return file
		}
	}
}

// outputFile is where output n is kept.
func (s *Set) outputFile(n int) string {
	return filepath.Join(s.bench.Outputs, strconv.Itoa(n)+".txt")
}

// kept finds the file of a kept output by its name ("output/7"). "./output/7" is a file of the repository.
func (s *Set) kept(name string) (file string, ok bool) {
	digits, ok := strings.CutPrefix(name, "output/")
	if !ok {
		return "", false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > s.outputs || strconv.Itoa(n) != digits {
		return "", false
	}
	return s.outputFile(n), true
}

// cleanKept takes known values out of a kept output: it stays on disk after the run and is read page by page, where a value
// that lies across a border would be missed.
func (s *Set) cleanKept(file string) error {
	data, err := readKept(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was written
	}
	if err != nil {
		return fmt.Errorf("reading a kept output: %w", err)
	}
	text := s.Clean(string(data))
	if text == string(data) {
		return nil
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("keeping an output: %w", err)
	}
	return nil
}

// readKept reads a kept output whole.
func readKept(file string) ([]byte, error) {
	f, err := openKept(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxKept))
}

// openKept opens a kept output. A command that runs as our own user could have put a named pipe, which would block, or
// a link in its place.
func openKept(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // #nosec G304 -- a name built from a number
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("a command has put something else in the place of %s", file)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
