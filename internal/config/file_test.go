package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func loadFile(t *testing.T, text string, more ...string) (*Config, []string) {
	t.Helper()
	s := sources(step(append(more, "INPUT_TEST-COMMANDS", "")...))
	s.FileName, s.File = "f.yml", []byte(text)
	c, _ := Load(s)
	return c, problems(t, s)
}

func TestFile(t *testing.T) {
	t.Parallel()
	c, bad := loadFile(t, `
# everything a repository can say
setup-commands: npm ci ;; npm run build
test-commands:
  - npm test
  - |
    case "$CI" in
      true) make check ;;
    esac
test-env:
  DB_DATABASE: app_test
  DB_PORT: 3306
  DEBUG: true
max-attempts: 2
agent-timeout: 1h
redact-personal: true
sandbox: off
trusted-users: [alice, bob]
protected-paths: ["config/*.php", "db/**", "legacy/"]
allow-paths:
  - composer.lock
direct-paths: docs/**
playbook: |
  Rules live in config/.
  Ask nobody.
prices:
  mistral/devstral-latest: {prompt: 0.1, completion: 0.3}
  "openai/x": {prompt: 1, cached: 0.5, completion: 2}
`)
	if len(bad) > 0 {
		t.Fatalf("problems: %q", bad)
	}
	for what, ok := range map[string]bool{
		"setup":     slices.Equal(c.SetupCommands, []string{"npm ci", "npm run build"}),
		"test":      len(c.TestCommands) == 2 && strings.Contains(c.TestCommands[1], "make check ;;\nesac"[0:10]),
		"test-env":  slices.Equal(c.TestEnv, []string{"DB_DATABASE=app_test", "DB_PORT=3306", "DEBUG=true"}),
		"attempts":  c.MaxAttempts == 2 && c.AgentTimeout == time.Hour && c.Personal && c.Sandbox == "off",
		"users":     slices.Equal(c.TrustedUsers, []string{"alice", "bob"}),
		"protected": slices.Equal(c.ProtectedPaths, []string{"config/*.php", "db/**", "legacy/"}),
		"allow":     slices.Equal(c.AllowPaths, []string{"composer.lock"}),
		"direct":    slices.Equal(c.DirectPaths, []string{"docs/**"}),
		"playbook":  c.Playbook == "Rules live in config/.\nAsk nobody.",
		"prices":    c.Prices["mistral/devstral-latest"] == Price{0.1, 0.1, 0.3} && c.Prices["openai/x"] == Price{1, 0.5, 2},
	} {
		if !ok {
			t.Errorf("%s is wrong: %+v", what, c)
		}
	}
}

func TestFileMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"unknown", "max-attempt: 3", "f.yml:1: max-attempt: is not a known setting: did you mean max-attempts?"},
		{"not built", "baseline: on", "f.yml:1: baseline: is not built yet"},
		{"not built mapping", "contract:\n  kind: code", "f.yml:1: contract: is not built yet"},
		{"case", "Max-Attempts: 3", "did you mean max-attempts?"},
		{"number", "max-attempts: three", `f.yml:1: max-attempts = "three": must be a whole number, 1–10`},
		{"float", "max-attempts: 3.5", "1–10"},
		{"octal", "max-attempts: 0o7", "1–10"},
		{"nan", "cost-limit: .nan", "at least 0"},
		{"inf", "cost-limit: .inf", "at least 0"},
		{"list", "max-attempts: [1]", "not a list"},
		{"mapping", "max-attempts: {a: 1}", "not a mapping"},
		{"null", "max-attempts:", "has no value"},
		{"bool", "redact-personal: 1", "true or false"},
		{"unit", "agent-timeout: 30", "has no unit: write 30s or 30m"},
		{"token", "token: abc", "secrets never come from the file"},
		{"key", "model-api-key: abc", "secrets never come from the file"},
		{"issue", "issue: 3", "give it to the run"},
		{"commands", "test-commands: {a: b}", "not a mapping"},
		{"item", "test-commands:\n  - a\n  - [b]", "f.yml:3: test-commands: a list item must be a single value"},
		{"env", "test-env:\n  A: 1\n  B-C: 2", "f.yml:3: test-env: entry 2 has no valid name"},
		{"env null", "test-env:\n  A:", `test-env = "A": has no value`},
		{"users", "trusted-users: ['@alice', bob]", `trusted-users = "@alice": must be the name of a user, without @`},
		{"glob", "protected-paths:\n  - ok/**\n  - /abs\n  - ../up\n  - '[z'\n", `f.yml:5: protected-paths = "[z": is not a valid pattern`},
		{"glob dots", "direct-paths: [a/../b]", "must not hold . or .."},
		{"glob not", "allow-paths: ['!x']", "cannot be negated"},
		{"prices", "prices: 3", "must be a mapping of model names"},
		{"price", "prices:\n  m: 3", `f.yml:2: prices = "m": must be a mapping`},
		{"price part", "prices:\n  m: {prompt: 1, output: 2}", `prices = "m.output": is not known`},
		{"price missing", "prices:\n  m: {prompt: 1}", "has no completion price"},
		{"price value", "prices:\n  m: {prompt: x, completion: 1}", `"m.prompt: x": must be a number`},
		{"playbook", "playbook: [a]", "must be a single value, not a list"},
		{"long playbook", "playbook: " + strings.Repeat("x", playbookLimit+1), "at most 20000 characters"},
		{"twice", "max-attempts: 3\nmax-attempts: 4", `f.yml:2: "max-attempts": is given twice`},
		{"twice inside", "prices:\n  a: {prompt: 1, prompt: 2, completion: 1}", "given twice"},
		{"bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "anchor or alias"},
		{"merge", "a: &a {x: 1}\nb: {<<: *a}", "anchor or alias"},
		{"deep", "a: " + strings.Repeat("[", 50) + strings.Repeat("]", 50), "nested more than 20 levels"},
		{"very deep", strings.Repeat("[", 200_000), "f.yml"},
		{"two documents", "max-attempts: 3\n---\nmax-attempts: 4", "second document"},
		{"tab", "test-env:\n\tA: 1", "f.yml:2: file: is not valid YAML"},
		{"tab", "test-env:\n\tA: 1", "not tabs"},
		{"syntax", "a: [", "is not valid YAML"},
		{"text", "just a text", "must be a mapping"},
		{"tag", "max-attempts: !!binary Mw==", "tag"},
		{"own tag", "max-attempts: !x 3", "tag"},
		{"key list", "? [a, b]\n: c", "not a plain name"},
		{"nul", "a: \x00", "is not valid YAML"},
		{"utf8", "a: \xff\xfe", "is not valid YAML"},
		{"big", "# " + strings.Repeat("x", fileLimit), "at most 1048576 are read"},
	} {
		_, got := loadFile(t, test.text, "INPUT_TEST_COMMANDS", "true")
		if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, test.want) }) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestEmptyFiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "null\n", "\ufeff"} {
		if _, got := loadFile(t, text, "INPUT_TEST_COMMANDS", "true"); len(got) > 0 {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A large file must not take long, whatever it holds: the time has to grow with its size
// and no faster.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	const fileLimit = fileLimit / 4
	var keys bytes.Buffer
	for i := 0; keys.Len() < fileLimit-100; i++ {
		fmt.Fprintf(&keys, "key-%d: x\n", i)
	}
	for name, text := range map[string]string{
		"keys":     keys.String(),
		"comments": strings.Repeat("# x\n", fileLimit/4-1),
		"dashes":   strings.Repeat("- ", fileLimit/2-1),
		"braces":   strings.Repeat("{a: ", fileLimit/4-1),
		"quotes":   "playbook: \"" + strings.Repeat("x ", fileLimit/2-20),
		"list":     "trusted-users: [" + strings.Repeat("!,", fileLimit/2-20) + "]",
	} {
		started := time.Now()
		if entries, problems := parseFile([]byte(text)); name != "comments" && len(entries) == 0 && len(problems) == 0 {
			t.Errorf("%s: read as nothing", name)
		}
		if took := time.Since(started); took > 15*time.Second {
			t.Errorf("%s took %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}

// A file of nothing but mistakes is told so, and not for pages.
func TestManyMistakes(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&text, "key-%d: x\n", i)
	}
	s := sources(step())
	s.File = []byte(text.String())
	_, err := Load(s)
	if err == nil || strings.Count(err.Error(), "\n") != shownProblems+1 || !strings.HasSuffix(err.Error(), "\n- and 4900 more") {
		t.Errorf("%.2000v", err)
	}
}

func FuzzFile(f *testing.F) {
	for _, text := range []string{"max-attempts: 3", "test-env: {A: 1}", "prices: {m: {prompt: 1, completion: 2}}", "a: &b [*b]", "? [x]\n: y", "a: !!binary x", "\ta: b", "- a\n- b", "a: 1\n---\nb: 2", "trusted-users:\n- a\n-"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := sources(step())
		s.File = data
		c, err := Load(s)
		if err != nil {
			if strings.Contains(err.Error(), token) {
				t.Error("a problem shows the token")
			}
			if n, want := strings.Count(err.Error(), "\n"), len(err.(Problems)); n != want && n != shownProblems+1 {
				t.Errorf("%d lines for %d problems", n, want)
			}
			return
		}
		for _, d := range []time.Duration{c.AgentTimeout, c.RunTimeout, c.TestTimeout, c.CommandTimeout} {
			if d < 10*time.Second || d > 3*time.Hour {
				t.Errorf("a time of %v", d)
			}
		}
		if c.MaxAttempts < 1 || c.MaxAttempts > 10 || len(c.TestCommands) == 0 || c.CostLimit < 0 || c.CostLimit != c.CostLimit {
			t.Errorf("out of range: %+v", c)
		}
	})
}

func FuzzScalars(f *testing.F) {
	for _, text := range []string{"1", "-0", "1e9", "NaN", "+Inf", "20m", "1h30m", "1.5h", "9999999999h", "0x1p3", "1_0", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseWhole(text, 1, 10); err == nil && (n < 1 || n > 10 || strings.Trim(text, "0123456789") != "") {
			t.Errorf("whole %q is %d", text, n)
		}
		if n, err := parseAmount(text); err == nil && (!(n >= 0 && n <= 1e9) || strings.Trim(text, "-.0123456789") != "") {
			t.Errorf("amount %q is %v", text, n)
		}
		if d, err := parseDuration(text, time.Minute, time.Hour); err == nil && (d < time.Minute || d > time.Hour || strings.Trim(text, ".0123456789hms") != "") {
			t.Errorf("duration %q is %v", text, d)
		}
		if u, err := parseURL(text); err == nil && strings.ContainsAny(u, "?#@ ") && !strings.Contains(u, "/") {
			t.Errorf("url %q is %q", text, u)
		}
		if m, err := parseModel(text); err == nil && (m.Provider == "" || m.Name == "") {
			t.Errorf("model %q is %v", text, m)
		}
		_ = splitCommands(text)
		if edits(text, "max-attempts") < 0 {
			t.Error("negative distance")
		}
	})
}
