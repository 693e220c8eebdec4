package e2e

import (
	"net/http"
	"testing"
	"time"

	"issuesmith/e2e/model"
	"issuesmith/e2e/stand"
)

// TestEndpointDown: nothing was spent on repair, and the comment says what was wrong.
func TestEndpointDown(t *testing.T) {
	down := map[string]struct {
		with map[string]string
		fail model.Failure
		says string
	}{
		"nobody listens":   {with: map[string]string{"model-base-url": "http://127.0.0.1:9/v1", "run-timeout": "5m"}, says: "127.0.0.1:9"},
		"wrong key":        {with: map[string]string{"model-api-key": "another-key-that-is-wrong"}, says: "key"},
		"no such model":    {fail: model.Status(http.StatusNotFound, "the model scripted does not exist"), says: "the model scripted does not exist"},
		"breaks off":       {fail: model.Reset(), says: "broke off"},
		"a login page":     {fail: model.Page(), says: "web page"},
		"not a request it": {fail: model.Status(http.StatusBadRequest, "unsupported parameter"), says: "unsupported parameter"},
	}
	for name, d := range down {
		t.Run(name, func(t *testing.T) {
			var script []model.Conversation
			if d.fail != nil {
				script = append(script, model.Conversation{Cut: true, Turns: []model.Turn{
					model.Submit("").Failing(d.fail, d.fail, d.fail, d.fail, d.fail, d.fail, d.fail, d.fail, d.fail, d.fail),
				}})
			}
			c := open(t, setup{with: d.with}, script...)
			issue := c.queue(pythonTitle, pythonBody)
			run := c.run(0)
			c.ended(run, 3, "failed")
			c.labels(issue, "ai:failed")
			c.untouched()
			c.said(issue, "infrastructure", d.says, "ai:queued")
		})
	}
}

// TestEndpointStumbles: what real servers do now and then costs time, not the run.
func TestEndpointStumbles(t *testing.T) {
	c := open(t, setup{}, model.Conversation{Turns: []model.Turn{
		look().Failing(
			model.Status(http.StatusTooManyRequests, "slow down", "Retry-After", "1"),
			model.Status(http.StatusServiceUnavailable, "starting")),
		{Calls: []model.Call{{Name: "write_file", Raw: `{"path": "x.py", "content": "not JSON`}}},
		model.Write("pricing/discount.py", pythonSource),
		model.Write("tests/test_discount.py", pythonTest).Failing(model.Status(http.StatusBadGateway, "moving")),
		model.Submit(summary),
	}})
	issue := c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
	if pull := c.pull(); c.file(pull.Head.Name, "pricing/discount.py") != pythonSource {
		t.Error("the pull request does not hold the repair")
	}
}

// TestCutTurn: a turn that breaks off after work was done ends the attempt like a limit.
// Nothing of the turn runs; what is there is judged.
func TestCutTurn(t *testing.T) {
	cuts := map[string]model.Failure{
		"reset": model.Reset(), "truncated": model.Truncated(), "length": model.Length(), "stalled": model.Stall(time.Minute),
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			c := open(t, setup{with: map[string]string{"token-timeout": "5s"}}, model.Conversation{Cut: true, Turns: []model.Turn{
				look(),
				model.Write("pricing/discount.py", pythonSource),
				model.Write("tests/test_discount.py", pythonTest),
				model.Write("README.md", "Never written, since this turn is cut.\n").Failing(cut, cut, cut, cut, cut, cut),
			}})
			issue := c.queue(pythonTitle, pythonBody)
			c.ended(c.run(0), 0, "opened")
			c.labels(issue, "ai:ready")
			pull := c.pull()
			if c.file(pull.Head.Name, "pricing/discount.py") != pythonSource {
				t.Error("the pull request does not hold the repair")
			}
			if c.file(pull.Head.Name, "README.md") != c.file("main", "README.md") {
				t.Error("a call of the cut turn ran")
			}
		})
	}
}

// TestForgeStumbles: reads are tried again, and a lost answer to a write doubles nothing.
func TestForgeStumbles(t *testing.T) {
	c := open(t, setup{}, repaired())
	unavailable := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	c.hook(stand.Hook{Times: 2, Match: stand.API("GET", "/issues/1"), Answer: unavailable})
	issue := c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
	c.pull()
	if n := len(c.comments(issue)); n != 1 {
		t.Errorf("%d comments", n)
	}
}
