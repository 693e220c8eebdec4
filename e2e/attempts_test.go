package e2e

import (
	"strings"
	"testing"

	"issuesmith/e2e/model"
)

func TestSecondAttemptRepairs(t *testing.T) {
	c := open(t, setup{}, wrong(), model.Conversation{
		When: model.Holding("test_half_up"), // the verdict names the test that failed
		Turns: []model.Turn{
			model.Read("pricing/discount.py"),
			model.Write("pricing/discount.py", pythonSource),
			model.Submit(summary),
		},
	})
	issue := c.queue(pythonTitle, pythonBody)
	run := c.run(0)
	c.ended(run, 0, "opened")
	c.labels(issue, "ai:ready")
	pull := c.pull()
	if run.Outputs["attempts"] != "2" {
		t.Errorf("attempts: %q", run.Outputs["attempts"])
	}
	// The worktree is kept between attempts: the test is the first attempt's.
	if c.file(pull.Head.Name, "pricing/discount.py") != pythonSource || c.file(pull.Head.Name, "tests/test_discount.py") != pythonTest {
		t.Error("the branch does not hold both attempts' work")
	}
	if strings.Contains(pull.Body, "Rounded the other way") {
		t.Error("the refused attempt's summary stands in the pull request")
	}
}

func TestNeverRepaired(t *testing.T) {
	// Each attempt is wrong in a way of its own, or it would end as "no progress".
	again := func(from, to string) model.Conversation {
		c := wrong()
		c.Turns[1] = model.Edit("pricing/discount.py", from, to)
		return c
	}
	other, third := again("// 100 - 1", "// 100 - 2"), again("// 100 - 2", "// 100 - 3")
	c := open(t, setup{}, wrong(), other, third)
	issue := c.queue(pythonTitle, pythonBody)
	run := c.run(0)
	c.ended(run, 1, "failed")
	c.labels(issue, "ai:failed")
	c.untouched()
	c.said(issue, "gate", "test_whole_cents", "ai:queued")
}
