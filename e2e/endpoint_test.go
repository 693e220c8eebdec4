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

// TestEndpointStumbles: what real servers do now and then costs time, not the run, and
// nothing of a turn that was cut runs.
func TestEndpointStumbles(t *testing.T) {
	never := "touch cut-call-has-run"
	c := open(t, setup{with: map[string]string{"token-timeout": "5s"}}, model.Conversation{Turns: []model.Turn{
		look().Failing(
			model.Status(http.StatusTooManyRequests, "slow down", "Retry-After", "1"),
			model.Status(http.StatusServiceUnavailable, "starting")),
		model.Bash("ls").Failing(model.Reset()),
		{Calls: []model.Call{{Name: "write_file", Raw: `{"path": "x.py", "content": "` + never}}}, // not JSON
		model.Write("pricing/discount.py", pythonSource).Failing(model.Truncated()),
		model.Write("tests/test_discount.py", pythonTest).Failing(model.Stall(time.Minute)),
		model.Submit(summary),
	}})
	issue := c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
	pull := c.pull()
	if c.file(pull.Head.Name, "pricing/discount.py") != pythonSource {
		t.Error("the pull request does not hold the repair")
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
