package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"issuesmith/e2e/model"
)

func TestLabelToPullRequest(t *testing.T) {
	c := open(t, setup{}, repaired())
	base := c.refs()["refs/heads/main"]
	issue := c.queue(pythonTitle, pythonBody)
	c.must(c.repo.Label(issue, "bug"))
	run := c.run(0)

	c.ended(run, 0, "opened")
	c.labels(issue, "ai:ready")
	if all, err := c.repo.Labels(issue); err != nil || !strings.Contains(strings.Join(all, " "), "bug") {
		t.Errorf("another label was lost: %q %v", all, err)
	}
	pull := c.pull()
	if pull.Poster.UserName != "gitea-actions" {
		t.Errorf("the pull request is by %s", pull.Poster.UserName)
	}
	branch := fmt.Sprintf("ai/issue-%d", issue)
	if want := fmt.Sprintf("Fix #%d: %s", issue, pythonTitle); pull.Title != want || pull.Head.Name != branch || pull.Base.Name != "main" || pull.HasMerged {
		t.Errorf("pull request %q from %s to %s, merged %v", pull.Title, pull.Head.Name, pull.Base.Name, pull.HasMerged)
	}
	c.holds(pull.Body, fmt.Sprintf("Fixes #%d", issue), "149.85 cents", summary, "pricing/discount.py", "tests/test_discount.py",
		tests["python"], "custom/scripted", "isolation: namespaces", "a person", pull.Head.Sha[:7])
	refs := c.refs()
	if refs["refs/heads/main"] != base {
		t.Error("the base branch has moved")
	}
	c.noClaim()
	commit, _, err := c.repo.Maintainer.GetSingleCommit(c.repo.Owner, c.repo.Name, refs["refs/heads/"+branch])
	c.must(err)
	if len(commit.Parents) != 1 || commit.Parents[0].SHA != base {
		t.Errorf("the commit's parents are %+v, want %s", commit.Parents, base)
	}
	c.holds(commit.RepoCommit.Message, pull.Title, summary, fmt.Sprintf("Issuesmith-Issue: %d", issue), "Issuesmith-Run: ")
	if commit.RepoCommit.Author.Name != "issuesmith" {
		t.Errorf("the author is %+v", commit.RepoCommit.Author)
	}
	var changed []string
	for _, f := range commit.Files {
		changed = append(changed, f.Filename)
	}
	if len(changed) != 2 || c.file(branch, "pricing/discount.py") != pythonSource || c.file(branch, "tests/test_discount.py") != pythonTest {
		t.Errorf("changed files: %q", changed)
	}
	if comments := c.comments(issue); len(comments) != 1 {
		t.Errorf("%d comments on the issue, want one that is edited in place: %q", len(comments), comments)
	}
	c.said(issue, pull.HTMLURL, "attempt")
	for name, want := range map[string]string{
		"pull-request-number": fmt.Sprint(pull.Index), "pull-request-url": pull.HTMLURL, "branch": branch,
		"commit": refs["refs/heads/"+branch], "attempts": "1", "model-calls": "4",
		"prompt-tokens": "4000", "cached-tokens": "3200", "completion-tokens": "200",
	} {
		if run.Outputs[name] != want {
			t.Errorf("output %s is %q, want %q", name, run.Outputs[name], want)
		}
	}
	if !strings.HasSuffix(run.Outputs["transcript"], ".jsonl") || run.Transcript == "" {
		t.Errorf("transcript output %q, %d bytes kept", run.Outputs["transcript"], len(run.Transcript))
	}
	// The job token starts no workflow: neither its labels nor its push nor its pull request.
	if runs, err := c.repo.Runs(); err != nil || len(runs) > 2 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

func TestTargets(t *testing.T) {
	targets := map[string]struct {
		title, body  string
		source, test [2]string
	}{
		"node": {
			"Only the first blank becomes a dash", "`slug('A b c')` is `a-b c`, it should be `a-b-c`.",
			[2]string{"src/slug.js", nodeSource},
			[2]string{"test/slug.test.js", nodeTest},
		},
		"go": {
			"Last returns one value too many", "`Last([]int{1, 2, 3}, 2)` gives all three values; with n equal to the length it panics.",
			[2]string{"window/window.go", goSource},
			[2]string{"window/window_test.go", goTest},
		},
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			c := open(t, setup{template: name}, model.Conversation{Turns: []model.Turn{
				model.Read(target.source[0], target.test[0]),
				model.Write(target.test[0], target.test[1]),
				model.Bash(tests[name]), // fails: the regression is there
				model.Write(target.source[0], target.source[1]),
				model.Bash(tests[name]),
				model.Submit("Repaired."),
			}})
			issue := c.queue(target.title, target.body)
			run := c.run(0)
			c.ended(run, 0, "opened")
			c.labels(issue, "ai:ready")
			pull := c.pull()
			if c.file(pull.Head.Name, target.source[0]) != target.source[1] || c.file(pull.Head.Name, target.test[0]) != target.test[1] {
				t.Error("the branch does not hold what the model wrote")
			}
		})
	}
}

// TestToolCache has no release before it: the action's checkout has no dist, so the program
// is built by the installed Go into the tool cache, once for a machine.
func TestToolCache(t *testing.T) {
	c := open(t, setup{uses: "issuesmith/source@v1", runner: "runner-1", time: 12 * time.Minute}, repaired(), repaired())
	const building = "issuesmith: building"
	for i := range 2 {
		issue := c.queue(pythonTitle, pythonBody)
		run := c.run(i)
		c.ended(run, 0, "opened")
		c.labels(issue, "ai:ready")
		// The script itself stands in the log as well.
		if built := strings.Contains(strings.ReplaceAll(run.Log, `echo "`+building, ""), building); built != (i == 0) {
			t.Errorf("run %d: built %v", i, built)
		}
	}
}
