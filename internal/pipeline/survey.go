package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"issuesmith/internal/forge"
)

// trailer names of our commits; a branch is ours when its last commit of ours bears them.
const (
	issueTrailer = "Issuesmith-Issue"
	runTrailer   = "Issuesmith-Run"
)

// pullMark is at the end of every pull request body of ours. A person may delete it; then
// the trailers decide.
const pullMark = "<!-- issuesmith:pull-request -->"

// start is where this run begins, decided by what earlier runs and people left.
type start struct {
	commit  string          // the worktree's base
	branch  string          // where the result goes
	old     string          // what branch must be when it is pushed, "" when it must not exist
	pull    *forge.Pull     // the open pull request that is continued
	reviews []forge.Comment // what people said on it
	done    bool            // a dead run had finished the work: only the forge has to be told
	message string          // done: the commit's message
}

// survey follows the table "Publish" of the design: continue an open pull request, finish
// what a dead run left, or start from the base on the next free branch.
func (r *run) survey(ctx context.Context) error {
	r.start = start{commit: r.Base, branch: r.BaseBranch}
	if r.Config.Mode == "direct" {
		r.start.old = r.Base
		return nil
	}
	refs, err := r.Remote.Refs(ctx)
	if err != nil {
		return infrastructure("listing the branches", err)
	}
	for n := 1; ; n++ {
		name := r.branchName(n)
		commit, exists := refs["refs/heads/"+name]
		if !exists {
			r.start.branch = name
			return nil
		}
		found, err := r.inspect(ctx, name, commit)
		if err != nil {
			return err
		}
		if found {
			return nil
		}
		r.note(fmt.Sprintf("the branch %s is not ours to continue; looking for the next free name", name))
	}
}

func (r *run) branchName(n int) string {
	name := fmt.Sprintf("%s%d", r.Config.Prefix, r.Issue)
	if n > 1 {
		name += fmt.Sprintf("-%d", n)
	}
	return name
}

// inspect decides what an existing branch means; false: it is to be left alone.
func (r *run) inspect(ctx context.Context, branch, commit string) (bool, error) {
	pulls, err := r.Forge.Pulls(ctx, branch)
	if err != nil {
		return false, infrastructure("looking for pull requests of "+branch, err)
	}
	open := openPull(pulls, r.BaseBranch)
	if open == nil && len(pulls) > 0 {
		return false, nil // closed or merged: its branch is history
	}
	if err := r.Remote.Fetch(ctx, r.Repository, "refs/heads/"+branch, commit); err != nil {
		return false, infrastructure("fetching the branch "+branch, err)
	}
	info, err := r.Repository.Commit(commit)
	if err != nil {
		return false, infrastructure("reading the branch "+branch, err)
	}
	trailers := trailersOf(info.Message)
	ours := trailers[issueTrailer] == fmt.Sprint(r.Issue)
	dead := r.held.Over != nil && trailers[runTrailer] == fmt.Sprintf("%s.%d", r.held.Over.Run, r.held.Over.Attempt)
	at := start{commit: commit, branch: branch, old: commit, pull: open, message: info.Message}
	switch {
	case open == nil && !ours:
		return false, nil
	case open == nil || ours && dead:
		at.done = true
		r.note(fmt.Sprintf("the commit %s on %s is the finished work of a run that died; telling the forge is all that is left", short(commit), branch))
	case !ours && !strings.Contains(open.Body, pullMark):
		return false, nil // somebody's own pull request from a branch of that name
	default:
		r.note(fmt.Sprintf("continuing pull request #%d from %s", open.Number, short(commit)))
		since := open.Created
		if ours {
			since = info.Committer.When
		}
		if at.reviews, err = r.trustedReviews(ctx, open, since); err != nil {
			return false, err
		}
	}
	r.start = at
	return true, nil
}

func openPull(pulls []*forge.Pull, base string) *forge.Pull {
	for _, p := range pulls {
		if p.Open && p.Base == base {
			return p
		}
	}
	for _, p := range pulls {
		if p.Open {
			return p
		}
	}
	return nil
}

// trustedReviews are the comments on the pull request since our last commit, by the people
// whose comments on the issue are trusted.
func (r *run) trustedReviews(ctx context.Context, pull *forge.Pull, since time.Time) ([]forge.Comment, error) {
	all, err := r.Forge.Reviews(ctx, pull.Number)
	if err != nil {
		return nil, infrastructure(fmt.Sprintf("reading the review of pull request #%d", pull.Number), err)
	}
	var later []forge.Comment
	for _, c := range all {
		if c.Created.After(since) {
			later = append(later, c)
		}
	}
	reviewed := *r.issue
	reviewed.Comments = later
	approval := r.Approval
	approval.FromEvent = false
	task := forge.Approve(&reviewed, approval, r.owner(ctx), r.Config.TrustedUsers, time.Now())
	return task.Comments, nil
}

// publishLeftover tells the forge of a commit that a dead run pushed.
func (r *run) publishLeftover(ctx context.Context) error {
	r.Log.Stage("Finish what a dead run left", r.state)
	if err := r.stillWanted(ctx); err != nil {
		return err
	}
	subject, body, _ := strings.Cut(r.start.message, "\n")
	r.summary = strings.TrimSpace(dropTrailers(body))
	r.result.Branch, r.result.Commit = r.start.branch, r.start.commit
	page := pullPage{
		Issue: r.Issue, Title: subject, Problem: r.task.Body, Summary: r.summary, Commit: r.start.commit,
		Remarks: []string{"The run that made this commit was killed before it could open the pull request; a later run opened it."},
	}
	return r.openOrUpdate(ctx, page)
}

// trailersOf reads the last paragraph of a commit message (git-interpret-trailers).
func trailersOf(message string) map[string]string {
	trailers := map[string]string{}
	paragraphs := strings.Split(strings.TrimSpace(message), "\n\n")
	for _, line := range strings.Split(paragraphs[len(paragraphs)-1], "\n") {
		if key, value, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(key, " \t") {
			trailers[key] = strings.TrimSpace(value)
		}
	}
	return trailers
}

func dropTrailers(message string) string {
	if len(trailersOf(message)) == 0 {
		return message
	}
	message = strings.TrimSpace(message)
	i := strings.LastIndex(message, "\n\n")
	return message[:max(i, 0)]
}
