package e2e

import (
	"fmt"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// What a scene must look like in the end.

// ended checks how a run ended: conclusion, exit code (0 where the step succeeded), status.
func (c *scene) ended(r result, exit int, status string) {
	c.Helper()
	conclusion := "success"
	if exit != 0 {
		conclusion = "failure"
		if want := fmt.Sprintf("exit code %d", exit); !strings.Contains(r.Log, want) {
			c.Errorf("run %d: the log does not say %q", r.ID, want)
		}
	}
	if r.Conclusion != conclusion {
		c.Errorf("run %d ended with %s, want %s", r.ID, r.Conclusion, conclusion)
	}
	if r.Outputs["status"] != status {
		c.Errorf("run %d: output status is %q, want %q", r.ID, r.Outputs["status"], status)
	}
}

// labels checks the automation labels an issue bears: want is all of them.
func (c *scene) labels(issue int64, want ...string) {
	c.Helper()
	all, err := c.repo.Labels(issue)
	c.must(err)
	var got []string
	for _, l := range all {
		if strings.HasPrefix(l, "ai:") {
			got = append(got, l)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.Errorf("#%d bears %q, want %q", issue, got, want)
	}
}

// pull checks that there is exactly one pull request ever and returns it.
func (c *scene) pull() *gitea.PullRequest {
	c.Helper()
	all := c.pulls(1)
	return all[0]
}

func (c *scene) pulls(n int) []*gitea.PullRequest {
	c.Helper()
	all, err := c.repo.Pulls()
	c.must(err)
	if len(all) != n {
		var titles []string
		for _, p := range all {
			titles = append(titles, fmt.Sprintf("#%d %s (%s)", p.Index, p.Title, p.Head.Name))
		}
		c.Fatalf("%d pull requests, want %d: %q", len(all), n, titles)
	}
	return all
}

// refs lists all refs.
func (c *scene) refs() map[string]string {
	c.Helper()
	refs, err := c.repo.Refs(c.ctx)
	c.must(err)
	return refs
}

// untouched checks that nothing was published and no claim is left.
func (c *scene) untouched() {
	c.Helper()
	c.pulls(0)
	c.noClaim()
	for name := range c.refs() {
		if strings.HasPrefix(name, "refs/heads/ai/") {
			c.Errorf("branch %s was made", name)
		}
	}
}

func (c *scene) noClaim() {
	c.Helper()
	for name := range c.refs() {
		if strings.HasPrefix(name, "refs/ai/") {
			c.Errorf("%s is left", name)
		}
	}
}

// comments returns the bodies of an issue's comments.
func (c *scene) comments(issue int64) []string {
	c.Helper()
	all, err := c.repo.Comments(issue)
	c.must(err)
	var out []string
	for _, m := range all {
		out = append(out, m.Body)
	}
	return out
}

// said checks that the last comment on an issue holds the texts, case aside.
func (c *scene) said(issue int64, texts ...string) {
	c.Helper()
	all := c.comments(issue)
	if len(all) == 0 {
		c.Errorf("#%d has no comment", issue)
		return
	}
	c.holds(all[len(all)-1], texts...)
}

// holds checks that a text holds others, case aside.
func (c *scene) holds(text string, wanted ...string) {
	c.Helper()
	for _, w := range wanted {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
			c.Errorf("%q does not stand in:\n%s", w, text)
		}
	}
}

// file reads a file of a branch.
func (c *scene) file(branch, path string) string {
	c.Helper()
	data, _, err := c.repo.Maintainer.GetFile(c.repo.Owner, c.repo.Name, branch, path)
	c.must(err)
	return string(data)
}
