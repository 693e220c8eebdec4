package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"issuesmith/e2e/model"
	"issuesmith/e2e/stand"
)

// documented is an attempt that adds a sentence to what is repaired already.
func documented(holding string) model.Conversation {
	return model.Conversation{
		When: model.Holding(holding),
		Turns: []model.Turn{
			model.Read("pricing/discount.py"),
			model.Write("pricing/discount.py", pythonDocumented),
			model.Submit("Says what rounding half up means."),
		},
	}
}

var pythonDocumented = strings.Replace(pythonSource, "rounded half up.", "rounded half up (half a cent counts as one).", 1)

// published runs the issue once to its pull request.
func (c *scene) published() (issue int64, pull *gitea.PullRequest) {
	c.Helper()
	issue = c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	return issue, c.pull()
}

// person makes a commit of a person's in a new clone and pushes it to a branch.
func (c *scene) person(from, to string, amend bool) (head string) {
	c.Helper()
	dir, err := c.repo.Clone(c.ctx, c.TempDir(), "--branch", from)
	c.must(err)
	c.write(filepath.Join(dir, "NOTES.md"), "A person's note.\n")
	commit := []string{"commit", "-q", "-m", "A person's commit"}
	if amend {
		commit = []string{"commit", "-q", "--amend", "--no-edit"}
	}
	for _, args := range [][]string{{"add", "-A"}, commit} {
		_, err = stand.Git(c.ctx, dir, args...)
		c.must(err)
	}
	c.must(c.repo.Push(c.ctx, dir, "--force", "HEAD:refs/heads/"+to))
	head, err = stand.Git(c.ctx, dir, "rev-parse", "HEAD")
	c.must(err)
	return head
}

// continued checks that the pull request is the only one, and grew by one commit on
// top of head.
func (c *scene) continued(r result, issue int64, head string) {
	c.Helper()
	c.ended(r, 0, "updated")
	c.labels(issue, "ai:ready")
	c.noClaim()
	pull := c.pull()
	commit, _, err := c.repo.Maintainer.GetSingleCommit(c.repo.Owner, c.repo.Name, pull.Head.Sha)
	c.must(err)
	if len(commit.Parents) != 1 || commit.Parents[0].SHA != head {
		c.Errorf("the new commit's parents are %+v, want %s", commit.Parents, head)
	}
	if c.file(pull.Head.Name, "pricing/discount.py") != pythonDocumented {
		c.Error("the new commit does not hold the new work")
	}
}

func TestAgainWithReview(t *testing.T) {
	const wish = "Please say what half up means."
	c := open(t, setup{}, repaired(), documented(wish))
	issue, pull := c.published()
	_, _, err := c.repo.Maintainer.CreatePullReview(c.repo.Owner, c.repo.Name, pull.Index, gitea.CreatePullReviewOptions{
		State: gitea.ReviewStateComment, Body: "One thing:", CommitID: pull.Head.Sha,
		Comments: []gitea.CreatePullReviewComment{{Path: "pricing/discount.py", Body: wish, NewLineNum: 5}},
	})
	c.must(err)
	c.nextSecond()
	c.label(issue)
	c.continued(c.run(1), issue, pull.Head.Sha)
}

func TestAgainAfterAPersonsCommit(t *testing.T) {
	c := open(t, setup{}, repaired(), documented(""))
	issue, pull := c.published()
	head := c.person(pull.Head.Name, pull.Head.Name, false)
	c.label(issue)
	c.continued(c.run(1), issue, head)
	if c.file(pull.Head.Name, "NOTES.md") != "A person's note.\n" {
		t.Error("the person's commit is lost")
	}
}

func TestAgainAfterAnAmend(t *testing.T) {
	c := open(t, setup{}, repaired(), documented(""))
	issue, pull := c.published()
	head := c.person(pull.Head.Name, pull.Head.Name, true)
	c.label(issue)
	c.continued(c.run(1), issue, head)
	if c.file(pull.Head.Name, "NOTES.md") != "A person's note.\n" {
		t.Error("the person's amendment is lost")
	}
}

// TestAgainWithAPushMeanwhile: somebody pushes to the branch while the run works; their
// commit stays and ours goes to a branch of its own that names the first.
func TestAgainWithAPushMeanwhile(t *testing.T) {
	var c *scene
	var pull *gitea.PullRequest
	var head string
	second := before(1, func() { head = c.person(pull.Head.Name, pull.Head.Name, false) }, documented(""))
	c = open(t, setup{}, repaired(), second)
	issue, pull := c.published()
	c.label(issue)
	run := c.run(1)
	c.ended(run, 0, "opened")
	c.labels(issue, "ai:ready")
	c.noClaim()
	all := c.pulls(2)
	if got := c.refs()["refs/heads/"+pull.Head.Name]; got != head || head == "" {
		t.Errorf("the branch is at %s, want the person's %s", got, head)
	}
	if want := fmt.Sprintf("ai/issue-%d-2", issue); all[1].Head.Name != want {
		t.Errorf("the second branch is %s, want %s", all[1].Head.Name, want)
	}
	c.holds(all[1].Body, pull.HTMLURL+".")
}

func TestAgainAfterClosed(t *testing.T) {
	c := open(t, setup{}, repaired(), repaired())
	issue, pull := c.published()
	c.must(c.repo.SetOpen(pull.Index, false))
	c.label(issue)
	c.ended(c.run(1), 0, "opened")
	c.labels(issue, "ai:ready")
	all := c.pulls(2)
	if want := fmt.Sprintf("ai/issue-%d-2", issue); all[1].Head.Name != want {
		t.Errorf("the second branch is %s, want %s", all[1].Head.Name, want)
	}
	if c.refs()["refs/heads/"+pull.Head.Name] != pull.Head.Sha {
		t.Error("the closed pull request's branch has moved")
	}
}

func TestSomebodyElsesBranch(t *testing.T) {
	c := open(t, setup{}, repaired())
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	branch := fmt.Sprintf("ai/issue-%d", issue)
	head := c.person("main", branch, false)
	c.label(issue)
	c.ended(c.run(0), 0, "opened")
	if c.refs()["refs/heads/"+branch] != head {
		t.Error("a person's branch was moved")
	}
	if want := fmt.Sprintf("ai/issue-%d-2", issue); c.pull().Head.Name != want {
		t.Errorf("the branch is %s, want %s", c.pull().Head.Name, want)
	}
}

// TestBaseMovesMeanwhile: the pull request is opened on the checked-out base and says so.
func TestBaseMovesMeanwhile(t *testing.T) {
	var c *scene
	c = open(t, setup{}, before(1, func() { c.person("main", "main", false) }, repaired()))
	base := c.refs()["refs/heads/main"]
	issue := c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
	pull := c.pull()
	commit, _, err := c.repo.Maintainer.GetSingleCommit(c.repo.Owner, c.repo.Name, pull.Head.Sha)
	c.must(err)
	if len(commit.Parents) != 1 || commit.Parents[0].SHA != base {
		t.Errorf("the commit's parents are %+v, want the checked-out %s", commit.Parents, base)
	}
	c.holds(pull.Body, base[:7], "moved")
}
