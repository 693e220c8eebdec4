package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"text/template"
	"time"

	"issuesmith/e2e/model"
	"issuesmith/e2e/stand"
)

// A setup says what is special about a test's repository; zero values are the usual.
type setup struct {
	template   string            // folder of testdata; "python"
	owner      string            // organization; else the maintainer
	queued     string            // label that starts the work; "ai:queued"
	permission []string          // of the job; what the example workflow has
	with       map[string]string // inputs beside the usual; an empty value takes one away
	files      map[string]string // files of the repository beside the template's
	persist    bool              // leave the job's token in .git/config
	ref        string            // what checkout takes; the event's own
	before     string            // shell lines between checkout and the action
	after      string            // shell lines at the end
	uses       string            // "issuesmith/issuesmith@v1"
	runner     string            // "ubuntu-latest" is any
	time       time.Duration     // what the whole test may take; sceneTime
	serialize  bool              // a concurrency group, as in the examples
	cron       string            // a schedule instead of labels and dispatches
}

// A scene is one test's repository, model and clock.
type scene struct {
	testing.TB
	ctx    context.Context
	repo   *stand.Repo
	script *model.Script
	setup  setup

	// What must never be seen anywhere: planted as key and password, and found out
	// afterwards (the job tokens).
	key, password string
}

// sceneTime is the most one test may take. A run takes seconds; the machine may be busy.
const sceneTime = 4 * time.Minute

var usualPermissions = []string{"contents: write", "issues: write", "pull-requests: write", "actions: read"}

// open makes the repository with its workflows and puts the model's script in place.
func open(t testing.TB, s setup, conversations ...model.Conversation) *scene {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		test.Parallel()
	}
	ctx, stop := context.WithTimeout(t.Context(), max(s.time, sceneTime))
	t.Cleanup(stop)
	name := sceneName(t)
	c := &scene{TB: t, ctx: ctx, setup: s, key: "key-" + stand.Random(), password: "pw-" + stand.Random()}
	var err error
	c.script, err = world.model.Script(name, c.key, conversations...)
	c.must(err)
	dir, err := stand.CopyTemplate(orElse(s.template, "python"), t.TempDir())
	c.must(err)
	files := map[string]string{".gitea/workflows/issuesmith.yml": c.workflow(false), ".gitea/workflows/sweep.yml": c.workflow(true)}
	maps.Copy(files, s.files)
	for path, content := range files {
		c.write(filepath.Join(dir, path), content)
	}
	owner := orElse(s.owner, world.maintainer.Name)
	c.repo, err = world.NewRepo(ctx, world.maintainer, owner, name, dir, true)
	c.must(err)
	c.must(c.repo.Secret("MODEL_KEY", c.key))
	c.must(c.repo.Secret("TEST_PASSWORD", c.password))
	t.Cleanup(c.end)
	return c
}

// sceneName makes a repository's name of a test's.
func sceneName(t testing.TB) string {
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ",", "", ":", "", ";", "", "#", "").Replace(strings.TrimPrefix(strings.TrimPrefix(t.Name(), "Test"), "Benchmark")))
}

func orElse(s, usual string) string {
	if s == "" {
		return usual
	}
	return s
}

// goCache is a build cache with the standard library in it, as a machine has that builds Go.
func (c *scene) goCache() string {
	c.Helper()
	cache := filepath.Join(world.Keep, "gocache")
	build := exec.CommandContext(c.Context(), "go", "test", "-run", "^$", "./...")
	build.Dir = "testdata/go"
	build.Env = append(os.Environ(), "GOCACHE="+cache, "GOTOOLCHAIN=local", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		c.Fatalf("filling the build cache: %v\n%s", err, out)
	}
	return cache
}

