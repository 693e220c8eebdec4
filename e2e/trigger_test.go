package e2e

import (
	"strings"
	"testing"
)

func TestDispatch(t *testing.T) {
	c := open(t, setup{}, repaired())
	for range 6 {
		_, err := c.repo.Issue("Another", "Not this one.")
		c.must(err)
	}
	issue, err := c.repo.Issue(pythonTitle, pythonBody) // needs no label
	c.must(err)
	if issue != 7 {
		t.Fatalf("the issue is #%d", issue)
	}
	c.dispatch("7")
	c.ended(c.run(0), 0, "opened")
	c.labels(7, "ai:ready")
	c.pull()
	c.noClaim()
}

func TestDispatchWithACommand(t *testing.T) {
	c := open(t, setup{})
	c.dispatch("7; rm -rf /")
	run := c.run(0)
	c.ended(run, 2, "failed")
	c.holds(run.Log, `issue = "7; rm -rf /"`, "whole number")
	c.untouched()
}

// TestMissingPermission: the message names the permission the job lacks.
func TestMissingPermission(t *testing.T) {
	lacking := map[string]struct {
		exit   int
		labels []string
	}{
		"contents: write":      {3, []string{"ai:queued"}}, // the claim is a push
		"issues: write":        {3, []string{"ai:queued"}},
		"pull-requests: write": {3, []string{"ai:failed"}},
	}
	for permission, want := range lacking {
		name, _, _ := strings.Cut(permission, ":")
		t.Run(name, func(t *testing.T) {
			var rest []string
			for _, p := range usualPermissions {
				if p != permission {
					rest = append(rest, p)
				}
			}
			if permission == "contents: write" {
				rest = append(rest, "contents: read") // for the checkout
			}
			c := open(t, setup{permission: rest}, optional(repaired()))
			issue := c.queue(pythonTitle, pythonBody)
			run := c.run(0)
			c.ended(run, want.exit, "failed")
			c.holds(run.Log, "`"+permission+"`")
			c.labels(issue, want.labels...)
			c.pulls(0)
			c.noClaim()
		})
	}
}

// TestOrganizationLabels: labels the organization has are used, none is made beside them.
func TestOrganizationLabels(t *testing.T) {
	c := open(t, setup{owner: world.organization}, repaired())
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	c.must(c.repo.LabelFrom(issue, world.organization, "ai:queued"))
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
	own, err := c.repo.OwnLabels()
	c.must(err)
	if len(own) > 0 {
		t.Errorf("labels were made on the repository: %q", own)
	}
}

func TestLabelsAreMade(t *testing.T) {
	c := open(t, setup{}, repaired())
	issue := c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
	own, err := c.repo.OwnLabels()
	c.must(err)
	for _, name := range []string{"ai:running", "ai:ready", "ai:failed"} {
		if own[name] == "" {
			t.Errorf("label %s was not made with a description: %q", name, own)
		}
	}
}

// TestSchedule: the action sweeps when a schedule starts it.
func TestSchedule(t *testing.T) {
	c := open(t, setup{cron: "@every 1s"}, repaired())
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	c.label(issue)
	c.until("the schedule starts a run", func() bool {
		_, err := world.Admin.RunCronTasks("start_schedule_tasks")
		c.must(err)
		runs, err := c.repo.Runs()
		c.must(err)
		return len(runs) > 0
	})
	_, err = c.repo.Maintainer.DisableRepoActionWorkflow(c.repo.Owner, c.repo.Name, "issuesmith.yml")
	c.must(err)
	run := c.run(0)
	c.ended(run, 0, "opened")
	c.labels(issue, "ai:ready")
	c.noClaim()
	c.holds(run.Outputs["issues"], `"opened"`)
}
