package e2e

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"issuesmith/e2e/stand"
)

// searchCanaries looks for the secrets of the scene, in every form they could take, in
// everything that left the job: model requests, logs, transcripts, patches, comments,
// pull requests, commits.
func (c *scene) searchCanaries() {
	c.Helper()
	secrets := map[string]string{"the model key": c.key, "the test password": c.password, "the checkout's .git/config": gitCanary, "the event file": eventCanary}
	folder := filepath.Join(world.Keep, c.repo.FullName())
	for _, f := range c.kept(folder, "runtime-token") {
		if data, err := os.ReadFile(f); err == nil && len(data) > 0 {
			secrets["the runtime token of "+filepath.Base(filepath.Dir(f))] = string(data)
		}
	}
	for _, token := range world.Proxy.Tokens(c.repo.FullName()) {
		if token != world.maintainer.Token && token != world.Admin.Token && token != world.reviewer.Token {
			secrets["a job token "+token[:4]+"…"] = token
		}
	}
	for where, text := range c.everything() {
		for what, secret := range secrets {
			for form, value := range forms(secret) {
				if strings.Contains(text, value) {
					c.Errorf("%s stands in %s (%s)", what, where, form)
				}
			}
		}
	}
}

func forms(secret string) map[string]string {
	return map[string]string{
		"as it is":    secret,
		"URL-encoded": url.QueryEscape(secret),
		"base64":      base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64+1":    base64.StdEncoding.EncodeToString([]byte("x" + secret))[4 : 4+len(secret)/3*4-4],
	}
}

// everything gathers by name what left the jobs of the scene's repository.
func (c *scene) everything() map[string]string {
	c.Helper()
	all := map[string]string{}
	for i, r := range c.script.Requests() {
		all["model request "+itoa(i)] = string(r.Body)
	}
	folder := filepath.Join(world.Keep, c.repo.FullName())
	for _, f := range c.kept(folder, "") {
		if filepath.Base(f) == "runtime-token" {
			continue
		}
		data, err := os.ReadFile(f)
		c.must(err)
		all[strings.TrimPrefix(f, world.Keep)] = string(data)
	}
	all["the job logs"] = c.repo.Story()
	runs, err := c.repo.Pulls()
	c.must(err)
	for _, p := range runs {
		all["pull request "+itoa(int(p.Index))] = p.Title + "\n" + p.Body + "\n" + strings.Join(c.comments(p.Index), "\n")
	}
	issues, _, err := c.repo.Maintainer.ListRepoIssues(c.repo.Owner, c.repo.Name, allIssues)
	c.must(err)
	for _, i := range issues {
		all["issue "+itoa(int(i.Index))] = strings.Join(c.comments(i.Index), "\n")
	}
	bare := c.TempDir()
	if clone, err := c.repo.Clone(c.ctx, bare, "--mirror"); err == nil {
		log, err := stand.Git(c.ctx, clone, "log", "--all", "-p", "--format=raw")
		c.must(err)
		all["the commits"] = log
	} else {
		c.Error(err)
	}
	return all
}

func itoa(n int) string { return strconv.Itoa(n) }

var allIssues = gitea.ListIssueOption{State: gitea.StateAll, Type: gitea.IssueTypeIssue, ListOptions: gitea.ListOptions{PageSize: 50}}

// Planted where only checkout and the runner write. A job puts them together from two
// halves, so that they stand neither in its workflow nor in its log.
const (
	gitCanary   = "git-canary-5f0c" + "2a9be771"
	eventCanary = "event-canary-93d1" + "e6f40b28"
)

func halved(canary string) string {
	return canary[:len(canary)-8] + `""` + canary[len(canary)-8:]
}

var filesPage = gitea.ListPullRequestFilesOptions{}

func newPull(head string) gitea.CreatePullRequestOption {
	return gitea.CreatePullRequestOption{Head: head, Base: "main", Title: "By hand"}
}
