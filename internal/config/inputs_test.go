package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// update rewrites the parts of action.yml and README.md that come from the table:
//
//	go test ./internal/config -run TestGenerated -update
var update = flag.Bool("update", false, "rewrite the generated parts of action.yml and README.md")

const root = "../../"

// generatedInputs is the inputs part of action.yml. Nothing but the token has a
// default there: it would stand above the repository file.
func generatedInputs() string {
	var b strings.Builder
	for _, s := range Settings() {
		if !s.Input {
			continue
		}
		description := s.Help
		if s.Range != "" {
			description += " (" + s.Range + ")"
		}
		switch s.Default {
		case "", "${{ github.token }}":
		case "required":
			description += "; required here or in the repository file"
		default:
			description += "; default: " + s.Default
		}
		fmt.Fprintf(&b, "  %s:\n    description: %s\n    required: false\n", s.Name, strconv.Quote(description))
		if s.Name == "token" {
			b.WriteString("    default: ${{ github.token }}\n")
		}
	}
	return b.String()
}

// generatedEnv hands every input to the program. Not all runners set INPUT_… for the
// steps of a composite action, and a shell cannot carry a name with a dash.
func generatedEnv() string {
	var b strings.Builder
	for _, s := range Settings() {
		if s.Input {
			names := inputVariables(s.Name)
			fmt.Fprintf(&b, "        %s: ${{ inputs.%s }}\n", names[len(names)-1], s.Name)
		}
	}
	return b.String()
}

// between replaces what stands between two lines.
func between(t *testing.T, file string, data []byte, open, shut, text string) []byte {
	t.Helper()
	start := bytes.Index(data, []byte(open+"\n"))
	end := bytes.Index(data, []byte(shut))
	if start < 0 || end < start {
		t.Fatalf("%s has no lines %q and %q, between which the settings stand", file, open, shut)
	}
	start += len(open) + 1
	return slices.Concat(data[:start], []byte(text), data[end:])
}

func TestGenerated(t *testing.T) {
	t.Parallel()
	for file, parts := range map[string][][3]string{
		"action.yml": {
			{"  # settings: from internal/config, go test ./internal/config -update", "  # /settings", generatedInputs()},
			{"        # settings: from internal/config, go test ./internal/config -update", "        # /settings", generatedEnv()},
		},
		"README.md": {{"<!-- settings -->", "<!-- /settings -->", MarkdownTable()}},
	} {
		data, err := os.ReadFile(root + file)
		if os.IsNotExist(err) && file == "README.md" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := data
		for _, p := range parts {
			want = between(t, file, want, p[0], p[1], p[2])
		}
		if bytes.Equal(data, want) {
			continue
		}
		if !*update {
			t.Errorf("%s does not say what the settings are: run go test ./internal/config -run TestGenerated -update", file)
			continue
		}
		if err := os.WriteFile(root+file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// An action is what of action.yml concerns inputs.
type action struct {
	Inputs map[string]struct {
		Description, Default string
		Required             bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, Shell, Run string
			Env            map[string]string
		}
	}
}

func readAction(t *testing.T) action {
	t.Helper()
	data, err := os.ReadFile(root + "action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("gitea.")) {
		t.Error("action.yml uses a gitea.* context, which act does not have")
	}
	return a
}

func TestActionInputs(t *testing.T) {
	t.Parallel()
	a := readAction(t)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) != 1 || a.Runs.Steps[0].Shell != "bash" {
		t.Fatalf("runs: %+v", a.Runs)
	}
	step := a.Runs.Steps[0]
	var names []string
	for _, s := range Settings() {
		if s.Input {
			names = append(names, s.Name)
			variables := inputVariables(s.Name)
			if got := step.Env[variables[len(variables)-1]]; got != "${{ inputs."+s.Name+" }}" {
				t.Errorf("the step gets %s as %q", s.Name, got)
			}
		}
	}
	for name, input := range a.Inputs {
		if !slices.Contains(names, name) {
			t.Errorf("input %s does not work", name)
		}
		if want := map[bool]string{true: "${{ github.token }}"}[name == "token"]; input.Default != want {
			t.Errorf("input %s has the default %q, which would stand above the repository file", name, input.Default)
		}
		if input.Description == "" || input.Required {
			t.Errorf("input %s: %+v", name, input)
		}
	}
	if len(a.Inputs) != len(names) || len(step.Env) != len(names) {
		t.Errorf("%d inputs, %d variables, %d settings", len(a.Inputs), len(step.Env), len(names))
	}
	if strings.Contains(step.Run, "${{") {
		t.Error("the script holds an expression: what it expands to would be run by the shell")
	}
	for _, name := range NotBuilt() {
		if _, shown := a.Inputs[name]; shown {
			t.Errorf("input %s is not built yet", name)
		}
	}
}

// A workflow is what of an example concerns the action.
type workflow struct {
	On          yaml.Node
	Permissions map[string]string
	Concurrency struct {
		Group  string
		Cancel *bool `yaml:"cancel-in-progress"`
	}
	Jobs map[string]struct {
		If    string
		Steps []struct {
			ID, Uses, Run string
			Timeout       int `yaml:"timeout-minutes"`
			With          map[string]string
		}
		Services map[string]struct{ Env map[string]string }
	}
}

var (
	fromSecret  = regexp.MustCompile(`^\$\{\{ secrets\.[A-Z0-9_]+ \}\}$`)
	secretInput = regexp.MustCompile(`(?i)(password|secret|token|key)[^=:]*[=:]\s*(.*)`)
)

func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "workflows-example/*.yml")
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %q, %v", files, err)
	}
	a := readAction(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			checkExample(t, file, a)
		})
	}
}