// workflow is the repository's workflow: for labels and dispatches through the action,
// or for a sweep at the test's bidding (the action sweeps on a schedule only, see
// TestSchedule), which starts the program of the same release.
func (c *scene) workflow(sweep bool) string {
	c.Helper()
	s := c.setup
	with := map[string]string{
		"model":          "custom/scripted",
		"model-base-url": c.script.Base,
		"model-api-key":  "${{ secrets.MODEL_KEY }}",
		"test-commands":  tests[orElse(s.template, "python")],
		"test-env":       "TEST_PASSWORD=${{ secrets.TEST_PASSWORD }}\nGOTOOLCHAIN=local",
		"context-limit":  "100000",
	}
	if s.template == "go" {
		with["caches"] = c.goCache()
	}
	switch {
	case sweep:
		with["token"] = "${{ github.token }}"
	case s.cron == "":
		with["issue"] = "${{ github.event.inputs.issue }}"
	}
	for k, v := range s.with {
		with[k] = v
	}
	maps.DeleteFunc(with, func(_, v string) bool { return v == "" })
	data, err := os.ReadFile("testdata/workflows/issuesmith.yml")
	c.must(err)
	tmpl, err := template.New("workflow").Delims("[[", "]]").Funcs(template.FuncMap{
		"indent": func(n int, text string) string {
			return strings.ReplaceAll(strings.Repeat(" ", n)+strings.TrimRight(text, "\n"), "\n", "\n"+strings.Repeat(" ", n))
		},
		"variable": func(input string) string {
			return "INPUT_" + strings.ToUpper(strings.ReplaceAll(input, "-", "_"))
		},
		"quote": func(text string) (string, error) {
			q, err := json.Marshal(text) // a JSON string is a YAML string
			return string(q), err
		},
	}).Parse(string(data))
	c.must(err)
	permissions := s.permission
	if permissions == nil {
		permissions = usualPermissions
	}
	var out strings.Builder
	c.must(tmpl.Execute(&out, map[string]any{
		"Sweep": sweep, "RunsOn": orElse(s.runner, "ubuntu-latest"), "Cron": s.cron, "Arch": runtime.GOARCH, "Permissions": permissions, "Concurrency": s.serialize, "Queued": orElse(s.queued, "ai:queued"), "Persist": s.persist, "Ref": s.ref,
		"Before": s.before, "After": s.after, "Uses": orElse(s.uses, "issuesmith/issuesmith@v1"), "With": with,
	}))
	return out.String()
}

// tests are the test commands of the three target repositories.
var tests = map[string]string{
	"python": "python3 -m unittest discover -s tests -t .",
	"node":   "node --test",
	"go":     "go test ./...",
}

func (c *scene) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *scene) write(path, content string) {
	c.Helper()
	c.must(os.MkdirAll(filepath.Dir(path), 0o700))
	c.must(os.WriteFile(path, []byte(content), 0o600))
}

// queue opens an issue and puts the label on it.
func (c *scene) queue(title, body string) int64 {
	c.Helper()
	issue, err := c.repo.Issue(title, body)
	c.must(err)
	c.label(issue)
	return issue
}

func (c *scene) label(issue int64) {
	c.Helper()
	c.must(c.repo.Label(issue, orElse(c.setup.queued, "ai:queued")))
}

// A result is a run that has ended with what it left behind.
type result struct {
	*stand.Run
	Outputs    map[string]string
	Transcript string // "" when there is none
	folder     string
}

// run waits for the n-th run (from 0) of the repository.
func (c *scene) run(n int) result { c.Helper(); return c.attempt(n, 0) }

func (c *scene) attempt(n int, attempt int64) result {
	c.Helper()
	r, err := c.repo.WaitAttempt(c.ctx, n, attempt)
	c.must(err)
	return c.result(r)
}

