package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"issuesmith/internal/forge"
)

var hexHash = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// Contains reports whether the branch contains the commit. A commit that the forge does not
// have is not contained; a branch that it does not have is an error (forge.ErrNotFound).
func (f *Forge) Contains(ctx context.Context, branch, commit string) (bool, error) {
	doing := "asking whether branch " + branch + " holds the checked-out commit"
	if !hexHash.MatchString(commit) {
		return false, fmt.Errorf("%s: %q is not a commit's hash", doing, cut(commit, 80))
	}
	b, res, err := f.Client(ctx).GetRepoBranch(f.owner, f.name, branch)
	switch {
	// Without the permission to read contents the answer is 403.
	case status(res) == http.StatusNotFound:
		return false, fmt.Errorf("%s: there is no such branch: %w", doing, forge.ErrNotFound)
	case err != nil:
		return false, f.failed(doing, contents, res, err)
	case b.Commit != nil && b.Commit.ID == commit:
		return true, nil
	}
	// One commit reachable from it and not from the branch is enough to know. The compare API would
	// send all of them.
	var beyond []struct {
		SHA string `json:"sha"`
	}
	res, err = f.get(ctx, "/commits", url.Values{
		"sha": {commit}, "not": {"refs/heads/" + branch}, "limit": {"1"},
		"stat": {"false"}, "files": {"false"}, "verification": {"false"},
	}, &beyond)
	switch {
	case status(res) == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, f.failed(doing, contents, res, err)
	}
	return len(beyond) == 0, nil
}

func toPull(p *sdk.PullRequest) *forge.Pull {
	out := &forge.Pull{
		Number: int(p.Index), URL: p.HTMLURL, Title: p.Title, Body: p.Body,
		Open: p.State == sdk.StateOpen, Merged: p.HasMerged, Author: login(p.Poster),
	}
	if p.Head != nil {
		// Its ref is refs/pull/N/head once the branch is gone; the label stays.
		out.Head, out.HeadCommit = p.Head.Name, p.Head.Sha
	}
	if p.Base != nil {
		out.Base = p.Base.Ref
	}
	if p.Created != nil {
		out.Created = *p.Created
	}
	return out
}

// closedPages bounds how far back closed pull requests are looked for: the 2,000 touched last.
const closedPages = 40

// Pulls lists pull requests whose head is the branch of this repository, newest first, open or not.
func (f *Forge) Pulls(ctx context.Context, head string) ([]*forge.Pull, error) {
	var out []*forge.Pull
	for _, q := range []struct {
		state sdk.StateType
		pages int
	}{{sdk.StateOpen, maxPages}, {sdk.StateClosed, closedPages}} {
		all, res, err := pages(func(p *sdk.PullRequest) int64 { return p.Index },
			func(o sdk.ListOptions) ([]*sdk.PullRequest, *sdk.Response, error) {
				if o.Page > q.pages {
					return nil, nil, nil
				}
				// The forge has no filter by head.
				return f.Client(ctx).ListRepoPullRequests(f.owner, f.name, sdk.ListPullRequestsOptions{
					ListOptions: o, State: q.state, Sort: "recentupdate",
				})
			})
		if err != nil {
			return nil, f.failed("looking for pull requests of "+head, pulls, res, err)
		}
		for _, p := range all {
			ours := p.Head != nil && p.Base != nil && p.Head.RepoID == p.Base.RepoID
			twice := slices.ContainsFunc(out, func(o *forge.Pull) bool { return o.Number == int(p.Index) })
			if ours && p.Head.Name == head && !twice {
				out = append(out, toPull(p))
			}
		}
	}
	slices.SortFunc(out, func(a, b *forge.Pull) int { return b.Number - a.Number })
	return out, nil
}

