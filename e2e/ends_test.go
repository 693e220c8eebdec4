package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"issuesmith/e2e/model"
	"issuesmith/e2e/stand"
)

// An end is one row of the table "How a run ends".
type end struct {
	name   string
	setup  setup
	title  string
	body   string
	script []model.Conversation
	hook   *stand.Hook
	// during is called when the model is first asked.
	during func(*scene)

	labels  []string
	status  string
	exit    int
	comment []string // texts of the last comment; nil is none at all
	pulls   int
}

var ends = []end{
	{
		name: "pull request opened", script: []model.Conversation{repaired()},
		labels: []string{"ai:ready"}, status: "opened", comment: []string{"/pulls/"}, pulls: 1,
	},
	{
		name: "pushed directly", script: []model.Conversation{repaired()},
		setup: setup{
			with:  map[string]string{"mode": "direct", "allow-direct": "true"},
			files: map[string]string{".gitea/issuesmith.yml": "direct-paths: [\"pricing/**\", \"tests/**\"]\n"},
		},
		labels: []string{"ai:ready"}, status: "pushed", comment: []string{"main"},
	},
	{
		name: "dry run", script: []model.Conversation{repaired()},
		setup:  setup{with: map[string]string{"mode": "dry-run"}},
		status: "dry-run", comment: []string{"+    return price - (2 * price * percent + 100) // 200"},
	},
	{
		name: "the agent gives up", script: []model.Conversation{
			{Turns: []model.Turn{{Text: "I cannot."}, {Text: "Really not."}, {Text: "No."}}},
		},
		setup:  setup{with: map[string]string{"max-attempts": "1"}},
		labels: []string{"ai:failed"}, status: "failed", exit: 1, comment: []string{"ai:queued"},
	},
	{
		name: "the gate refuses", script: []model.Conversation{{Turns: []model.Turn{
			look(), model.Write("pricing/discount.py", pythonSource), model.Write(".gitea/workflows/own.yml", "on: push\n"), model.Write("debug.txt", "x\n"), model.Submit(summary),
		}}},
		setup:  setup{with: map[string]string{"max-attempts": "1"}},
		labels: []string{"ai:failed"}, status: "failed", exit: 1, comment: []string{"gate", ".gitea/workflows/own.yml", "protected", "debug.txt", "temporary"},
	},
	{
		name: "a limit", script: []model.Conversation{{Turns: []model.Turn{model.Bash("ls"), model.Bash("ls tests")}}},
		setup:  setup{with: map[string]string{"max-attempts": "1", "step-limit": "2"}},
		labels: []string{"ai:failed"}, status: "failed", exit: 1, comment: []string{"2 of 2 model calls"},
	},
	{
		name:   "configuration wrong before the claim",
		setup:  setup{with: map[string]string{"max-attempts": "many", "step-limit": "0", "agent-timeout": "soon", "branch-prefix": "..", "mode": "wild"}},
		labels: []string{"ai:queued"}, status: "failed", exit: 2,
	},
	{
		name: "an issue without text", body: " ",
		labels: []string{"ai:failed"}, status: "failed", exit: 2, comment: []string{"configuration", "text"},
	},
	{
		name: "forge down before the claim",
		hook: &stand.Hook{Times: 100, Match: stand.API("GET", "/issues/1"), Answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}},
		labels: []string{"ai:queued"}, status: "failed", exit: 3,
	},
	{
		name:   "setup fails",
		setup:  setup{with: map[string]string{"setup-commands": "echo no such package; exit 7"}},
		labels: []string{"ai:failed"}, status: "failed", exit: 3, comment: []string{"infrastructure", "no such package", "ai:queued"},
	},
	{
		name:   "no such sandbox",
		setup:  setup{with: map[string]string{"sandbox": "strongest"}},
		labels: []string{"ai:queued"}, status: "failed", exit: 2,
	},
	{
		name: "SIGTERM", script: []model.Conversation{optional(repaired())},
		during: func(c *scene) {
			for _, p := range world.Issuesmith(c.repo.FullName()) {
				if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil {
					c.Error(err)
				}
			}
		},
		labels: []string{"ai:failed"}, status: "failed", exit: 1, comment: []string{"stopped by a person"},
	},
	{
		name: "issue deleted while running", script: []model.Conversation{optional(repaired())},
		during: func(c *scene) {
			if _, err := c.repo.Maintainer.DeleteIssue(c.repo.Owner, c.repo.Name, 1); err != nil {
				c.Error(err)
			}
		},
		status: "nothing-to-do",
	},
}

