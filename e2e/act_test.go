package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"issuesmith/e2e/parts"
	"issuesmith/e2e/stand"
)

// TestAct is the README's local run: nektos/act works on a clone with a saved event; the
// instance's address, the repository and a person's token are given as inputs, since act
// takes them for GitHub's.
func TestAct(t *testing.T) {
	built, err := parts.Build(t.Context(), parts.Act)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, setup{
		queued: "never", // the instance's own runner stays out of it
		with: map[string]string{
			"server-url": world.URL,
			"repository": world.maintainer.Name + "/" + sceneName(t),
			"token":      "${{ secrets.PERSONAL }}",
		},
	}, repaired())
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	c.must(c.repo.Label(issue, "ai:queued"))

	home := filepath.Join(world.Dir, "act-home")
	c.must(os.MkdirAll(home, 0o700))
	c.must(parts.CopyTree(filepath.Dir(built.Bin), filepath.Join(home, "bin")))
	clone, err := c.repo.Clone(c.ctx, home)
	c.must(err)
	checkout, err := stand.CopyTemplate("checkout", home)
	c.must(err)
	c.write(filepath.Join(clone, ".gitea/workflows/issuesmith.yml"), strings.ReplaceAll(c.workflow(false), "'never'", "'ai:queued'"))
	_, err = stand.Git(c.ctx, clone, "commit", "-q", "-a", "-m", "For act")
	c.must(err)
	c.must(c.repo.Push(c.ctx, clone, "HEAD:refs/heads/main"))
	c.write(filepath.Join(home, "event.json"), labelEvent(t, c, issue))
	c.must(world.Give(home))

	cmd := world.Command(clone, home, []string{"E2E_KEEP=" + world.Keep}, filepath.Join(home, "bin", "act"),
		"issues", "-e", filepath.Join(home, "event.json"), "-W", ".gitea/workflows/issuesmith.yml",
		"-P", "ubuntu-latest=-self-hosted",
		"--local-repository", "issuesmith/issuesmith@v1="+world.action,
		"--local-repository", "actions/checkout@v4="+checkout,
		"-s", "PERSONAL="+world.maintainer.Token, "-s", "MODEL_KEY="+c.key, "-s", "TEST_PASSWORD="+c.password)
	done := time.AfterFunc(sceneTime-10*time.Second, func() { _ = cmd.Process.Kill() })
	defer done.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("act: %v\n%s", err, out)
	}
	c.labels(issue, "ai:ready")
	c.noClaim()
	pull := c.pull()
	if pull.Poster.UserName != world.maintainer.Name || c.file(pull.Head.Name, "pricing/discount.py") != pythonSource {
		t.Errorf("the pull request is by %s\n%s", pull.Poster.UserName, out)
	}
	for _, secret := range []string{c.key, c.password, world.maintainer.Token} {
		if strings.Contains(string(out), secret) {
			t.Error("a secret stands in act's log")
		}
	}
}

// labelEvent is the payload of a label put on the issue, as Gitea sends it.
func labelEvent(t *testing.T, c *scene, issue int64) string {
	t.Helper()
	i, _, err := c.repo.Maintainer.GetIssue(c.repo.Owner, c.repo.Name, issue)
	c.must(err)
	r, _, err := c.repo.Maintainer.GetRepo(c.repo.Owner, c.repo.Name)
	c.must(err)
	data, err := json.Marshal(map[string]any{
		"action": "label_updated", "number": issue, "issue": i, "repository": r, "sender": i.Poster,
		"changes": map[string]any{"added_labels": i.Labels},
	})
	c.must(err)
	return string(data)
}
