// Package escape tries to get out of the sandbox and judges, from outside, whether that worked.
//
// An attempt is a run of the static program in attempt/ as a command of `issuesmith sandbox`, in a scene full of
// secrets. The same attempt without the sandbox, in the same place, is its control: it has to work somewhere, or the
// refusal says nothing. What an attempt says of itself is believed when it says it got out; when it
// does not, the world outside has the last word: did a listener hear from it, does the output hold a planted secret, did a file
// outside change, is the sibling process still what it was.
package escape

import "strings"

// An Outcome of an attempt in a place.
type Outcome struct {
	Word string
	Why  string
}

// Words of an outcome. Every other word is a failure.
const (
	Refused  = "refused"
	ByPlace  = "refused by the place" // the control failed as well
	Reported = "open, reported"       // the sandbox's report says so
	Untested = "untested"             // it works in no place here
	NotRun   = "not run: needs root"
	Escaped  = "ESCAPED"
	Failed   = "FAILED" // the attempt itself did not run
)

// Bad reports whether the outcome is a failure of the suite.
func (o Outcome) Bad() bool { return o.Word == Escaped || o.Word == Failed }

// An Attempt is one line of the table.
type Attempt struct {
	Row  int
	Name string
	// Args are the name the program knows it by and its arguments. $NAME stands for something of the scene; an attempt that
	// needs what the place does not have is untested there.
	Args []string
	// Control are the arguments without the sandbox, where they differ. ControlAt is the one place that has the control, of an
	// attempt that would harm the machine elsewhere, or takes long.
	Control   []string
	ControlAt string

	Open    string   // phrase by which the report tells of it, where it is open
	Flags   []string // more flags of issuesmith sandbox
	Gone    []string // what must not exist in the place afterwards
	Beat    bool     // the file "beat" must not grow afterwards
	Limit   string   // it may be killed, if the output then names this limit
	Killed  bool     // it may be killed before it says how it went
	Root    bool     // only root can prepare it
	Own     bool     // needs a user of its own: it harms all processes of the user
	Prepare func(*Scene) error
	// Seconds the command may take; 0 is 20.
	Seconds int
}

// Title is how the attempt is called as a test.
func (a *Attempt) Title() string { return strings.ReplaceAll(a.Name, "/", "-") }

// fromControl are the arguments of the control.
func (a *Attempt) fromControl() []string {
	if a.Control != nil {
		return a.Control
	}
	return a.Args
}
