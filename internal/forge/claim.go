package forge

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Claim is what its commit's message says. Times are UTC, to the second.
type Claim struct {
	Issue    int
	Run      string // workflow run id, or a unique id on a desk
	Attempt  int    // attempt of the workflow run, from 1
	Host     string
	Started  time.Time
	Deadline time.Time // the run's own: after it the claim is stale
	Takeover int       // how often a killed run was taken over before this one
	Comment  int64     // progress comment of the run that was taken over, 0 when none
	Nonce    string    // makes the commit unique; the forge sets it
}

// Held is a claim in our hands.
type Held struct {
	Claim
	Commit string // what the ref points at
	Over   *Claim // the stale claim that was taken over, nil when there was none
	Why    string // why that one was stale
	// Cancelled: the run taken over was cancelled by a person, so it is not to be restarted.
	Cancelled bool
}

// A RunState is what the forge says about a workflow run.
type RunState string

// The states that matter. Unknown: cannot be asked (404 or 403 are never "finished").
const (
	RunUnknown   RunState = "unknown"
	RunActive    RunState = "active"
	RunFinished  RunState = "finished"
	RunCancelled RunState = "cancelled"
)

// A Standing is a claim found on the forge.
type Standing struct {
	Claim
	Commit string
	State  RunState
	Stale  bool
	Why    string
}

// A BusyError says who has the claim. It is an ErrBusy.
type BusyError struct {
	Claim Claim // zero but for Issue when it is not known
	URL   string
	Why   string // why it is not taken over; "" for a live run
}

func (e *BusyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "issue #%d: %v", e.Claim.Issue, ErrBusy)
	if e.Claim.Run != "" {
		fmt.Fprintf(&b, ": run %s, attempt %d, on %s, until %s at the latest",
			e.Claim.Run, e.Claim.Attempt, e.Claim.Host, e.Claim.Deadline.UTC().Format(readable))
	}
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	if e.URL != "" {
		b.WriteString(" (" + e.URL + ")")
	}
	return b.String()
}

// Is makes every BusyError an ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// RefPrefix is where the claims are.
const RefPrefix = "refs/ai/claims/"

// Ref is the claim's ref name.
func Ref(issue int) string { return RefPrefix + strconv.Itoa(issue) }

// ParseRef tells the issue of a claim's ref name.
func ParseRef(ref string) (issue int, ok bool) {
	digits, ok := strings.CutPrefix(ref, RefPrefix)
	if !ok {
		return 0, false
	}
	n, err := parseNumber(digits, 1)
	return int(n), err == nil
}

const (
	claimVersion = "1"
	claimBytes   = 8 << 10        // a longer message is none of ours
	longestRun   = 24 * time.Hour // a longer claim is none of ours: it could block an issue for ever
	readable     = "2006-01-02 15:04:05 UTC"
	nameBytes    = 200
)

// The lines of the machine's half of the message, in this order, each once.
var claimKeys = [...]string{
	"Issuesmith-Claim", "Issuesmith-Issue", "Issuesmith-Run", "Issuesmith-Attempt", "Issuesmith-Host",
	"Issuesmith-Started", "Issuesmith-Deadline", "Issuesmith-Takeover", "Issuesmith-Comment", "Issuesmith-Nonce",
}

// Message is the claim commit's message; ParseClaim reads it back and refuses what is not one.
// What cannot stand on a line in Run, Host or Nonce is replaced.
func (c Claim) Message() string {
	run, host, nonce := oneWord(c.Run), oneWord(c.Host), oneWord(c.Nonce)
	started, deadline := c.Started.UTC(), c.Deadline.UTC()
	var b strings.Builder
	fmt.Fprintf(&b, "issuesmith works on issue #%d\n\n", c.Issue)
	fmt.Fprintf(&b, "Run %s, attempt %d, on %s, since %s.\n", run, c.Attempt, host, started.Format(readable))
	fmt.Fprintf(&b, "It ends at %s at the latest; this ref is deleted then.\n\n", deadline.Format(readable))
	values := [len(claimKeys)]string{
		claimVersion, strconv.Itoa(c.Issue), run, strconv.Itoa(c.Attempt), host,
		started.Format(time.RFC3339), deadline.Format(time.RFC3339),
		strconv.Itoa(c.Takeover), strconv.FormatInt(c.Comment, 10), nonce,
	}
	for i, key := range claimKeys {
		b.WriteString(key + ": " + values[i] + "\n")
	}
	return b.String()
}

// ParseClaim reads a claim from a commit message. The last paragraph must hold every line of
// Message and nothing else; the words above it are for people.
func ParseClaim(message string) (Claim, error) {
	c, err := parseClaim(message)
	if err != nil {
		return Claim{}, fmt.Errorf("the commit is not a claim of issuesmith: %w", err)
	}
	return c, nil
}

func parseClaim(message string) (Claim, error) {
	if len(message) > claimBytes {
		return Claim{}, fmt.Errorf("its message has %d bytes", len(message))
	}
	message = strings.TrimRight(message, "\n")
	block := message[strings.LastIndex(message, "\n\n")+1:]
	lines := strings.Split(strings.TrimPrefix(block, "\n"), "\n")
	if len(lines) != len(claimKeys) {
		return Claim{}, fmt.Errorf("its last paragraph has %d lines, not %d", len(lines), len(claimKeys))
	}
	var v [len(claimKeys)]string
	for i, key := range claimKeys {
		value, ok := strings.CutPrefix(lines[i], key+": ")
		if !ok || value != oneWord(value) {
			return Claim{}, fmt.Errorf("line %d is not a %s", i+1, key)
		}
		v[i] = value
	}
	if v[0] != claimVersion {
		return Claim{}, fmt.Errorf("version %s is not known here", v[0])
	}
	issue, e1 := parseNumber(v[1], 1)
	attempt, e2 := parseNumber(v[3], 1)
	started, e3 := parseTime(v[5])
	deadline, e4 := parseTime(v[6])
	takeover, e5 := parseNumber(v[7], 0)
	comment, e6 := parseNumber(v[8], 0)
	if err := errors.Join(e1, e2, e3, e4, e5, e6); err != nil {
		return Claim{}, err
	}
	if d := deadline.Sub(started); d < 0 || d > longestRun {
		return Claim{}, fmt.Errorf("its deadline is %v after its start", d)
	}
	return Claim{
		Issue: int(issue), Run: v[2], Attempt: int(attempt), Host: v[4], Started: started, Deadline: deadline,
		Takeover: int(takeover), Comment: comment, Nonce: v[9],
	}, nil
}

// parseNumber takes decimal digits without sign or leading zero, at least least, below 2³¹·2³¹.
func parseNumber(s string, least int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 62)
	if err != nil || n < least || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%.40q is not a number from %d on", s, least)
	}
	return n, nil
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.UTC().Format(time.RFC3339) != s {
		return time.Time{}, fmt.Errorf("%.40q is not a time in UTC to the second", s)
	}
	return t.UTC(), nil
}

// oneWord makes a value that stands on one line without blanks at its ends; "-" for nothing.
func oneWord(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError {
			return '-'
		}
		return r
	}, s)
	for len(s) > nameBytes {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	if s == "" {
		return "-"
	}
	return s
}
