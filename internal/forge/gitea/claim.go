package gitea

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"issuesmith/internal/forge"
	"issuesmith/internal/worktree"
)

const (
	// unreadableAge is how long a claim ref that says nothing is respected: longer than any job lasts.
	unreadableAge = 3 * time.Hour
	cleanupTime   = 10 * time.Second
)

// Claim takes the claim on an issue, or takes over a stale one. A *forge.BusyError when another
// live run has it. Nothing else is touched.
//
// The one atomic operation on Gitea is a push that creates a ref or moves it from a known value. The
// commit is unique, so that after a push whose answer was lost the ref itself tells who won.
func (f *Forge) Claim(ctx context.Context, c forge.Claim) (*forge.Held, error) {
	doing := fmt.Sprintf("claiming issue #%d", c.Issue)
	h := &forge.Held{Claim: c}
	h.Started, h.Deadline = c.Started.UTC().Truncate(time.Second), c.Deadline.UTC().Truncate(time.Second)
	h.Nonce = rand.Text()
	old := ""
	for range 4 {
		if err := f.pushClaim(ctx, h, old); err == nil {
			return h, nil
		} else if !errors.Is(err, worktree.ErrMoved) {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		standing, page, err := f.standing(ctx, c.Issue, c)
		switch {
		case err != nil:
			return nil, err
		case standing == nil: // given up between our push and our look
			h, old = &forge.Held{Claim: h.Claim}, ""
			h.Takeover, h.Comment = c.Takeover, c.Comment
			continue
		case !standing.Stale:
			return nil, &forge.BusyError{Claim: standing.Claim, URL: page, Why: busyWhy(standing)}
		}
		old = standing.Commit
		takeOver(h, c, standing)
	}
	return nil, &forge.BusyError{Claim: forge.Claim{Issue: c.Issue}, Why: "others were faster every time"}
}

// takeOver notes in our claim whose it was. A run cancelled by a person does not count as killed.
func takeOver(h *forge.Held, c forge.Claim, s *forge.Standing) {
	over := s.Claim
	h.Over, h.Why, h.Cancelled = &over, s.Why, s.State == forge.RunCancelled
	h.Takeover = over.Takeover
	if !h.Cancelled {
		h.Takeover++
	}
	if h.Comment = c.Comment; h.Comment == 0 {
		h.Comment = over.Comment
	}
}

func busyWhy(s *forge.Standing) string {
	if s.State == forge.RunActive {
		return ""
	}
	return s.Why
}

// pushClaim moves the ref from old to a new commit of the claim.
func (f *Forge) pushClaim(ctx context.Context, h *forge.Held, old string) error {
	if f.repo == nil {
		return errors.New("there is no checkout to keep the claim's commit in")
	}
	who := worktree.Person{Name: "issuesmith", Email: "issuesmith@localhost", When: f.now().UTC().Truncate(time.Second)}
	commit, err := f.repo.EmptyCommit(who, h.Message())
	if err != nil {
		return err
	}
	h.Commit = commit
	err = f.remote.Push(ctx, f.repo, worktree.Update{Ref: forge.Ref(h.Issue), Old: old, New: commit})
	if err != nil && ctx.Err() != nil {
		// Stopped while the push was under way: it may have worked. What cannot be given back now goes
		// stale with the run.
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		_ = f.Release(back, h)
	}
	return err
}

// standing is the claim that there is on an issue, nil when there is none.
func (f *Forge) standing(ctx context.Context, issue int, asker forge.Claim) (*forge.Standing, string, error) {
	refs, err := f.remote.Refs(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("looking at the claim on #%d: %w", issue, err)
	}
	commit, ok := refs[forge.Ref(issue)]
	if !ok {
		return nil, "", nil
	}
	return f.judge(ctx, issue, commit, asker)
}

// judge reads a claim's commit and asks about its run.
func (f *Forge) judge(ctx context.Context, issue int, commit string, asker forge.Claim) (*forge.Standing, string, error) {
	s := &forge.Standing{Claim: forge.Claim{Issue: issue}, Commit: commit, State: forge.RunUnknown}
	message, when, err := f.claimCommit(ctx, commit)
	if err != nil {
		return nil, "", err
	}
	c, err := forge.ParseClaim(message)
	if err == nil && c.Issue != issue {
		err = fmt.Errorf("it is a claim on #%d", c.Issue)
	}
	if err != nil {
		until := when.Add(unreadableAge)
		s.Stale = !when.IsZero() && f.now().After(until)
		s.Why = fmt.Sprintf("%s cannot be read (%s); it is respected for %v after it was made; delete that ref to free the issue now",
			forge.Ref(issue), f.clean(err.Error()), unreadableAge)
		return s, "", nil
	}
	var page string
	s.Claim = c
	s.State, page = f.runState(ctx, c.Run)
	s.Stale, s.Why = forge.Stale(c, asker, s.State, f.now())
	return s, page, nil
}

// claimCommit reads message and date of the commit a claim ref points at. What is not a commit has neither.
func (f *Forge) claimCommit(ctx context.Context, commit string) (string, time.Time, error) {
	if !hexHash.MatchString(commit) {
		return "", time.Time{}, nil
	}
	var c struct {
		Commit struct {
			Message   string `json:"message"`
			Committer struct {
				Date time.Time `json:"date"`
			} `json:"committer"`
		} `json:"commit"`
	}
	res, err := f.get(ctx, "/git/commits/"+commit, url.Values{"stat": {"false"}, "files": {"false"}, "verification": {"false"}}, &c)
	switch {
	case status(res) == 404 || status(res) == 422:
		return "", time.Time{}, nil
	case err != nil:
		return "", time.Time{}, f.failed("reading the claim there is", contents, res, err)
	}
	return c.Commit.Message, c.Commit.Committer.Date, nil
}

// objects is what a push that only deletes sends from: nothing.
func (f *Forge) objects() *worktree.Repository {
	if f.repo == nil {
		return new(worktree.Repository)
	}
	return f.repo
}

// Release gives up a held claim; it is no error when it is gone already or has been taken over.
func (f *Forge) Release(ctx context.Context, h *forge.Held) error {
	if h == nil || h.Commit == "" {
		return nil
	}
	err := f.remote.Push(ctx, f.objects(), worktree.Update{Ref: forge.Ref(h.Issue), Old: h.Commit})
	if err == nil || errors.Is(err, worktree.ErrMoved) {
		return nil
	}
	return fmt.Errorf("giving up the claim on #%d: %w", h.Issue, err)
}

// Claims lists the claims there are, by issue, with what is known of their runs.
func (f *Forge) Claims(ctx context.Context) ([]forge.Standing, error) {
	refs, err := f.remote.Refs(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the claims: %w", err)
	}
	var out []forge.Standing
	for ref, commit := range refs {
		issue, ok := forge.ParseRef(ref)
		if !ok {
			continue
		}
		s, _, err := f.judge(ctx, issue, commit, f.asker)
		if err != nil {
			return nil, err
		}
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b forge.Standing) int { return a.Issue - b.Issue })
	return out, nil
}

// Drop deletes a claim as it was seen. A *forge.BusyError when it is another one now, or gone.
func (f *Forge) Drop(ctx context.Context, s forge.Standing) error {
	err := f.remote.Push(ctx, f.objects(), worktree.Update{Ref: forge.Ref(s.Issue), Old: s.Commit})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, worktree.ErrMoved):
		return &forge.BusyError{Claim: forge.Claim{Issue: s.Issue}, Why: "the claim has been taken over or given up meanwhile"}
	}
	return fmt.Errorf("dropping the claim on #%d: %w", s.Issue, err)
}