func (c *scene) result(r *stand.Run) result {
	c.Helper()
	out := result{Run: r, folder: filepath.Join(world.Keep, c.repo.FullName(), fmt.Sprintf("%d-%d", r.ID, r.Attempt))}
	if data, err := os.ReadFile(filepath.Join(out.folder, "outputs.json")); err == nil && len(data) > 0 {
		c.must(json.Unmarshal(data, &out.Outputs))
	}
	if data, err := os.ReadFile(filepath.Join(out.folder, "outcome")); err == nil && string(data) == "failure" && r.Conclusion == "success" {
		c.Errorf("the step failed but the run is green")
	}
	for _, f := range c.kept(out.folder, "transcript.jsonl") {
		data, err := os.ReadFile(f)
		c.must(err)
		out.Transcript += string(data)
	}
	return out
}

func (c *scene) kept(folder, name string) []string {
	var found []string
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // a folder that is not there holds nothing
		if err == nil && !d.IsDir() && (name == "" || d.Name() == name) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// dispatch starts the workflow by hand.
func (c *scene) dispatch(issue string) {
	c.Helper()
	c.must(c.repo.Dispatch("issuesmith.yml", "main", map[string]string{"issue": issue}))
}

// sweep starts the sweep.
func (c *scene) sweep() {
	c.Helper()
	c.must(c.repo.Dispatch("sweep.yml", "main", nil))
}

// until waits for something to become true.
func (c *scene) until(what string, ok func() bool) {
	c.Helper()
	for !ok() {
		select {
		case <-c.ctx.Done():
			c.Fatalf("waited in vain for: %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// hold is a step that lets a job wait until the test says release.
const hold = `here="$E2E_KEEP/$(basename "$GITHUB_REPOSITORY")"
touch "$here.here"
until [ -e "$here.go" ]; do sleep 0.1; done`

// held waits until a job has come to hold.
func (c *scene) held() {
	c.Helper()
	c.until("the job comes to its hold", func() bool {
		_, err := os.Stat(filepath.Join(world.Keep, c.repo.Name+".here"))
		return err == nil
	})
}

// release lets the job go on.
func (c *scene) release() {
	c.Helper()
	c.write(filepath.Join(world.Keep, c.repo.Name+".go"), "")
}

// hook puts a hook into the traffic of the repository, for its next match only, until
// test ends or remove is called. What the test itself does passes by.
func (c *scene) hook(h stand.Hook) (remove func()) {
	h.Repo = c.repo.FullName()
	match := h.Match
	h.Match = func(r stand.Request) bool { return r.Token != c.repo.Maintainer.Token && match(r) }
	if h.Times == 0 {
		h.Times = 1
	}
	return world.Proxy.Add(&h)
}

// nextSecond waits until what was written before is surely older than what comes: the
// forge's times have no fractions, and what may have come after the label does not count.
func (c *scene) nextSecond() { time.Sleep(2 * time.Second) }

// kill ends the run's issuesmith as a lost machine would.
func (c *scene) kill() {
	found := world.Issuesmith(c.repo.FullName())
	if len(found) == 0 {
		c.Error("no issuesmith process to kill")
	}
	for _, p := range found {
		if err := p.Kill(); err != nil {
			c.Errorf("killing %d: %v", p.PID, err)
		}
	}
}

// end looks for what must not be seen anywhere, and tells the whole story of a failure.
func (c *scene) end() {
	// The test's own context has ended; the clean-up has a minute.
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.ctx), time.Minute)
	defer stop()
	c.ctx = ctx
	for _, problem := range c.script.Problems() {
		c.Error("model: " + problem)
	}
	c.searchCanaries()
	if !c.Failed() {
		return
	}
	c.Log(c.repo.Story())
	for _, f := range c.kept(filepath.Join(world.Keep, c.repo.FullName()), "transcript.jsonl") {
		data, err := os.ReadFile(f)
		c.Logf("--- %s %v\n%s", f, err, cut(string(data), 20000))
	}
	if all, err := c.repo.Runs(); err == nil && len(all) == 0 {
		c.Log(world.Logs())
	}
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit/2] + "\n[…]\n" + s[len(s)-limit/2:]
}
