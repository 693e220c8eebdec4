package forge

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// An Approval is what the labelling fixed: the text that may be worked on. The
// zero value means "as read at the claim".
type Approval struct {
	By             string    // who set the label; "" when unknown
	At             time.Time // zero when unknown
	FromEvent      bool      // Title and Body come from the event
	Title, Body    string
	ContentVersion int // of the event; compared only when the forge still tells one
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
//
// Forges tell times to the second. A comment edited in the very second of the label may have been
// edited after it, so it is left out; without a label what was read at the claim counts, that second included.
func Approve(i *Issue, a Approval, owner string, trusted []string, now time.Time) *Task {
	t := &Task{
		Number: i.Number,
		Title:  CleanTitle(i.Title),
		Body:   CleanText(i.Body),
		URL:    i.URL,
		Author: i.Author,
	}
	if a.FromEvent {
		title, body := CleanTitle(a.Title), CleanText(a.Body)
		edited := i.ContentVersion >= 0 && i.ContentVersion != a.ContentVersion
		t.EditedLater = edited || title != t.Title || body != t.Body
		t.Title, t.Body = title, body
		if a.Author != "" {
			t.Author = a.Author
		}
	}
	inTime := func(c Comment) bool { return c.Updated.Before(a.At) }
	if a.At.IsZero() {
		inTime = func(c Comment) bool { return !c.Updated.After(now) }
	}
	trust := NewTrust(append([]string{a.By, t.Author, owner}, trusted...)...)
	t.Comments, t.LeftOut = trust.Comments(i.Comments, inTime)
	return t
}

// A Trust is the set of people whose words may become part of a task.
type Trust struct{ logins map[string]bool }

// NewTrust takes logins in any case; empty ones name nobody.
func NewTrust(logins ...string) Trust {
	t := Trust{logins: make(map[string]bool, len(logins))}
	for _, l := range logins {
		if l = strings.ToLower(strings.TrimSpace(l)); l != "" {
			t.logins[l] = true
		}
	}
	return t
}

// Has reports whether the login is trusted.
func (t Trust) Has(login string) bool { return t.logins[strings.ToLower(login)] }

// Comments returns the comments by trusted people for which inTime is true, oldest first and with
// clean text, and counts the others by author. Empty comments and our own progress comments are
// dropped without being counted.
func (t Trust) Comments(all []Comment, inTime func(Comment) bool) (kept []Comment, leftOut map[string]int) {
	leftOut = make(map[string]int)
	for _, c := range all {
		body := CleanText(c.Body)
		if c.Progress() || strings.TrimSpace(body) == "" {
			continue
		}
		if !t.Has(c.Author) || !inTime(c) {
			leftOut[cmp.Or(c.Author, "(unknown)")]++
			continue
		}
		c.Body = body
		kept = append(kept, c)
	}
	SortComments(kept)
	return kept, leftOut
}

// SortComments orders comments oldest first; the number decides within a second.
func SortComments(cs []Comment) {
	slices.SortStableFunc(cs, func(a, b Comment) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
}

// CleanText makes line ends "\n" and text valid UTF-8 without NUL, so that the same words are the
// same text however they were sent.
func CleanText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return lineEnds.Replace(s)
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "")

// CleanTitle is CleanText on one line.
func CleanTitle(s string) string { return strings.Join(strings.Fields(CleanText(s)), " ") }
