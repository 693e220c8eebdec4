// Package forge holds the values and the interface of the place where issues and
// pull requests live, and the claim: the right of one run to work on one issue.
package forge

import (
	"context"
	"errors"
	"strings"
	"time"
)

// ErrBusy says that another run holds the claim and is alive.
var ErrBusy = errors.New("another run works on this issue")

// ErrNotFound says that the issue (or what was asked for) does not exist, or the token may not see it.
var ErrNotFound = errors.New("not found")

// ErrToken says that the forge does not take the token (any more).
var ErrToken = errors.New("the forge does not take the token: it is wrong, or it has died with its job (a job's token ends with the job); give a living one as `token`")

// Marker starts the body of every comment of ours; people do not see it. The comment goes on
// as the caller likes and ends with "-->".
const Marker = "<!-- issuesmith:"

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

// Progress reports whether the comment is one of our own progress comments.
func (c *Comment) Progress() bool {
	return c.Own && strings.HasPrefix(strings.TrimLeft(c.Body, " \t\r\n\ufeff"), Marker)
}

// A Comment on an issue, or a review comment (Path set then).
type Comment struct {
	ID               int64
	Author, Body     string
	Own              bool // written by the token's own user, or by the job token of another run
	Created, Updated time.Time
	Path             string // review comments: file
	Line             int    // review comments: line in the new file, 0 when unknown
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
