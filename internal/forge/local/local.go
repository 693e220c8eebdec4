// Package local is the forge of a desk: one issue from a file, comments shown by the caller, and a
// branch in a repository on disk instead of a pull request on a page.
package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"issuesmith/internal/forge"
)

// Author is who wrote the issue and whose word counts.
const Author = "you"

// Options for New.
type Options struct {
	Number      int // from 1; 0 is 1
	Title, Body string
	Place       string // where branches are left: shown as the address of the pull request
	Branch      string // the base branch
	Labels      []string
	OnComment   func(body string) // shows a comment, also each edit of one; may be nil
	Now         func() time.Time  // the clock; nil for the real one
}

// A Forge holds one issue in memory. It is safe for concurrent use.
type Forge struct {
	o       Options
	created time.Time

	mu       sync.Mutex
	labels   []string
	comments []forge.Comment
	pulls    []*forge.Pull
}

var _ forge.Forge = (*Forge)(nil)

// New makes a forge with one open issue.
func New(o Options) (*Forge, error) {
	o.Title, o.Body = forge.CleanTitle(o.Title), forge.CleanText(o.Body)
	if o.Title == "" {
		return nil, errors.New("the issue has no title")
	}
	if o.Number == 0 {
		o.Number = 1
	}
	if o.Number < 0 {
		return nil, fmt.Errorf("an issue has a number from 1 on, not %d", o.Number)
	}
	if o.OnComment == nil {
		o.OnComment = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Forge{o: o, created: o.Now().UTC().Truncate(time.Second), labels: slices.Clone(o.Labels)}, nil
}

// Repository is the folder.
func (f *Forge) Repository(context.Context) (*forge.Repository, error) {
	return &forge.Repository{
		Owner: Author, Name: "repository", URL: f.o.Place, CloneURL: f.o.Place,
		DefaultBranch: f.o.Branch, ObjectFormat: "sha1",
	}, nil
}

func (f *Forge) here(number int) error {
	if number != f.o.Number {
		return fmt.Errorf("issue #%d: %w", number, forge.ErrNotFound)
	}
	return nil
}

// Issue is the one from the file.
func (f *Forge) Issue(_ context.Context, number int) (*forge.Issue, error) {
	if err := f.here(number); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.issue(), nil
}

func (f *Forge) issue() *forge.Issue {
	return &forge.Issue{
		Number: f.o.Number, Title: f.o.Title, Body: f.o.Body, Author: Author, Open: true, ContentVersion: -1,
		Labels: slices.Clone(f.labels), Comments: slices.Clone(f.comments), Created: f.created, Updated: f.created,
	}
}

// Labelled is the issue when it bears the label.
func (f *Forge) Labelled(_ context.Context, label string) ([]*forge.Issue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.issue(); i.HasLabel(label) {
		return []*forge.Issue{i}, nil
	}
	return nil, nil
}

// EnsureLabels has nothing to do: any name is a label here.
func (f *Forge) EnsureLabels(context.Context, []forge.Label) error { return nil }

// AddLabel notes a label.
func (f *Forge) AddLabel(_ context.Context, number int, name string) error {
	if err := f.here(number); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.labels, name) {
		f.labels = append(f.labels, name)
	}
	return nil
}

// RemoveLabel forgets a label.
func (f *Forge) RemoveLabel(_ context.Context, number int, name string) error {
	if err := f.here(number); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels = slices.DeleteFunc(f.labels, func(l string) bool { return l == name })
	return nil
}

// Comment keeps and shows a comment.
func (f *Forge) Comment(_ context.Context, number int, id int64, body string) (int64, error) {
	if err := f.here(number); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.Now().UTC().Truncate(time.Second)
	at := slices.IndexFunc(f.comments, func(c forge.Comment) bool { return c.ID == id })
	if at < 0 {
		at = len(f.comments)
		f.comments = append(f.comments, forge.Comment{ID: int64(at + 1), Author: Author, Own: true, Created: now})
	}
	f.comments[at].Body, f.comments[at].Updated = body, now
	f.o.OnComment(body)
	return f.comments[at].ID, nil
}

// Contains is true: the branch is what is checked out.
func (f *Forge) Contains(context.Context, string, string) (bool, error) { return true, nil }

// Pulls lists what OpenPull opened, newest first.
func (f *Forge) Pulls(_ context.Context, head string) ([]*forge.Pull, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*forge.Pull
	for _, p := range slices.Backward(f.pulls) {
		if p.Head == head {
			c := *p
			out = append(out, &c)
		}
	}
	return out, nil
}

// Reviews are none.
func (f *Forge) Reviews(context.Context, int) ([]forge.Comment, error) { return nil, nil }

// OpenPull keeps title and body; the address is where the branch is.
func (f *Forge) OpenPull(_ context.Context, p forge.NewPull) (*forge.Pull, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.pulls {
		if q.Head == p.Head && q.Base == p.Base {
			c := *q
			return &c, nil
		}
	}
	n := &forge.Pull{
		Number: len(f.pulls) + 1, URL: f.o.Place, Title: p.Title, Body: p.Body, Open: true,
		Head: p.Head, Base: p.Base, Author: Author, Created: f.o.Now().UTC().Truncate(time.Second),
	}
	f.pulls = append(f.pulls, n)
	c := *n
	return &c, nil
}

// EditPull replaces title and body.
func (f *Forge) EditPull(_ context.Context, number int, title, body string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number < 1 || number > len(f.pulls) {
		return fmt.Errorf("pull request #%d: %w", number, forge.ErrNotFound)
	}
	f.pulls[number-1].Title, f.pulls[number-1].Body = title, body
	return nil
}

// Dispatch cannot be done here.
func (f *Forge) Dispatch(_ context.Context, workflow, _ string) error {
	return fmt.Errorf("starting workflow %s: there are no workflows without a forge; leave `ci-workflow` empty", workflow)
}

// Claim is always granted: nobody else sees this issue.
func (f *Forge) Claim(_ context.Context, c forge.Claim) (*forge.Held, error) {
	if err := f.here(c.Issue); err != nil {
		return nil, err
	}
	return &forge.Held{Claim: c}, nil
}

// Release has nothing to give up.
func (f *Forge) Release(context.Context, *forge.Held) error { return nil }

// Claims are none.
func (f *Forge) Claims(context.Context) ([]forge.Standing, error) { return nil, nil }

// Drop has nothing to drop.
func (f *Forge) Drop(context.Context, forge.Standing) error { return nil }
