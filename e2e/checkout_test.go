package e2e

import (
	"strings"
	"testing"

	"issuesmith/e2e/model"
)

// TestForeignOutput: what a command prints at log level debug sets no variable and no
// path of later steps.
func TestForeignOutput(t *testing.T) {
	loud := `printf '::set-env name=PWNED::yes\n::add-path::/pwned\n::set-output name=x::y\n##[set-env name=PWNED]yes\n::stop-commands::e\n::error::planted\n'; echo "PWNED=yes" >> "${GITHUB_ENV:-/dev/null}"; echo /pwned >> "${GITHUB_PATH:-/dev/null}"`
	talk := first(model.Bash(loud), repaired())
	talk.Turns[0].Text = "::set-env name=PWNED::yes\n::add-path::/pwned"
	c := open(t, setup{
		with: map[string]string{
			"log-level":      "debug",
			"setup-commands": loud,
			"test-commands":  loud + "\n" + tests["python"],
		},
		after: `echo "later: [${PWNED:-clean}] [$PATH]"`,
	}, talk)
	c.queue("::set-env name=PWNED::yes", pythonBody+"\n\n::add-path::/pwned\n")
	run := c.run(0)
	c.ended(run, 0, "opened")
	later := ""
	for line := range strings.Lines(run.Log) {
		if strings.Contains(line, "later: [") && !strings.Contains(line, "${PWNED") {
			later = line
		}
	}
	if !strings.Contains(later, "later: [clean]") || strings.Contains(later, "/pwned") {
		t.Errorf("output of a command reached a later step: %q", later)
	}
}

// TestDirtyCheckout: files that lie in the checkout untracked, changed or built are
// neither seen by the agent nor part of the change, and stay.
func TestDirtyCheckout(t *testing.T) {
	talk := first(model.Bash("ls; cat untracked.txt build/out.bin README.md || true"), repaired())
	c := open(t, setup{
		before: "echo planted-untracked > untracked.txt; mkdir -p build; echo planted-built > build/out.bin; echo planted-changed >> README.md",
		after:  "cat untracked.txt build/out.bin; tail -n 1 README.md; git status --porcelain",
	}, talk)
	issue := c.queue(pythonTitle, pythonBody)
	run := c.run(0)
	c.ended(run, 0, "opened")
	c.labels(issue, "ai:ready")
	pull := c.pull()
	if files, _, err := c.repo.Maintainer.ListPullRequestFiles(c.repo.Owner, c.repo.Name, pull.Index, filesPage); err != nil || len(files) != 2 {
		t.Errorf("%d changed files, %v", len(files), err)
	}
	for _, planted := range []string{"planted-untracked", "planted-built", "planted-changed"} {
		if !strings.Contains(run.Log, planted) {
			t.Errorf("%s is gone from the checkout", planted)
		}
		for _, r := range c.script.Requests() {
			if strings.Contains(string(r.Body), planted) {
				t.Errorf("the model saw %s", planted)
			}
		}
	}
}

// TestPullHeadCheckedOut: a base that is no branch of the repository must be named, and
// commits the base lacks are refused.
func TestPullHeadCheckedOut(t *testing.T) {
	c := open(t, setup{ref: "refs/pull/1/head"})
	c.person("main", "feature", false)
	pull, _, err := c.repo.Maintainer.CreatePullRequest(c.repo.Owner, c.repo.Name, newPull("feature"))
	c.must(err)
	if pull.Index != 1 {
		t.Fatalf("the pull request is #%d", pull.Index)
	}
	issue := c.queue(pythonTitle, pythonBody)
	run := c.run(0)
	c.ended(run, 2, "failed")
	c.holds(run.Log, "base-branch")
	c.labels(issue, "ai:queued")
	c.pulls(1)
	c.noClaim()
}

// TestPersistedCredentials: the token that checkout leaves in .git/config is out of
// the worktree, and so are the event file and the runner's variables.
func TestPersistedCredentials(t *testing.T) {
	hunt := first(model.Bash(`env; ls -a; cat .git/config; git config -l; cat "$GITHUB_EVENT_PATH"; echo "${ACTIONS_RUNTIME_TOKEN}${INPUT_TOKEN}${INPUT_MODEL_API_KEY}"; echo "$TEST_PASSWORD" | base64`), repaired())
	c := open(t, setup{
		persist: true,
		before: `git config --local http.example.extraheader "` + halved(gitCanary) + `"
printf '{"planted": "%s", %s' "` + halved(eventCanary) + `" "$(tail -c +2 "$GITHUB_EVENT_PATH")" > "$RUNNER_TEMP/event.json"
cat "$RUNNER_TEMP/event.json" > "$GITHUB_EVENT_PATH"
grep -c event-canary "$GITHUB_EVENT_PATH"`,
	}, hunt)
	issue := c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
}

// TestWithoutGit: nothing starts git, so it need not be there.
func TestWithoutGit(t *testing.T) {
	talk := first(model.Bash("if command -v git; then echo git-is-there; else echo git-is-not-there; fi"), repaired())
	c := open(t, setup{
		before: `bin="$RUNNER_TEMP/bin"
mkdir "$bin"
IFS=:
for dir in $PATH; do
  for f in "$dir"/*; do
    name=${f##*/}
    case "$name" in git|git-*|gitk) ;; *) [ -e "$bin/$name" ] || ln -s "$f" "$bin/$name" ;; esac
  done
done
echo "PATH=$bin" >> "$GITHUB_ENV"`,
	}, talk)
	issue := c.queue(pythonTitle, pythonBody)
	c.ended(c.run(0), 0, "opened")
	c.labels(issue, "ai:ready")
	seen := ""
	for _, r := range c.script.Requests() {
		seen += string(r.Body)
	}
	if !strings.Contains(seen, "git-is-not-there\\n") && !strings.Contains(seen, "git-is-not-there\"") || strings.Contains(seen, "/git\\n") {
		t.Error("git was on the PATH after all")
	}
}
