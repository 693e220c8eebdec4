// Command attempt tries to get out of the sandbox. Inside, as a command of the sandbox, it tries the one thing its first
// argument names and says in its last line how that went; what the world outside saw of it is judged there.
// Outside it plays the scenery: what an attempt could reach, and the eyes of the test in that place.
//
// It is one static file, so that it runs in every image.
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// Words a verdict begins with.
const (
	wordEscaped  = "escaped"  // something was reached that must not be
	wordRefused  = "refused"  // every way was refused
	wordDone     = "done"     // nothing refused it; whether it had an effect is seen from outside
	wordUntested = "untested" // this machine has nothing to try it on
)

type verdict struct{ word, what string }

func escaped(format string, args ...any) verdict {
	return verdict{wordEscaped, fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) verdict {
	return verdict{wordRefused, fmt.Sprintf(format, args...)}
}

func untested(format string, args ...any) verdict {
	return verdict{wordUntested, fmt.Sprintf(format, args...)}
}

// attempts by name. Each gets the arguments behind its name.
func attempts() map[string]func(args []string) verdict {
	all := map[string]func(args []string) verdict{}
	for _, group := range []map[string]func(args []string) verdict{processAttempts, fileAttempts, kernelAttempts, networkAttempts, lifetimeAttempts, limitAttempts} {
		for name, attempt := range group {
			all[name] = attempt
		}
	}
	return all
}

// roles are played outside, or by what an attempt starts.
func roles() map[string]func(args []string) error {
	return map[string]func(args []string) error{
		"scenery": scenery, "sit": sit, "who": who, "daemon-child": daemonChild, "without-user-namespaces": withoutUserNamespaces,
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "attempt: no name given")
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	if role := roles()[name]; role != nil {
		if err := role(args); err != nil {
			fmt.Fprintln(os.Stderr, "attempt:", err)
			os.Exit(1)
		}
		return
	}
	attempt := attempts()[name]
	if attempt == nil {
		fmt.Fprintln(os.Stderr, "attempt: no attempt named", name)
		os.Exit(2)
	}
	// Whoever has another leader (setsid(2)) is an outsider. A command of the sandbox is a leader already.
	_, _ = unix.Setsid()
	v := attempt(args)
	fmt.Printf("\nverdict %s: %s\n", v.word, strings.ReplaceAll(v.what, "\n", " "))
	if v.word == wordRefused {
		os.Exit(1) // as a program that could not do its work
	}
}

// tries gathers how the ways of one attempt went.
type tries struct {
	through []string
	errs    map[string]int // reason → how often
	only    string         // the word when a way went through; wordEscaped
}

// note takes how a way went: no error, and it was through.
func (t *tries) note(what string, err error) {
	if err == nil {
		t.through = append(t.through, what)
		return
	}
	if t.errs == nil {
		t.errs = map[string]int{}
	}
	t.errs[reason(err)]++
}

// reason is an error's number by its name, or its text.
func reason(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) && unix.ErrnoName(errno) != "" {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func (t *tries) verdict() verdict {
	if len(t.through) > 0 {
		word := t.only
		if word == "" {
			word = wordEscaped
		}
		return verdict{word, fmt.Sprintf("%s (%d ways)", t.through[0], len(t.through))}
	}
	var reasons []string
	for reason, count := range t.errs {
		reasons = append(reasons, fmt.Sprintf("%s ×%d", reason, count))
	}
	if len(reasons) == 0 {
		return refused("nothing to be seen")
	}
	return refused("%s", strings.Join(reasons, ", "))
}

var canary = regexp.MustCompile(`canary-[a-z]+-[0-9a-f]+`)

// show prints the planted secrets that stand in data: whoever reads the output knows what was reached.
func show(where string, data []byte) {
	for _, secret := range canary.FindAll(data, -1) {
		fmt.Printf("read %s: %s\n", where, secret)
	}
}

// read notes whether anything of a file can be read.
func (t *tries) read(path string) {
	f, err := os.Open(path)
	if err != nil {
		t.note(path, err)
		return
	}
	defer f.Close() //nolint:errcheck // only read
	data := make([]byte, 1<<16)
	n, err := f.Read(data)
	if n > 0 {
		show(path, data[:n])
		t.note("read "+path, nil)
		return
	}
	if err != nil && err.Error() != "EOF" {
		t.note(path, err)
	}
}