func TestHowARunEnds(t *testing.T) {
	for _, e := range ends {
		t.Run(e.name, func(t *testing.T) {
			c := open(t, e.setup)
			if e.during != nil {
				e.script[0] = before(0, func() { e.during(c) }, e.script[0])
			}
			c.script.Add(e.script...)
			remove := func() {}
			if e.hook != nil {
				remove = c.hook(*e.hook)
			}
			issue := c.queue(orElse(e.title, pythonTitle), orElse(e.body, pythonBody))
			run := c.run(0)
			remove()
			c.ended(run, e.exit, e.status)
			c.noClaim()
			c.pulls(e.pulls)
			if e.name == "issue deleted while running" {
				return // nothing is left to look at
			}
			c.labels(issue, e.labels...)
			if e.comment != nil {
				c.said(issue, e.comment...)
			} else if all := c.comments(issue); len(all) > 0 {
				t.Errorf("there is a comment: %q", all)
			}
			if e.exit == 2 && e.comment == nil {
				for name, value := range e.setup.with {
					c.holds(run.Log, name, value)
				}
			}
			if e.status == "pushed" && c.file("main", "pricing/discount.py") != pythonSource {
				t.Error("the base branch does not hold the repair")
			}
			if e.status != "pushed" && c.file("main", "pricing/discount.py") == pythonSource {
				t.Error("the base branch was changed")
			}
			if e.status == "dry-run" && len(c.kept(run.folder, "change.patch"))+len(c.kept(run.folder, "patch.diff"))+len(c.kept(run.folder, "issue.patch")) == 0 && !strings.Contains(strings.Join(c.kept(run.folder, ""), " "), "patch") {
				t.Errorf("no patch was kept: %q", c.kept(run.folder, ""))
			}
		})
	}
}

// TestBusy: a live claim of another run is respected and nothing is touched.
func TestBusy(t *testing.T) {
	var c *scene
	release := make(chan struct{})
	talk := repaired()
	c = open(t, setup{}, before(0, func() { <-release }, talk))
	issue := c.queue(pythonTitle, pythonBody)
	c.until("the first run works", func() bool { return len(c.script.Requests()) > 0 })
	writes := len(c.comments(issue))
	c.dispatch("1")
	second := c.run(1)
	c.ended(second, 0, "busy")
	if n := len(c.comments(issue)); n != writes {
		t.Errorf("the busy run wrote: %d comments, were %d", n, writes)
	}
	c.labels(issue, "ai:running")
	close(release)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
}

// TestSweepOrder: several queued issues in one job, oldest first; the exit code is the
// worst of them and `issues` lists all.
func TestSweepOrder(t *testing.T) {
	c := open(t, setup{queued: "never", with: map[string]string{"max-attempts": "1"}},
		model.Conversation{When: model.Holding("Alpha"), Turns: []model.Turn{model.Bash("ls"), model.Submit("Nothing done.")}},
		model.Conversation{When: model.Holding("Beta"), Turns: repaired().Turns})
	alpha, err := c.repo.Issue("Alpha", "Do something impossible.")
	c.must(err)
	beta, err := c.repo.Issue("Beta: "+pythonTitle, pythonBody)
	c.must(err)
	for _, i := range []int64{alpha, beta} {
		c.must(c.repo.Label(i, "ai:queued"))
	}
	c.run(0)
	c.run(1) // the label's own runs are skipped: this workflow waits for another label
	c.sweep()
	run := c.run(2)
	if run.Conclusion != "failure" || !strings.Contains(run.Log, "exit code 1") {
		t.Errorf("the sweep ended with %s", run.Conclusion)
	}
	c.labels(alpha, "ai:failed")
	c.labels(beta, "ai:ready")
	c.pull()
	c.noClaim()
	c.holds(run.Outputs["issues"], `"issue":1`, `"issue":2`, `"opened"`, `"failed"`)
	requests := c.script.Requests()
	if len(requests) == 0 || !strings.Contains(requests[0].Prompt, "Alpha") {
		t.Error("the oldest issue was not the first")
	}
}
