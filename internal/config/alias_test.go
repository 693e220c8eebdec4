package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAliases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env []string
		ok  func(*Config) bool
	}{
		{[]string{"AGENT_MODEL", "openrouter/a/b", "OPENROUTER_API_KEY", "k"}, func(c *Config) bool { return c.Model == Model{"openrouter", "a/b"} }},
		{[]string{"AGENT_MODEL", "ollama_chat/x", "OLLAMA_API_BASE", "http://ollama:11434"}, func(c *Config) bool {
			return c.Model == Model{"ollama", "x"} && c.ModelBase == "http://ollama:11434"
		}},
		{[]string{"AGENT_MODEL_API_BASE", "https://e.test/v1"}, func(c *Config) bool { return c.ModelBase == "https://e.test/v1" }},
		{[]string{"AGENT_MODEL", "openai/x", "OPENAI_API_BASE", "https://o.test/v1", "OPENAI_API_KEY", "k"}, func(c *Config) bool { return c.ModelBase == "https://o.test/v1" }},
		{[]string{"AGENT_STEP_LIMIT", "9"}, func(c *Config) bool { return c.StepLimit == 9 }},
		{[]string{"AGENT_COST_LIMIT", "2.5"}, func(c *Config) bool {
			return c.CostLimit == 2.5 && c.CostLimitGiven && strings.Contains(c.Notes[0], "limits the whole run here")
		}},
		{[]string{"AGENT_TIMEOUT_SECONDS", "600"}, func(c *Config) bool { return c.AgentTimeout == 10*time.Minute }},
		{[]string{"AGENT_COMMAND_TIMEOUT_SECONDS", "45"}, func(c *Config) bool { return c.CommandTimeout == 45*time.Second }},
		{[]string{"MAX_AGENT_ATTEMPTS", "5"}, func(c *Config) bool { return c.MaxAttempts == 5 }},
		{[]string{"SETUP_COMMANDS", "a;;b"}, func(c *Config) bool { return slices.Equal(c.SetupCommands, []string{"a", "b"}) }},
		{[]string{"TEST_COMMANDS", "a;; b", "INPUT_TEST-COMMANDS", ""}, func(c *Config) bool { return slices.Equal(c.TestCommands, []string{"a", "b"}) }},
		{[]string{"MAX_CHANGED_FILES", "7"}, func(c *Config) bool { return c.MaxFiles == 7 }},
		{[]string{"MAX_CHANGED_LINES", "70"}, func(c *Config) bool { return c.MaxLines == 70 }},
		{[]string{"GITEA_URL", "https://g.test/"}, func(c *Config) bool { return c.ServerURL == "https://g.test" }},
		{[]string{"GITEA_OWNER", "o", "GITEA_REPOSITORY", "r"}, func(c *Config) bool { return c.Repository == "o/r" }},
		{[]string{"GITEA_REPOSITORY", "o/r"}, func(c *Config) bool { return c.Repository == "o/r" }},
		{[]string{"SOURCE_REPOSITORY", "o/r"}, func(c *Config) bool { return c.Repository == "o/r" }},
		{[]string{"GITEA_TOKEN", "t0123456789", "INPUT_TOKEN", ""}, func(c *Config) bool { return c.Token == "t0123456789" }},
		{[]string{"GITEA_QUEUED_LABEL", "q"}, func(c *Config) bool { return c.Queued == "q" }},
		{[]string{"GITEA_RUNNING_LABEL", "r"}, func(c *Config) bool { return c.Running == "r" }},
		{[]string{"GITEA_READY_LABEL", "y"}, func(c *Config) bool { return c.Ready == "y" }},
		{[]string{"GITEA_FAILED_LABEL", "f"}, func(c *Config) bool { return c.Failed == "f" }},
		{[]string{"SOURCE_BRANCH", "dev"}, func(c *Config) bool { return c.BaseBranch == "dev" }},
		{[]string{"LOG_LEVEL", "WARNING"}, func(c *Config) bool { return c.LogLevel == "warn" }},
		{[]string{"AUTOMATION_MODE", "dry_run"}, func(c *Config) bool { return c.Mode == "dry-run" }},
		{[]string{"ALLOW_DIRECT_MAIN", "1"}, func(c *Config) bool { return c.AllowDirect }},
		{[]string{"TEST_DB_DATABASE", "app_test", "TEST_CUSTOMER_DB_HOST", "db", "TEST_CONFIG_DB_USER", "u", "INPUT_TEST-ENV", "TEST_DB_DATABASE=better_test"}, func(c *Config) bool {
			return slices.Equal(c.TestEnv, []string{"TEST_DB_DATABASE=better_test", "TEST_CONFIG_DB_USER=u", "TEST_CUSTOMER_DB_HOST=db"})
		}},
	} {
		c := mustLoad(t, sources(step(test.env...)))
		if !test.ok(c) {
			t.Errorf("%q: %+v", test.env, c)
		}
		if !strings.Contains(strings.Join(c.Notes, "\n"), "older worker") {
			t.Errorf("%q: no note: %q", test.env, c.Notes)
		}
	}
}

func TestAliasMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, want string }{
		{"AGENT_TIMEOUT_SECONDS", "20m", `environment AGENT_TIMEOUT_SECONDS: agent-timeout = "20m": must be a number of seconds`},
		{"AGENT_TIMEOUT_SECONDS", "5", "1m–2h"},
		{"AUTOMATION_MODE", "yolo", "the setting's name is now mode"},
		{"ALLOW_DIRECT_MAIN", "maybe", "true or false"},
		{"GITEA_REPOSITORY", "r", "needs GITEA_OWNER"},
		{"TEST_DB_DATABASE", "production", "names a database"},
		{"GITEA_TOKEN", "two words", "environment GITEA_TOKEN: token: holds a blank"},
	} {
		env := step(test.name, test.value)
		if test.name == "GITEA_TOKEN" {
			delete(env, "INPUT_TOKEN")
		}
		got := problems(t, sources(env))
		if len(got) != 1 || !strings.Contains(got[0], test.want) {
			t.Errorf("%s=%s: %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

func TestRetiredNamesAreAnsweredInOneSentence(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, sources(step("FAILURE_DB_HOST", "h", "FAILURE_DB_USER", "u", "AGENT_COMMAND", "x", "AGENT_USER", "a", "WORKSPACE_ROOT", "/w", "WORKER_ID", "1", "STALE_CLAIM_MINUTES", "5", "POLL_SECONDS", "30")))
	if len(c.Notes) != 6 || !strings.HasPrefix(c.Notes[0], "AGENT_COMMAND, FAILURE_DB_HOST, FAILURE_DB_USER: ignored") {
		t.Errorf("notes:\n%s", strings.Join(c.Notes, "\n"))
	}
	for _, name := range []string{"AGENT_USER", "WORKSPACE_ROOT", "WORKER_ID", "STALE_CLAIM_MINUTES", "POLL_SECONDS"} {
		if !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.HasPrefix(n, name+": ignored") }) {
			t.Errorf("no note for %s", name)
		}
	}
}

// Variables that other programs share must not become mistakes where a stronger
// source answers, nor an API base of a provider that is not used.
func TestAliasesGiveWay(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, sources(step("OPENAI_API_BASE", "not a url", "LOG_LEVEL", "nonsense", "INPUT_LOG-LEVEL", "debug")))
	if c.ModelBase != "" || c.LogLevel != "debug" || len(c.Notes) != 0 {
		t.Errorf("%+v", c)
	}
}
