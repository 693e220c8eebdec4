package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// token is long enough to be no ordinary word.
const token = "0123456789abcdef0123456789abcdef01234567"

// step is the environment of a workflow step that has all that is required.
func step(more ...string) map[string]string {
	env := map[string]string{
		"GITHUB_SERVER_URL": "https://gitea.example.test", "GITHUB_REPOSITORY": "owner/demo",
		"INPUT_TOKEN": token, "INPUT_MODEL-API-KEY": "key-0123456789abcdef", "INPUT_TEST-COMMANDS": "go test ./...",
	}
	for i := 0; i+1 < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return env
}

func sources(env map[string]string) Sources {
	return Sources{
		Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Environ: func() []string {
			var out []string
			for _, k := range slices.Sorted(maps.Keys(env)) {
				out = append(out, k+"="+env[k])
			}
			return out
		},
	}
}

func mustLoad(t *testing.T, s Sources) *Config {
	t.Helper()
	c, err := Load(s)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// problems loads and returns the problems as lines.
func problems(t *testing.T, s Sources) []string {
	t.Helper()
	c, err := Load(s)
	if err == nil {
		return nil
	}
	var found Problems
	if !errors.As(err, &found) || c == nil {
		t.Fatalf("Load: error %T, config %v; want Problems and a config", err, c)
	}
	var out []string
	for _, p := range found {
		out = append(out, p.String())
	}
	return out
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, sources(step()))
	if c.Model != (Model{"mistral", "devstral-latest"}) || c.MaxAttempts != 3 || c.StepLimit != 50 || c.CostLimit != 5 || c.CostLimitGiven {
		t.Errorf("model and limits: %+v", c)
	}
	for name, pair := range map[string][2]time.Duration{
		"agent": {c.AgentTimeout, 20 * time.Minute}, "command": {c.CommandTimeout, 3 * time.Minute}, "test": {c.TestTimeout, 30 * time.Minute},
		"run": {c.RunTimeout, 100 * time.Minute}, "first": {c.FirstToken, 5 * time.Minute}, "between": {c.BetweenTokens, time.Minute},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	if c.Sandbox != "strict" || c.Mode != "pr" || c.Prefix != "ai/issue-" || c.Queued != "ai:queued" || c.Failed != "ai:failed" {
		t.Errorf("choices: %+v", c)
	}
	if c.ServerURL != "https://gitea.example.test" || c.Repository != "owner/demo" || c.CommitEmail != "issuesmith@localhost" {
		t.Errorf("step: %+v", c)
	}
	if len(c.Notes) != 0 {
		t.Errorf("notes: %q", c.Notes)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	// Strongest first; each round takes one source away.
	env := step("INPUT_MAX-ATTEMPTS", "2", "INPUT_MAX_ATTEMPTS", "4", "ISSUESMITH_MAX_ATTEMPTS", "5", "MAX_AGENT_ATTEMPTS", "6")
	s := sources(env)
	s.Flags = map[string]string{"max-attempts": "1"}
	s.File = []byte("max-attempts: 7\n")
	for i, remove := range []func(){
		func() { s.Flags = nil },
		func() { env["INPUT_MAX-ATTEMPTS"] = "" }, // an input that nobody gave is an empty variable on a runner
		func() { delete(env, "INPUT_MAX_ATTEMPTS") },
		func() { delete(env, "ISSUESMITH_MAX_ATTEMPTS") },
		func() { delete(env, "MAX_AGENT_ATTEMPTS") },
		func() { s.File = nil },
	} {
		if c, want := mustLoad(t, s), []int{1, 2, 4, 5, 6, 7}[i]; c.MaxAttempts != want {
			t.Errorf("max-attempts %d, want %d", c.MaxAttempts, want)
		}
		remove()
	}
	if c := mustLoad(t, s); c.MaxAttempts != 3 {
		t.Errorf("default: %d", c.MaxAttempts)
	}
}

func TestDesk(t *testing.T) {
	t.Parallel()
	s := sources(map[string]string{"MISTRAL_API_KEY": "key-0123456789abcdef", "GITHUB_REPOSITORY": "https://x:y@host/a/b"})
	s.Flags = map[string]string{"test-commands": "make test"}
	s.Local = true
	if c := mustLoad(t, s); c.ModelKey == "" || c.Repository != "" {
		t.Errorf("%+v", c)
	}
	s.Local = false
	got := strings.Join(problems(t, s), "\n")
	for _, want := range []string{"token: is required", "server-url: is required", "repository: must be owner/name; give the input repository"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "x:y") {
		t.Errorf("shows the clone URL's password:\n%s", got)
	}
}

func TestEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	s := sources(step("INPUT_MAX-ATTEMPTS", "11", "ISSUESMITH_STEP_LIMIT", "5x", "INPUT_COST-LIMIT", "NaN", "INPUT_MODE", "prr"))
	s.Flags = map[string]string{"agent-timeout": "3"}
	s.FileName = "repo.yml"
	s.File = []byte("max-change-files: 3\n\nrun-timeout: 4h\nlog-level: [a]\ntoken: abc\n")
	want := []string{
		`environment ISSUESMITH_STEP_LIMIT: step-limit = "5x": must be a whole number, 1–500`,
		`flag: agent-timeout = "3": has no unit: write 3s or 3m, 1m–2h`,
		`input: cost-limit = "NaN": must be a number of at least 0, like 5 or 0.50`,
		`input: max-attempts = "11": must be a whole number, 1–10`,
		`input: mode = "prr": must be one of pr, dry-run, direct: did you mean pr?`,
		`repo.yml:1: max-change-files: is not a known setting: did you mean max-changed-files?`,
		`repo.yml:3: run-timeout = "4h": must be a duration like 90s, 20m or 1h30m, 5m–170m`,
		`repo.yml:4: log-level: must be a single value, not a list`,
		`repo.yml:5: token: cannot be set in the file: secrets never come from the file: give it as an input from a secret of the repository`,
	}
	_, err := Load(s)
	if err == nil {
		t.Fatal("no problems")
	}
	got := strings.Split(err.Error(), "\n")
	if got[0] != "the configuration has 9 problems:" {
		t.Errorf("head line %q", got[0])
	}
	for i, line := range got[1:] {
		if i >= len(want) || line != "- "+want[i] {
			t.Errorf("line %d: %s", i, line)
		}
	}
	if len(got) != len(want)+1 {
		t.Errorf("%d lines, want %d", len(got), len(want)+1)
	}
}

func TestBadValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, want string }{
		{"max-attempts", "0", "1–10"},
		{"max-attempts", "+3", "1–10"},
		{"max-attempts", "03", "1–10"},
		{"max-attempts", "3.0", "1–10"},
		{"max-attempts", "99999999999999999999", "1–10"},
		{"max-changed-lines", "10001", "1–10000"},
		{"context-limit", "2047", "2048–2000000"},
		{"issue", "7; rm -rf /", "1–2147483647"},
		{"issue", "-7", "1–2147483647"},
		{"cost-limit", "-1", "at least 0"},
		{"cost-limit", "Inf", "at least 0"},
		{"cost-limit", "1e3", "at least 0"},
		{"cost-limit", "5 USD", "at least 0"},
		{"agent-timeout", "59s", "1m–2h"},
		{"agent-timeout", "-5m", "1m–2h"},
		{"agent-timeout", "20m x", "1m–2h"},
		{"agent-timeout", "99999999999999999h", "1m–2h"},
		{"token-timeout", "11m", "5s–10m"},
		{"redact-personal", "yes", "true or false"},
		{"sandbox", "none", "strict, best-effort, off"},
		{"network", "db", "has no port"},
		{"network", "http://db:80", "without a scheme"},
		{"network", "db:0", "1–65535"},
		{"network", "db:65536", "1–65535"},
		{"network", "db:03306", "1–65535"},
		{"network", "*:3306", "no wildcards"},
		{"network", "::1:3306", "in brackets"},
		{"network", "[127.0.0.1]:3306", "IPv6 address in the brackets"},
		{"network", "a b:1", "holds a blank"},
		{"network", "db:3306,cache:6379", "a comma"},
		{"network", ":1", "host's name"},
		{"network", "-db:1", "host's name"},
		{"network", "[::1]", "has no port"},
		{"network", "[fe80::1%eth0]:80", "without a zone"},
		{"network", "10.0.0.0/8:80", "network mask"},
		{"network", "db/x:80", "without a path"},
		{"network", "me@db:80", "without a user name"},
		{"network", "0.0.0.0:80", "one host"},
		{"network", "[::]:80", "one host"},
		{"network", "[ff02::1]:80", "one host"},
		{"network", "10.1:80", "whole IPv4"},
		{"network", "0x7f000001:80", "whole IPv4"},
		{"network", "2130706433:80", "whole IPv4"},
		{"network", "db:３", "1–65535"},
		{"network", "db:1\nDB.:1", "given twice"},
		{"network", "[::ffff:10.0.0.7]:1\n10.0.0.7:1", "given twice"},
		{"network", "[0:0:0:0:0:0:0:1]:1\n[::1]:1", "given twice"},
		{"network", "open", "cannot be open"},
		{"network", "none\ndb:1", "has no port"},
		{"setup-network", "closed", "has no port"},
		{"setup-network", "open\ndb:1", "has no port"},
		{"memory-limit", "4", "has no unit"},
		{"memory-limit", "63MiB", "64MiB–1TiB"},
		{"memory-limit", "99999999999999999999G", "64MiB–1TiB"},
		{"memory-limit", "4 gigabytes", "a size like"},
		{"process-limit", "1", "8–100000"},
		{"open-files-limit", "255", "256–1048576"},
		{"cpu-limit", "0s", "1s–24h"},
		{"cpu-limit", "25h", "1s–24h"},
		{"output-limit", "1023KiB", "1MiB–4GiB"},
		{"output-limit", "5G", "1MiB–4GiB"},
		{"toolchains", "go", "absolute path"},
		{"toolchains", "/opt/a\x01", "absolute path"},
		{"toolchains", "/", "holds more than tools"},
		{"toolchains", "/root/.cargo/../", "holds more than tools"},
		{"caches", "/home/someone", "holds more than tools"},
		{"caches", "/home/someone/.docker/cli-plugins", "credentials"},
		{"caches", "/opt/a\n/opt/a/", "given twice"},
		{"toolchains", "/etc/", "belongs to the system"},
		{"toolchains", "/etc/ssl/private", "belongs to the system"},
		{"caches", "/srv/runner", "home folder or holds one"},
		{"caches", "/srv/runner/home", "home folder or holds one"},
		{"log-level", "trace", "debug, info, warn, error"},
		{"model", "devstral", "provider/name"},
		{"model", "mistrall/x", "did you mean mistral?"},
		{"model", "mistral/", "no usable name"},
		{"model-base-url", "http://example.com/v1", "use https"},
		{"model-base-url", "http://134744072/v1", "use https"},
		{"model-base-url", "http://0x08080808/v1", "use https"},
		{"model-base-url", "http://[::ffff:8.8.8.8]/v1", "use https"},
		{"model-base-url", "http://169.254.169.254/v1", "use https"},
		{"model-base-url", "http://localhost.example.com/v1", "use https"},
		{"model-base-url", "https://me:secret@example.com/v1", "user name or password"},
		{"model-base-url", "https://example.com/v1?key=1", "query"},
		{"model-base-url", "https://example.com/v1#x", "query or fragment"},
		{"model-base-url", "ftp://example.com/", "must be a URL"},
		{"model-base-url", "example.com/v1", "must be a URL"},
		{"model-base-url", "https:///v1", "must be a URL"},
		{"server-url", "http://gitea.example.com", "use https"},
		{"repository", "demo", "owner/name"},
		{"repository", "a/b/c", "owner/name"},
		{"repository", "../b", "owner/name"},
		{"base-branch", "refs/heads/main", "without refs/heads/"},
		{"base-branch", "a..b", "name of a branch"},
		{"base-branch", "-x", "name of a branch"},
		{"branch-prefix", "ai issue-", "ai/issue-"},
		{"branch-prefix", "/x", "ai/issue-"},
		{"ci-workflow", "../ci.yml", "like ci.yml"},
		{"ci-workflow", "ci.sh", "like ci.yml"},
		{"queued-label", "a,b", "no comma"},
		{"queued-label", "AI:running", "four labels must differ"},
		{"commit-name", "a <b>", "without < and >"},
		{"commit-email", "me", "address like"},
		{"test-env", "A", "entry 1 is not KEY=VALUE"},
		{"test-env", "A=1\n2B=3", "entry 2 has no valid name"},
		{"test-env", "A=1\nA=2", "given twice"},
		{"mode", "direct", "allow-direct"},
		{"mode", "direct", "direct-paths"},
		{"proof", "on", "not built yet"},
		{"tool-mode", "json", "not built yet"},
		{"max-attempt", "3", "did you mean max-attempts?"},
		{"playbook", "x", "repository file"},
		{"zzz", "x", "not a known setting"},
	} {
		for _, where := range []string{"INPUT_" + strings.ToUpper(test.name), ownVariable(test.name), "flag"} {
			env := step("HOME", "/srv/runner/home")
			s := sources(env)
			if where == "flag" {
				s.Flags = map[string]string{test.name: test.value}
			} else {
				env[where] = test.value
			}
			got := strings.Join(problems(t, s), "\n")
			if !strings.Contains(got, test.want) || !strings.Contains(got, strings.ToLower(test.name)) {
				t.Errorf("%s %s=%q: %q, want %q", where, test.name, test.value, got, test.want)
			}
		}
	}
}

func TestGoodValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, value string
		ok          func(*Config) bool
	}{
		{"agent-timeout", "1h30m", func(c *Config) bool { return c.AgentTimeout == 90*time.Minute }},
		{"agent-timeout", "1.5h", func(c *Config) bool { return c.AgentTimeout == 90*time.Minute }},
		{"cost-limit", "0", func(c *Config) bool { return c.CostLimit == 0 && c.CostLimitGiven }},
		{"model", "openai/gpt", func(c *Config) bool { return c.Model.Name == "gpt" }},
		{"model", "openrouter/a/b", func(c *Config) bool { return c.Model == Model{"openrouter", "a/b"} }},
		{"model", "ollama_chat/qwen:7b", func(c *Config) bool { return c.Model == Model{"ollama", "qwen:7b"} }},
		{"model", "replay//tmp/t.jsonl", func(c *Config) bool { return c.Model == Model{"replay", "/tmp/t.jsonl"} }},
		{"model-base-url", "https://example.com/v1/", func(c *Config) bool { return c.ModelBase == "https://example.com/v1" }},
		{"model-base-url", "http://127.0.0.1:8080/v1", func(c *Config) bool { return c.ModelBase == "http://127.0.0.1:8080/v1" }},
		{"model-base-url", "http://[fd00::1]:80", func(c *Config) bool { return c.ModelBase != "" }},
		{"model-base-url", "http://ollama:11434", func(c *Config) bool { return c.ModelBase != "" }},
		{"model-base-url", "http://10.1.2.3", func(c *Config) bool { return c.ModelBase != "" }},
		{"server-url", "https://host.example/gitea/", func(c *Config) bool { return c.ServerURL == "https://host.example/gitea" }},
		{"base-branch", "release/1.x", func(c *Config) bool { return c.BaseBranch == "release/1.x" }},
		{"tool-mode", "native", func(c *Config) bool { return true }},
		{"sandbox", "off", func(c *Config) bool { return c.Sandbox == "off" }},
		{"network", "db:3306\n# no\n[0::1]:80\nDB.example.:1\n10.0.0.7:1\n_x.a-b:65535", func(c *Config) bool {
			return slices.Equal(c.Network, []string{"db:3306", "[::1]:80", "db.example:1", "10.0.0.7:1", "_x.a-b:65535"})
		}},
		{"network", "none", func(c *Config) bool { return len(c.Network) == 0 }},
		{"setup-network", "", func(c *Config) bool { return c.SetupOpen }},
		{"setup-network", "none", func(c *Config) bool { return !c.SetupOpen && len(c.SetupNetwork) == 0 }},
		{"setup-network", "proxy:3128", func(c *Config) bool { return !c.SetupOpen && slices.Equal(c.SetupNetwork, []string{"proxy:3128"}) }},
		{"memory-limit", "2G", func(c *Config) bool {
			return c.Memory == 2<<30 && c.Disk == 4<<30 && c.Processes == 512 && c.FileSize == 1<<30
		}},
		{"output-limit", "2048 KiB", func(c *Config) bool { return c.Output == 2<<20 && c.OpenFiles == 8192 && c.CPU == time.Hour }},
		{"toolchains", "/root/.cargo\n/opt/hostedtoolcache", func(c *Config) bool { return len(c.Toolchains) == 2 }},
		{"caches", "/opt/go/pkg/mod/\n/home/someone/.npm", func(c *Config) bool { return slices.Equal(c.Caches, []string{"/opt/go/pkg/mod", "/home/someone/.npm"}) }},
		{"setup-commands", "a ;; b\n# no\n\nc", func(c *Config) bool { return slices.Equal(c.SetupCommands, []string{"a", "b", "c"}) }},
		{"test-env", "# no\nA=b=c\nDB_DATABASE=app_Test\nB=", func(c *Config) bool { return slices.Equal(c.TestEnv, []string{"A=b=c", "DB_DATABASE=app_Test", "B="}) }},
		{"allow-direct", "TRUE", func(c *Config) bool { return c.AllowDirect }},
		{"unknown-but-empty", "", func(c *Config) bool { return true }},
	} {
		env := step("INPUT_"+strings.ToUpper(test.name), test.value, "OPENAI_API_KEY", "key-of-openai-0000", "OPENROUTER_API_KEY", "key-of-openrouter-0")
		if c := mustLoad(t, sources(env)); !test.ok(c) {
			t.Errorf("%s=%q: %+v", test.name, test.value, c)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		model, base string
		env         []string
		want        string // problem, "" for none
		key         string
	}{
		{model: "mistral/x", want: "MISTRAL_API_KEY"},
		{model: "mistral/x", env: []string{"MISTRAL_API_KEY", "m"}, key: "m"},
		{model: "mistral/x", env: []string{"OPENAI_API_KEY", "o"}, want: "mistral wants a key"},
		{model: "anthropic/x", env: []string{"ANTHROPIC_API_KEY", "a"}, key: "a"},
		{model: "gemini/x", env: []string{"GEMINI_API_KEY", "g"}, key: "g"},
		{model: "deepseek/x", env: []string{"DEEPSEEK_API_KEY", "d", "ISSUESMITH_MODEL_API_KEY", "own"}, key: "own"},
		{model: "openai/x", base: "http://localhost:1"},
		{model: "openai/x", base: "https://example.com", want: "openai wants a key"},
		{model: "ollama/x"},
		{model: "custom/x", want: "model-base-url: is required"},
		{model: "custom/x", base: "https://example.com/v1"},
		{model: "replay/t.jsonl"},
		{model: "mistral/x", env: []string{"MISTRAL_API_KEY", "a key"}, want: "holds a blank"},
	} {
		env := step(append(test.env, "INPUT_MODEL", test.model, "INPUT_MODEL-BASE-URL", test.base, "INPUT_MODEL-API-KEY", "")...)
		got := problems(t, sources(env))
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)) {
			t.Errorf("%+v: %q", test, got)
		}
		if c, _ := Load(sources(env)); test.key != "" && c.ModelKey != test.key {
			t.Errorf("%+v: key %q", test, c.ModelKey)
		}
	}
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	for entry, ok := range map[string]bool{
		"DB_DATABASE=shop":                 false,
		"db_name=shop":                     false,
		"WP_DB_NAME=":                      false,
		"DB_DATABASE=/var/lib/x.sqlite":    false,
		"DB_DATABASE=../x.sqlite":          false,
		"DB_DATABASE=shop_testing":         true,
		"DB_DATABASE=:memory:":             true,
		"DB_DATABASE=database/data.sqlite": true,
		"DB_HOST=shop":                     true,
	} {
		got := problems(t, sources(step("INPUT_TEST-ENV", entry)))
		if ok != (len(got) == 0) {
			t.Errorf("%s: %q", entry, got)
		}
		if got := problems(t, sources(step("INPUT_TEST-ENV", entry, "INPUT_ALLOW-ANY-DATABASE", "true"))); len(got) > 0 {
			t.Errorf("%s allowed: %q", entry, got)
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	canary := "canary-4711-xyz"
	env := step("INPUT_TOKEN", canary+" a", "INPUT_MODEL-API-KEY", canary+" b", "INPUT_SOMETHING", canary, "INPUT_TEST-ENV", canary+"\nDB_PASSWORD="+canary+"c\nX Y="+canary,
		"GITHUB_REPOSITORY", "https://u:"+canary+"@host/x", "ISSUESMITH_CONTRACT", canary)
	s := sources(env)
	s.File = []byte("token: " + canary + "\nunknown: " + canary + "\n")
	if _, err := Load(s); strings.Contains(err.Error(), canary) {
		t.Errorf("shown:\n%v", err)
	}
	env = step("INPUT_TOKEN", canary+"1", "INPUT_MODEL-API-KEY", canary+"2", "INPUT_TEST-ENV", "DB_PASSWORD="+canary+"3\nAPP_KEY="+canary+"4\nPLAIN=word", "OPENAI_API_KEY", canary+"5", "ACTIONS_RUNTIME_TOKEN", canary+"6")
	c := mustLoad(t, sources(env))
	for _, n := range "123456" {
		if !slices.Contains(slices.Concat(c.Credentials(), c.TestSecrets()), canary+string(n)) {
			t.Errorf("secret %c is not known: %q", n, c.Credentials())
		}
	}
	effective := c.Effective()
	for name, shown := range effective {
		if list, ok := shown.([]string); ok {
			shown = strings.Join(list, "\n")
		}
		if text, ok := shown.(string); ok && strings.Contains(text, canary) {
			t.Errorf("%s shows %q", name, text)
		}
	}
	if effective["token"] != "***" || !slices.Equal(effective["test-env"].([]string), []string{"DB_PASSWORD=***", "APP_KEY=***", "PLAIN=word"}) {
		t.Errorf("effective: %v", effective)
	}
	if len(effective) != len(Settings()) {
		t.Errorf("%d effective values, %d settings", len(effective), len(Settings()))
	}
}
