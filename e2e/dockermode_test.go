package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"issuesmith/e2e/model"
	"issuesmith/e2e/stand"
)

const (
	phpTitle = "The total ignores how many pieces there are"
	phpBody  = "Three pencils of 150 cents make a total of 150. `Basket::total()` must count every piece: 450."
	phpTest  = "$basket->add('rubber', 80, 3);\nsame(390, $basket->total(), 'three pieces more');\n"
)

// socketProbe says "WHO: connected" where the daemon's socket lets WHO in; the words are not
// in the command itself, which is in the log as well.
const socketProbe = `WHO=agent php -r 'echo getenv("WHO"), ": ", @stream_socket_client("unix:///var/run/docker.sock") ? "connected" : "no way in", PHP_EOL;'`

// dockerStand is an instance whose jobs run in containers, with the released action.
func (c *containers) dockerStand() (*stand.Stand, *stand.Person) {
	c.Helper()
	s, err := stand.Start(c.ctx, stand.Options{Docker: c.docker})
	c.must(err)
	c.Cleanup(func() {
		if c.Failed() {
			c.Log(s.Logs())
		}
		if err := s.Stop(); err != nil {
			c.Error(err)
		}
	})
	owner, err := s.NewPerson("maintainer")
	c.must(err)
	c.must(s.Checkout(c.ctx))
	c.must(s.Organization("issuesmith"))
	c.must(s.Action(c.ctx, "issuesmith", "issuesmith", world.action, "v1"))
	return s, owner
}

// A job is one way to run jobs in containers.
type job struct {
	runner stand.DockerRunner
	host   string // what the project's tests call the database's machine
	level  string // of isolation
}

// jobs are the image as it is, where commands reach the database by its address, and as
// root, where its name is written into the container's hosts file. There the daemon's
// socket is in the container too, as the runner puts it there when it is not told off.
func (c *containers) jobs() []job {
	return []job{
		{stand.DockerRunner{Label: "docker", Image: c.image}, "${{ steps.db.outputs.address }}", "rules only"},
		{stand.DockerRunner{Label: "docker-root", Image: c.image, Options: "--user root", Socket: true}, "db", "dedicated user"},
	}
}

// mode is the main job as a runner in Docker mode does it: the job in a container of the
// Dockerfile's image, the project's database in a service container. Every test run of the
// project writes rows and reads them back.
func (c *containers) mode(j job) {
	name := j.runner.Label
	c.must(c.stand.DockerRunner(c.ctx, j.runner))
	script, err := world.model.Script(name, "key-"+stand.Random(), model.Conversation{Turns: []model.Turn{
		model.Read("src/Basket.php", "tests/run.php"),
		model.Bash(socketProbe),
		model.Edit("tests/run.php", "'one piece');\n", "'one piece');\n"+phpTest),
		model.Bash("php tests/run.php"), // fails: the regression is there
		model.Edit("src/Basket.php", "SUM(cents)", "SUM(cents * pieces)"),
		model.Bash("php tests/run.php"),
		model.Submit("The total counts every piece."),
	}})
	c.must(err)
	dir, err := stand.CopyTemplate("php", c.TempDir())
	c.must(err)
	workflows := filepath.Join(dir, ".gitea", "workflows")
	c.must(os.MkdirAll(workflows, 0o700))
	c.must(os.WriteFile(filepath.Join(workflows, "issuesmith.yml"), []byte(c.workflow(j, script)), 0o600))
	repo, err := c.stand.NewRepo(c.ctx, c.owner, c.owner.Name, name, dir, true)
	c.must(err)
	c.must(repo.Secret("MODEL_KEY", script.Key))
	c.must(repo.Secret("TEST_PASSWORD", "pw-"+stand.Random()))
	issue, err := repo.Issue(phpTitle, phpBody)
	c.must(err)
	c.must(repo.Label(issue, "ai:queued"))
	run, err := repo.WaitRun(c.ctx, 0)
	c.must(err)
	c.published(repo, issue, run)
	c.holds(run.Log, "isolation: "+j.level)
	for _, problem := range script.Problems() {
		c.Error("model: " + problem)
	}
	c.socket(j, script, run)
	if c.Failed() {
		c.Log(repo.Story())
	}
}

// socket checks that the daemon's socket let a step of the job in, where it is there at all,
// but no command of the agent.
func (c *containers) socket(j job, script *model.Script, run *stand.Run) {
	c.Helper()
	if j.runner.Socket != strings.Contains(run.Log, "step: connected") {
		c.Errorf("the daemon's socket in the job: want %v", j.runner.Socket)
	}
	requests := script.Requests()
	if len(requests) < 3 {
		c.Errorf("the model was asked %d times", len(requests))
		return
	}
	// The answer to the probe, which is part of what the model is asked next.
	if body := string(requests[2].Body); !strings.Contains(body, "agent: no way in") || strings.Contains(body, "agent: connected") {
		c.Errorf("the daemon's socket lets commands in:\n%s", body)
	}
}

// workflow fills the template in.
func (c *containers) workflow(j job, script *model.Script) string {
	c.Helper()
	forwarded, err := c.docker.Forward(strings.TrimPrefix(world.model.URL, "http://"))
	c.must(err)
	tmpl, err := template.New("docker.yml").Delims("[[", "]]").ParseFiles("testdata/workflows/docker.yml")
	c.must(err)
	var out strings.Builder
	c.must(tmpl.Execute(&out, map[string]any{
		"RunsOn": j.runner.Label, "Database": c.database, "Probe": strings.Replace(socketProbe, "agent", "step", 1),
		"With": map[string]string{
			"model":          "custom/scripted",
			"model-base-url": strings.Replace(script.Base, world.model.URL, "http://"+forwarded, 1),
			"model-api-key":  "${{ secrets.MODEL_KEY }}",
			"context-limit":  "100000",
			"sandbox":        "strict",
			"network":        "db:3306",
			"test-commands":  "php tests/run.php",
			"test-env":       `"DB_HOST=` + j.host + `\nDB_PORT=3306\nDB_NAME=shop_test\nDB_USER=shop\nDB_PASSWORD=${{ secrets.TEST_PASSWORD }}"`,
		},
	}))
	return out.String()
}

// published checks that the issue became a pull request.
func (c *containers) published(repo *stand.Repo, issue int64, run *stand.Run) {
	c.Helper()
	if run.Conclusion != "success" || !strings.Contains(run.Log, `"status": "opened"`) {
		c.Errorf("the run ended with %s", run.Conclusion)
	}
	if labels, err := repo.Labels(issue); err != nil || !slices.Contains(labels, "ai:ready") {
		c.Errorf("the issue bears %q, %v", labels, err)
	}
	pulls, err := repo.Pulls()
	c.must(err)
	if len(pulls) != 1 {
		c.Errorf("%d pull requests", len(pulls))
		return
	}
	pull := pulls[0]
	if pull.Poster.UserName != "gitea-actions" || pull.Title != fmt.Sprintf("Fix #%d: %s", issue, phpTitle) || pull.HasMerged {
		c.Errorf("pull request %q by %s", pull.Title, pull.Poster.UserName)
	}
	c.holds(pull.Body, fmt.Sprintf("Fixes #%d", issue), "php tests/run.php", "a person")
	source, _, err := repo.Maintainer.GetFile(repo.Owner, repo.Name, pull.Head.Name, "src/Basket.php")
	if err != nil || !strings.Contains(string(source), "cents * pieces") {
		c.Errorf("the branch does not hold the repair: %v\n%s", err, source)
	}
}