func checkExample(t *testing.T, file string, a action) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&w); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"contents", "issues", "pull-requests"} {
		if w.Permissions[key] != "write" {
			t.Errorf("permissions lack %s: write", key)
		}
	}
	if w.Permissions["actions"] == "" {
		t.Error("permissions lack actions: read, which recovery needs")
	}
	if !strings.Contains(w.Concurrency.Group, "ai-issue-") || w.Concurrency.Cancel == nil || *w.Concurrency.Cancel {
		t.Errorf("concurrency: %+v", w.Concurrency)
	}
	for _, trigger := range []string{"issues:\n    types: [labeled]", "workflow_dispatch:", "schedule:"} {
		if !bytes.Contains(data, []byte(trigger)) {
			t.Errorf("no trigger %q", trigger)
		}
	}
	if bytes.Contains(data, []byte("gitea.event")) || bytes.Contains(data, []byte("persist-credentials: true")) {
		t.Error("gitea.* contexts or kept credentials")
	}
	used := 0
	for _, job := range w.Jobs {
		if !strings.Contains(job.If, "github.event.changes.added_labels.*.name") || !strings.Contains(job.If, "github.event.label.name") {
			t.Errorf("if: %q does not know both forms of the label event", job.If)
		}
		for _, step := range job.Steps {
			switch {
			case strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != "false":
				t.Error("the checkout keeps its credentials")
			case strings.Contains(step.Uses, "/issuesmith/issuesmith@"):
				used++
				if step.Timeout < 1 || step.Timeout > 175 {
					t.Errorf("timeout-minutes: %d", step.Timeout)
				}
				checkWith(t, step.With, a)
			}
			if strings.Contains(step.Run, "${{") {
				t.Errorf("a script holds an expression: %s", step.Run)
			}
		}
	}
	if used != 1 {
		t.Errorf("the action is used %d times", used)
	}
}

// checkWith loads what the example gives, as the program would.
func checkWith(t *testing.T, with map[string]string, a action) {
	t.Helper()
	env := map[string]string{"GITHUB_SERVER_URL": "https://gitea.example.test", "GITHUB_REPOSITORY": "owner/demo", "INPUT_TOKEN": token}
	for name, text := range with {
		if _, known := a.Inputs[name]; !known {
			t.Errorf("input %s is not one of the action's", name)
		}
		if (name == "token" || name == "model-api-key") && !fromSecret.MatchString(text) {
			t.Errorf("%s is not from secrets.*, so its value would stand in the log", name)
		}
		for line := range strings.Lines(text) {
			if m := secretInput.FindStringSubmatch(strings.TrimSpace(line)); m != nil && name == "test-env" && !fromSecret.MatchString(m[2]) {
				t.Errorf("%s is not from secrets.*", line)
			}
		}
		text = regexp.MustCompile(`\$\{\{ secrets\.[A-Z0-9_]+ \}\}`).ReplaceAllString(text, "from-a-secret-0123456789")
		text = strings.ReplaceAll(text, "${{ github.event.inputs.issue }}", "7")
		if strings.Contains(text, "${{") {
			t.Errorf("%s: the test does not know %q", name, text)
		}
		env[inputVariables(name)[0]] = text
	}
	if c, err := Load(sources(env)); err != nil {
		t.Errorf("the example's inputs: %v", err)
	} else if len(c.Notes) > 0 {
		t.Errorf("the example's inputs: %q", c.Notes)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, sources(step("INPUT_TEST-ENV", "DB_PASSWORD=secret\nOTHER=secret", "INPUT_AGENT-TIMEOUT", "1m")))
	if len(c.Notes) != 2 || !strings.Contains(c.Notes[0], "test-env DB_PASSWORD") || !strings.Contains(c.Notes[1], "command-timeout is longer than agent-timeout") {
		t.Errorf("notes: %q", c.Notes)
	}
	if strings.Contains(strings.Join(c.Notes, ""), "secret;") {
		t.Errorf("a note shows the value: %q", c.Notes)
	}
}
