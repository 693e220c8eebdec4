package e2e

import (
	"sync"
	"testing"
	"time"

	"issuesmith/e2e/stand"
)

// TestTwoRunsOnePullRequest: two events for one label, no concurrency group, and both
// runs are about to claim when either may go on.
func TestTwoRunsOnePullRequest(t *testing.T) {
	c := open(t, setup{}, repaired())
	var both sync.WaitGroup
	both.Add(2)
	arrived := make(chan struct{})
	go func() { both.Wait(); close(arrived) }()
	c.hook(stand.Hook{Times: 2, Match: stand.Push("refs/ai/claims/"), Before: func() {
		both.Done()
		select {
		case <-arrived:
		case <-time.After(time.Minute):
			t.Error("the other run never came to its claim")
		}
	}})
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	c.label(issue)
	c.label(issue) // fires again though it is there already
	first, second := c.run(0), c.run(1)
	if first.Outputs["status"] == "busy" {
		first, second = second, first
	}
	c.ended(first, 0, "opened")
	c.ended(second, 0, "busy")
	c.holds(second.Log, "::notice")
	c.labels(issue, "ai:ready")
	c.pull()
	c.noClaim()
	if n := len(c.comments(issue)); n != 1 {
		t.Errorf("%d comments, want the one of the run that worked", n)
	}
}

func TestLabelRemovedBefore(t *testing.T) {
	c := open(t, setup{before: hold})
	issue := c.queue(pythonTitle, pythonBody)
	c.held()
	c.must(c.repo.Unlabel(issue, "ai:queued"))
	c.release()
	c.ended(c.run(0), 0, "nothing-to-do")
	c.labels(issue)
	c.untouched()
	if n := len(c.comments(issue)); n != 0 {
		t.Errorf("%d comments, want none", n)
	}
}

func TestLabelRemovedWhileRunning(t *testing.T) {
	var c *scene
	var issue int64
	c = open(t, setup{}, optional(before(2, func() { c.must(c.repo.Unlabel(issue, "ai:running")) }, repaired())))
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	c.label(issue)
	c.ended(c.run(0), 0, "nothing-to-do")
	c.labels(issue)
	c.untouched()
	c.said(issue, "taken away")
}

func TestIssueClosedWhileRunning(t *testing.T) {
	var c *scene
	var issue int64
	c = open(t, setup{}, optional(before(2, func() { c.must(c.repo.SetOpen(issue, false)) }, repaired())))
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	c.label(issue)
	c.ended(c.run(0), 0, "nothing-to-do")
	c.labels(issue)
	c.untouched()
	c.said(issue, "closed")
}
