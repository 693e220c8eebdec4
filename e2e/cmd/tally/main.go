// Command tally reads the events of `go test -json` and says what a person wants to
// see: one line a package, the output of what failed, and in the end the counts.
//
//	go test -json ./... | tally -to FILE   read events, add the counts to FILE
//	tally -check NAME -to FILE CODE        add a check that is no test, by its exit code
//	tally -sum [-whole] FILE               print "N passed, N failed" over all that FILE holds; whole: skipped ones failed
//
// It fails when a test failed, when a package did, and when there was no test at all.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	to := flag.String("to", "", "file the counts are added to")
	sum := flag.String("sum", "", "file whose counts are summed up")
	check := flag.String("check", "", "name of a check that is no test")
	whole := flag.Bool("whole", false, "with -sum: a skipped test is a failure")
	each := flag.Bool("each", false, "a line for each test that has ended")
	flag.Parse()
	var err error
	switch {
	case *sum != "":
		err = printSum(os.Stdout, *sum, *whole)
	case *check != "":
		err = addCheck(*to, *check, flag.Arg(0))
	default:
		t := newTally(os.Stdout, *each)
		if err = t.read(os.Stdin); err == nil {
			err = t.count.add(*to, "tests")
		}
		if err == nil && (t.count.Failed > 0 || t.count.Passed == 0) {
			err = fmt.Errorf("%v", t.count)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

// A count is how tests ended.
type count struct {
	Name                    string `json:"name"`
	Passed, Failed, Skipped int
}

func (c count) String() string {
	s := fmt.Sprintf("%d passed, %d failed", c.Passed, c.Failed)
	if c.Skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return s
}

// add appends the count to a file, a line each; no file, no record.
func (c count) add(path, name string) error {
	if path == "" {
		return nil
	}
	c.Name = name
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

func addCheck(path, name, code string) error {
	c := count{Passed: 1}
	if code != "0" {
		c = count{Failed: 1}
	}
	return c.add(path, name)
}

func printSum(w io.Writer, path string, whole bool) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var all count
	for line := range strings.Lines(string(data)) {
		var c count
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all.Passed += c.Passed
		all.Failed += c.Failed
		all.Skipped += c.Skipped
	}
	if all.Passed+all.Failed == 0 {
		all.Failed = 1 // nothing ran: that is a failure
	}
	if whole {
		all.Failed, all.Skipped = all.Failed+all.Skipped, 0
	}
	if _, err = fmt.Fprintln(w, all); err == nil && whole && all.Failed > 0 {
		err = errors.New("something failed or was not run")
	}
	return err
}

// An event is a line of `go test -json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

type tally struct {
	out   io.Writer
	each  bool
	count count

	output  map[string]*strings.Builder // by package and test, while it may matter
	running map[string]bool
	failed  map[string]bool // packages with a failed test
}

func newTally(out io.Writer, each bool) *tally {
	return &tally{out: out, each: each, output: map[string]*strings.Builder{}, running: map[string]bool{}, failed: map[string]bool{}}
}

func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				// The go command itself said something.
				if _, err := t.out.Write(line); err != nil {
					return err
				}
			} else {
				t.event(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// outputLimit is what is kept of one test's output.
const outputLimit = 1 << 20

func (t *tally) event(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		t.running[key] = true
	case "output", "build-output":
		if e.Action == "build-output" {
			key = e.ImportPath + " "
		}
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		if b := t.output[key]; b.Len() < outputLimit {
			b.WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
		} else {
			t.endTest(e, key)
		}
		delete(t.output, key)
	}
}

func (t *tally) endTest(e event, key string) {
	delete(t.running, key)
	switch e.Action {
	case "pass":
		t.count.Passed++
	case "skip":
		t.count.Skipped++
		t.printf("SKIP %s %s\n%s", e.Package, e.Test, t.text(key))
		return
	case "fail":
		t.count.Failed++
		t.failed[e.Package] = true
		t.printf("FAIL %s %s (%.1fs)\n%s", e.Package, e.Test, e.Elapsed, t.text(key))
		return
	}
	if t.each {
		t.printf("pass %s (%.1fs)\n", e.Test, e.Elapsed)
	}
}

func (t *tally) endPackage(e event) {
	if e.Action != "fail" {
		t.printf("ok   %s (%.1fs)\n", e.Package, e.Elapsed)
		return
	}
	// What had begun and has no end was cut off: a panic, a time limit.
	for key := range t.running {
		if name, test, _ := strings.Cut(key, " "); name == e.Package {
			t.count.Failed++
			t.failed[e.Package] = true
			t.printf("FAIL %s %s did not end\n%s", name, test, t.text(key))
			delete(t.running, key)
		}
	}
	if !t.failed[e.Package] {
		t.count.Failed++ // it did not build, or its TestMain failed
	}
	t.printf("FAIL %s (%.1fs)\n%s", e.Package, e.Elapsed, t.text(e.Package+" "))
	if e.FailedBuild != "" {
		t.printf("%s", t.text(e.FailedBuild+" "))
	}
}

func (t *tally) text(key string) string {
	if b := t.output[key]; b != nil {
		return b.String()
	}
	return ""
}

func (t *tally) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format, args...) // nobody to tell
}