// OpenPull opens a pull request, or returns the open one that exists already for head and base.
func (f *Forge) OpenPull(ctx context.Context, p forge.NewPull) (*forge.Pull, error) {
	doing := "opening the pull request of " + p.Head
	made, res, err := f.Client(ctx).CreatePullRequest(f.owner, f.name, sdk.CreatePullRequestOption{
		Head: p.Head, Base: p.Base, Title: p.Title, Body: p.Body,
	})
	code := status(res)
	if err == nil {
		return toPull(made), nil
	}
	if code == http.StatusNotFound {
		what := fmt.Sprintf("branch %s or %s is not there", p.Head, p.Base)
		return nil, f.missing(ctx, doing, what, pulls, code, err)
	}
	// 409 says that there is one. After a lost answer or a 5xx there may be one as well.
	if code == http.StatusConflict || code == 0 || code >= 500 {
		found, e := f.Pulls(ctx, p.Head)
		if e != nil && code == http.StatusConflict {
			return nil, e
		}
		for _, q := range found {
			if q.Open && q.Base == p.Base {
				return q, nil
			}
		}
	}
	return nil, f.failed(doing, pulls, res, err)
}

// EditPull replaces title and body.
func (f *Forge) EditPull(ctx context.Context, number int, title, body string) error {
	doing := fmt.Sprintf("editing pull request #%d", number)
	_, res, err := f.Client(repeatable(ctx)).EditPullRequest(f.owner, f.name, int64(number), sdk.EditPullRequestOption{Title: title, Body: &body})
	if err != nil {
		return f.failedOn(ctx, doing, fmt.Sprintf("there is no pull request #%d", number), pulls, res, err)
	}
	return nil
}

// reviewJSON is the SDK's review and the field it lacks.
type reviewJSON struct {
	sdk.PullReview
	Updated time.Time `json:"updated_at"`
}

// Reviews are review comments and review bodies and plain comments on a pull request, oldest first. What a
// person has settled is left out: resolved comments, dismissed and unsubmitted reviews.
func (f *Forge) Reviews(ctx context.Context, pull int) ([]forge.Comment, error) {
	doing := fmt.Sprintf("reading the reviews of pull request #%d", pull)
	self, err := f.login(ctx)
	if err != nil {
		return nil, err
	}
	reviews, res, err := pages(func(r *reviewJSON) int64 { return r.ID },
		func(o sdk.ListOptions) ([]*reviewJSON, *sdk.Response, error) {
			var part []*reviewJSON
			res, err := f.get(ctx, fmt.Sprintf("/pulls/%d/reviews", pull), paging(o), &part)
			return part, res, err
		})
	if err != nil {
		return nil, f.failedOn(ctx, doing, fmt.Sprintf("there is no pull request #%d", pull), pulls, res, err)
	}
	out, err := f.comments(ctx, pull, doing)
	if err != nil {
		return nil, err
	}
	for _, r := range reviews {
		if r.Dismissed || r.State == sdk.ReviewStatePending || r.State == sdk.ReviewStateRequestReview {
			continue
		}
		if r.Body != "" {
			out = append(out, forge.Comment{
				ID: r.ID, Author: login(r.Reviewer), Body: r.Body, Own: own(r.Reviewer, self),
				Created: r.Submitted, Updated: later(r.Submitted, r.Updated),
			})
		}
		if r.CodeCommentsCount == 0 {
			continue
		}
		lines, res, err := f.Client(ctx).ListPullReviewComments(f.owner, f.name, int64(pull), r.ID)
		if err != nil {
			return nil, f.failed(doing, pulls, res, err)
		}
		for _, c := range lines {
			if c.Resolver == nil {
				out = append(out, lineComment(c, self))
			}
		}
	}
	forge.SortComments(out)
	return out, nil
}

func lineComment(c *sdk.PullReviewComment, self string) forge.Comment {
	out := forge.Comment{
		ID: c.ID, Author: login(c.Reviewer), Body: c.Body, Own: own(c.Reviewer, self), Path: c.Path,
		Created: c.Created, Updated: later(c.Created, c.Updated),
	}
	if c.LineNum <= 1<<30 {
		out.Line = int(c.LineNum)
	}
	return out
}
