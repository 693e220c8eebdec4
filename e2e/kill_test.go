package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"issuesmith/e2e/model"
	"issuesmith/e2e/stand"
)

// A boundary is a moment of a run at which its process is killed.
type boundary struct {
	name   string
	hook   *stand.Hook // at a request to the forge; Before or After is set to the kill
	after  bool
	turn   int    // at this turn of the model, where hook and nap are not set
	nap    string // while a command naps: "setup", "agent" or "test"
	first  bool   // the first run's agent began before the kill
	second bool   // the recovering run needs the agent again
}

// napFile is a script of the repository that sleeps until a person changes it.
const napFile = "ci/nap.sh"

// napping is the text by which the napping command of a test's run is found.
func napping(t *testing.T) string { return sceneName(t) + "-nap" }

var boundaries = []boundary{
	{name: "before the claim", hook: &stand.Hook{Match: stand.Push("refs/ai/claims/")}, second: true},
	{name: "after the claim", hook: &stand.Hook{Match: stand.Push("refs/ai/claims/")}, after: true, second: true},
	{name: "after the running label", hook: &stand.Hook{Match: stand.API("POST", "/labels")}, after: true, second: true},
	{name: "after the progress comment", hook: &stand.Hook{Match: stand.API("POST", "/comments")}, after: true, second: true},
	{name: "in a setup command", nap: "setup", second: true},
	{name: "before the first turn", turn: 0, first: true, second: true},
	{name: "between two turns", turn: 2, first: true, second: true},
	{name: "in an agent command", nap: "agent", first: true, second: true},
	{name: "in a test command", nap: "test", first: true, second: true},
	{name: "before the push", hook: &stand.Hook{Match: stand.Push("refs/heads/ai/")}, first: true, second: true},
	{name: "between push and pull request", hook: &stand.Hook{Match: stand.Push("refs/heads/ai/")}, after: true, first: true},
	{name: "before the pull request", hook: &stand.Hook{Match: stand.API("POST", "/pulls")}, first: true},
	{name: "after the pull request", hook: &stand.Hook{Match: stand.API("POST", "/pulls")}, after: true, first: true},
	{name: "before the release", hook: &stand.Hook{Match: stand.Deletes("refs/ai/claims/")}, first: true},
}

// TestKilledThenSweep: whatever the moment, the sweep after it ends with one pull
// request, the right label and no claim.
func TestKilledThenSweep(t *testing.T) {
	for _, b := range boundaries {
		t.Run(b.name, func(t *testing.T) {
			c, issue := killed(t, b)
			c.sweep()
			run := c.run(1)
			if run.Conclusion != "success" {
				t.Errorf("the sweep ended with %s", run.Conclusion)
			}
			c.recovered(issue)
		})
	}
}

// TestKilledThenRerun: "Re-run" finds the claim of its own run's earlier attempt.
func TestKilledThenRerun(t *testing.T) {
	for _, b := range boundaries {
		if b.name != "between two turns" && b.name != "between push and pull request" {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			c, issue := killed(t, b)
			first := c.run(0)
			c.must(c.repo.Rerun(first.ID))
			again := c.attempt(0, first.Attempt+1)
			if again.Conclusion != "success" {
				t.Errorf("the re-run ended with %s", again.Conclusion)
			}
			c.recovered(issue)
		})
	}
}

// killed starts a run and kills it at the boundary.
func killed(t *testing.T, b boundary) (*scene, int64) {
	t.Helper()
	script := "sh " + napFile + " " + napping(t)
	options := setup{files: map[string]string{napFile: "sleep 300\n"}}
	switch b.nap {
	case "setup":
		options.with = map[string]string{"setup-commands": script}
	case "test":
		options.with = map[string]string{"test-commands": script + "\n" + tests["python"]}
	}
	c := open(t, options)
	if b.first {
		talk := optional(repaired())
		switch {
		case b.nap == "agent":
			talk = first(model.Bash(script), talk)
		case b.hook == nil && b.nap == "":
			talk = before(b.turn, c.kill, talk)
		}
		c.script.Add(talk)
	}
	if b.second {
		c.script.Add(repaired())
	} else {
		// An open pull request may be worked on once more.
		c.script.Add(optional(repaired()))
	}
	if b.hook != nil {
		h := *b.hook
		if b.after {
			h.After = func(stand.Request) { c.kill() }
		} else {
			h.Before = c.kill
		}
		c.hook(h)
	}
	issue := c.queue(pythonTitle, pythonBody)
	if b.nap != "" {
		c.until("the napping command runs", func() bool { return len(world.Marked(napping(t))) > 0 })
		c.kill()
		c.replace(napFile, "true\n")
	}
	if run := c.run(0); run.Conclusion != "failure" {
		t.Errorf("the killed run ended with %s", run.Conclusion)
	}
	if b.nap != "" {
		c.until("the killed run's command is gone", func() bool { return len(world.Marked(napping(t))) == 0 })
	}
	return c, issue
}

// replace changes a file of the main branch.
func (c *scene) replace(path, content string) {
	c.Helper()
	dir, err := c.repo.Clone(c.ctx, c.TempDir())
	c.must(err)
	c.write(filepath.Join(dir, path), content)
	_, err = stand.Git(c.ctx, dir, "commit", "-q", "-a", "-m", "Change "+path)
	c.must(err)
	c.must(c.repo.Push(c.ctx, dir, "HEAD:refs/heads/main"))
}

// recovered checks the state a killed run's successor must leave.
func (c *scene) recovered(issue int64) {
	c.Helper()
	c.labels(issue, "ai:ready")
	c.noClaim()
	pull := c.pull()
	if c.file(pull.Head.Name, "pricing/discount.py") != pythonSource {
		c.Error("the pull request does not hold the repair")
	}
	c.said(issue, pull.HTMLURL)
	if len(world.Issuesmith(c.repo.FullName())) > 0 {
		c.Error("a process of ours is left")
	}
}

// TestCancelled: a person cancels the job in the page, which kills the program without
// a signal it could see. Ten seconds later nothing of ours runs; the sweep says so on the
// issue and starts nothing.
func TestCancelled(t *testing.T) {
	c := open(t, setup{}, model.Conversation{Cut: true, Turns: []model.Turn{
		// One command that a shell waits for, one in the background of a session of its own.
		model.Bash("setsid sh -c 'sleep 300 # " + napping(t) + "' >/dev/null 2>&1 & sleep 300 # " + napping(t)),
	}})
	issue := c.queue(pythonTitle, pythonBody)
	c.until("both commands run", func() bool { return len(world.Marked(napping(t))) > 1 })
	ids, err := c.repo.WaitStarted(c.ctx, 1)
	c.must(err)
	c.must(c.repo.Cancel(c.ctx, ids[0]))
	run := c.run(0)
	if run.Conclusion != "cancelled" {
		t.Errorf("the run ended with %s", run.Conclusion)
	}
	time.Sleep(10 * time.Second)
	if left := append(world.Issuesmith(c.repo.FullName()), world.Marked(napping(t))...); len(left) > 0 {
		t.Errorf("left running: %+v", left)
	}
	c.sweep()
	c.run(1)
	c.labels(issue, "ai:failed")
	c.untouched()
	c.said(issue, "stopped by a person")
}
