package gitea

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"issuesmith/internal/forge"
)

// issueJSON is the SDK's issue and the field it lacks; Gitea has it from 1.26 on.
type issueJSON struct {
	sdk.Issue
	ContentVersion *int `json:"content_version"`
}

func (i *issueJSON) issue() *forge.Issue {
	out := &forge.Issue{
		Number: int(i.Index), Title: i.Title, Body: i.Body, URL: i.HTMLURL, Author: login(i.Poster),
		Open: i.State == sdk.StateOpen, IsPull: i.PullRequest != nil,
		ContentVersion: -1, Created: i.Created, Updated: i.Updated,
	}
	if i.ContentVersion != nil {
		out.ContentVersion = *i.ContentVersion
	}
	for _, l := range i.Labels {
		if l != nil {
			out.Labels = append(out.Labels, l.Name)
		}
	}
	return out
}

// login is a user's name, "" for nobody.
func login(u *sdk.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}

// Issue reads an issue with all its comments. forge.ErrNotFound.
func (f *Forge) Issue(ctx context.Context, number int) (*forge.Issue, error) {
	doing := fmt.Sprintf("reading issue #%d", number)
	var raw issueJSON
	res, err := f.get(ctx, fmt.Sprintf("/issues/%d", number), nil, &raw)
	if err != nil {
		return nil, f.failedOn(ctx, doing, fmt.Sprintf("there is no issue #%d", number), issues, res, err)
	}
	out := raw.issue()
	out.Comments, err = f.comments(ctx, number, doing)
	return out, err
}

// comments are the plain comments on an issue or a pull request, oldest first.
func (f *Forge) comments(ctx context.Context, number int, doing string) ([]forge.Comment, error) {
	self, err := f.login(ctx)
	if err != nil {
		return nil, err
	}
	all, res, err := pages(func(c *sdk.Comment) int64 { return c.ID },
		func(o sdk.ListOptions) ([]*sdk.Comment, *sdk.Response, error) {
			return f.Client(ctx).ListIssueComments(f.owner, f.name, int64(number), sdk.ListIssueCommentOptions{ListOptions: o})
		})
	if err != nil {
		return nil, f.failed(doing+" (its comments)", issues, res, err)
	}
	out := make([]forge.Comment, 0, len(all))
	for _, c := range all {
		out = append(out, forge.Comment{
			ID: c.ID, Author: login(c.Poster), Body: c.Body, Own: own(c.Poster, self),
			Created: c.Created, Updated: later(c.Created, c.Updated),
		})
	}
	forge.SortComments(out)
	return out, nil
}

// own reports whether we wrote it: with this token, or as another job.
func own(u *sdk.User, self string) bool {
	return u != nil && (u.ID == actionsUserID || strings.EqualFold(u.UserName, self))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Labelled lists open issues (no pull requests) with the label, oldest first. Comments are not read.
func (f *Forge) Labelled(ctx context.Context, label string) ([]*forge.Issue, error) {
	doing := "listing the issues labelled " + label
	// With a label that does not exist the forge answers all issues there are.
	known, err := f.known(ctx)
	if err != nil || known[label] == 0 {
		return nil, err
	}
	all, res, err := pages(func(i *issueJSON) int64 { return i.Index },
		func(o sdk.ListOptions) ([]*issueJSON, *sdk.Response, error) {
			q := paging(o)
			q.Set("state", "open")
			q.Set("type", "issues")
			if !strings.Contains(label, ",") { // a comma separates labels
				q.Set("labels", label)
			}
			var part []*issueJSON
			res, err := f.get(ctx, "/issues", q, &part)
			return part, res, err
		})
	if err != nil {
		return nil, f.failed(doing, issues, res, err)
	}
	var out []*forge.Issue
	for _, raw := range all {
		i := raw.issue()
		twice := slices.ContainsFunc(out, func(o *forge.Issue) bool { return o.Number == i.Number })
		if i.Open && !i.IsPull && i.HasLabel(label) && !twice {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b *forge.Issue) int { return a.Number - b.Number })
	return out, nil
}

// Comment creates (id 0) or edits a comment and returns its id. An edit of a deleted comment creates a new one.
func (f *Forge) Comment(ctx context.Context, number int, id int64, body string) (int64, error) {
	doing := fmt.Sprintf("commenting on #%d", number)
	if id != 0 {
		_, res, err := f.Client(repeatable(ctx)).EditIssueComment(f.owner, f.name, id, sdk.EditIssueCommentOption{Body: body})
		switch {
		case err == nil:
			return id, nil
		case status(res) != http.StatusNotFound:
			return 0, f.failed(doing, issues, res, err)
		}
	}
	c, res, err := f.Client(ctx).CreateIssueComment(f.owner, f.name, int64(number), sdk.CreateIssueCommentOption{Body: body})
	if err != nil {
		return 0, f.failedOn(ctx, doing, fmt.Sprintf("there is no issue #%d", number), issues, res, err)
	}
	return c.ID, nil
}
