// Package forge holds the values and the interface of the place where issues and
// pull requests live, and the claim: the right of one run to work on one issue.
package forge

import (
	"context"
	"errors"
	"time"
)

// ErrBusy: another run holds the claim and is alive.
var ErrBusy = errors.New("another run works on this issue")

// ErrNotFound: the issue (or what was asked for) does not exist, or the token may not see it.
var ErrNotFound = errors.New("not found")

// A PermissionError names the permission the token lacks.
type PermissionError struct {
	Doing      string // "opening the pull request"
	Permission string // "pull-requests: write"
	Detail     string
}

func (e *PermissionError) Error() string {
	s := e.Doing + ": the job lacks `" + e.Permission + "`; add it under `permissions:` of the job"
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// An Issue as the forge has it now, comments of everybody included, oldest first.
type Issue struct {
	Number         int
	Title, Body    string
	URL            string
	Author         string
	Open           bool
	IsPull         bool
	Labels         []string
	ContentVersion int // counts edits of the body; -1 when the forge does not tell
	Created        time.Time
	Updated        time.Time
	Comments       []Comment
}

// HasLabel reports whether the issue bears the label.
func (i *Issue) HasLabel(name string) bool {
	for _, l := range i.Labels {
		if l == name {
			return true
		}
	}
	return false
}

// A Comment on an issue, or a review comment (Path set then).
type Comment struct {
	ID               int64
	Author, Body     string
	Created, Updated time.Time
	Path             string // review comments: file
	Line             int    // review comments: line in the new file, 0 when unknown
}

// An Approval is what the labelling fixed: the text that may be worked on. The
// zero value means "as read at the claim".
type Approval struct {
	By             string    // who set the label; "" when unknown
	At             time.Time // zero when unknown
	FromEvent      bool      // Title and Body come from the event
	Title, Body    string
	ContentVersion int
	Author         string
}

// A Task is the issue as approved.
type Task struct {
	Number      int
	Title, Body string
	URL         string
	Author      string
	Comments    []Comment      // trusted, last edited before the approval
	LeftOut     map[string]int // comments by others (or edited later): author → count
	EditedLater bool           // title or body were edited after the approval; the edit is not used
}

// Approve applies the rules of trust: comments by the labeller, the issue's author, the
// owner or a trusted user, last edited before the approval. now is used when the approval has no time.
func Approve(i *Issue, a Approval, owner string, trusted []string, now time.Time) *Task {
	panic("not built")
}

// A Repository as the forge sees it.
type Repository struct {
	Owner, Name   string
	URL           string // page
	CloneURL      string
	DefaultBranch string
	Empty         bool
	OwnerIsOrg    bool
	ObjectFormat  string // "sha1", "sha256"
}

// A Label to make when it is missing.
type Label struct{ Name, Color, Description string }

// A Pull is a pull request.
type Pull struct {
	Number     int
	URL        string
	Title      string
	Body       string
	Open       bool
	Merged     bool
	Head, Base string // branch names
	HeadCommit string
	Author     string
	Created    time.Time
}

// A NewPull is what to open.
type NewPull struct{ Title, Body, Head, Base string }

// A Forge is where issues and pull requests live. Reads are retried on 429 and 5xx; writes
// only where repeating is safe. Every error says what was being done; a missing permission is a
// *PermissionError.
type Forge interface {
	// Repository describes the repository.
	Repository(ctx context.Context) (*Repository, error)
	// Issue reads an issue with all its comments. ErrNotFound.
	Issue(ctx context.Context, number int) (*Issue, error)
	// Labelled lists open issues (no pull requests) with the label, oldest first.
	Labelled(ctx context.Context, label string) ([]*Issue, error)
	// EnsureLabels makes those that neither the repository nor its organization has.
	EnsureLabels(ctx context.Context, labels []Label) error
	// AddLabel and RemoveLabel touch one label by its looked-up id; removing an absent one is no error.
	AddLabel(ctx context.Context, number int, name string) error
	RemoveLabel(ctx context.Context, number int, name string) error
	// Comment creates (id 0) or edits a comment and returns its id. An edit of a deleted comment creates a new one.
	Comment(ctx context.Context, number int, id int64, body string) (int64, error)

	// Contains reports whether the branch contains the commit.
	Contains(ctx context.Context, branch, commit string) (bool, error)
	// Pulls lists pull requests whose head is the branch of this repository, newest first, open or not.
	Pulls(ctx context.Context, head string) ([]*Pull, error)
	// Reviews are review comments and review bodies and plain comments on a pull request, oldest first.
	Reviews(ctx context.Context, pull int) ([]Comment, error)
	// OpenPull opens a pull request, or returns the open one that exists already for head and base.
	OpenPull(ctx context.Context, p NewPull) (*Pull, error)
	// EditPull replaces title and body.
	EditPull(ctx context.Context, number int, title, body string) error
	// Dispatch starts a workflow file on a branch.
	Dispatch(ctx context.Context, workflow, branch string) error

	// Claim takes the claim on an issue, or takes over a stale one. ErrBusy (wrapped) when another
	// live run has it. Nothing else is touched.
	Claim(ctx context.Context, c Claim) (*Held, error)
	// Release gives up a held claim; it is no error when it is gone already.
	Release(ctx context.Context, h *Held) error
	// Claims lists the claims there are, for the sweep, with what is known of their runs.
	Claims(ctx context.Context) ([]Standing, error)
	// Drop deletes a stale claim as it was seen.
	Drop(ctx context.Context, s Standing) error
}

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

// Ref is the claim's ref name.
func Ref(issue int) string { panic("not built") }

// Message is the claim commit's message; ParseClaim reads it back and refuses what is not one.
func (c Claim) Message() string { panic("not built") }

// ParseClaim reads a claim from a commit message.
func ParseClaim(message string) (Claim, error) { panic("not built") }

// Stale decides whether a claim may be taken over by the asker: its run is finished or
// cancelled; or it is of the asker's own run with a lower attempt; or, where the state is unknown,
// its own deadline has passed.
func Stale(c Claim, asker Claim, state RunState, now time.Time) (stale bool, why string) {
	panic("not built")
}
