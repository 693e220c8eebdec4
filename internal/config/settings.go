package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A setting is a Setting with what Load needs of it.
type setting struct {
	Setting
	preset   string // read when nothing is given; "" leaves the zero value
	fallback string // variable of a workflow step that is the default
	list     bool   // may be a YAML list
	noFile   string // why it cannot be in the repository file, "" if it can
	read     func(c *Config, v value) error
	show     func(c *Config) any // for Effective
}

// table is every setting that works in this version, in the order people read it.
func table() []setting {
	all := append(runSettings(), isolationSettings()...)
	return append(append(all, forgeSettings()...), fileSettings()...)
}

func runSettings() []setting {
	minute := time.Minute
	return []setting{
		secret("token", "the job's token, or a personal one that may push and write issues and pull requests",
			func(c *Config) *string { return &c.Token }).shown("${{ github.token }}", "required with a forge"),
		whole("issue", 0, 1, 1<<31-1, "number of the issue to work on", func(c *Config) *int { return &c.Issue }).
			shown("from the event", "positive number").outsideFile("it says which issue one run works on: give it to the run"),
		modelSetting(),
		text("model-base-url", "", "address of the model's endpoint", func(c *Config) *string { return &c.ModelBase }, parseURL).
			shown("of the provider", "https, or http to a loopback, private or service address"),
		secret("model-api-key", "key of the model's provider, from a secret; else MISTRAL_API_KEY and the like",
			func(c *Config) *string { return &c.ModelKey }).shown("of the provider's variable", "required by hosted providers"),
		whole("context-limit", 0, 2048, 2_000_000, "size of the model's context in tokens", func(c *Config) *int { return &c.Context }).
			shown("asked of the endpoint, else 32768", "2048–2000000"),
		commands("setup-commands", "run before the agent starts; a failure is infrastructure", func(c *Config) *[]string { return &c.SetupCommands }).
			shown("none", "one a line, or separated by ;;"),
		commands("test-commands", "must pass before anything is published", func(c *Config) *[]string { return &c.TestCommands }).
			shown("required", "one a line, or separated by ;;"),
		{
			Setting: Setting{Name: "test-env", Default: "none", Range: "KEY=VALUE lines", Input: true, Help: "all that commands see beside the base environment"},
			list:    true, read: readTestEnv, show: showTestEnv,
		},
		boolean("redact-personal", "redact e-mail and IP addresses too", func(c *Config) *bool { return &c.Personal }),
		whole("max-attempts", 3, 1, 10, "agent conversations until the gate must pass", func(c *Config) *int { return &c.MaxAttempts }),
		whole("step-limit", 50, 1, 500, "model calls an attempt", func(c *Config) *int { return &c.StepLimit }),
		costLimit(),
		duration("agent-timeout", 20*minute, minute, 2*time.Hour, "time of an attempt", func(c *Config) *time.Duration { return &c.AgentTimeout }),
		duration("command-timeout", 3*minute, 10*time.Second, 30*minute, "time of a command of the agent", func(c *Config) *time.Duration { return &c.CommandTimeout }),
		duration("test-timeout", 30*minute, 10*time.Second, 2*time.Hour, "time of a setup or test command", func(c *Config) *time.Duration { return &c.TestTimeout }),
		duration("run-timeout", 100*minute, 5*minute, 170*minute, "time of the whole run, below the runner's 3 h", func(c *Config) *time.Duration { return &c.RunTimeout }),
		whole("max-changed-files", 12, 1, 100, "files a change may touch", func(c *Config) *int { return &c.MaxFiles }),
		whole("max-changed-lines", 800, 1, 10_000, "lines a change may add and delete", func(c *Config) *int { return &c.MaxLines }),
	}
}

func forgeSettings() []setting {
	minute := time.Minute
	return []setting{
		choice("mode", "pr", []string{"pr", "dry-run", "direct"}, "what happens with a change that passed: a pull request, a patch only, or a push to the base branch (wants allow-direct and direct-paths)",
			func(c *Config) *string { return &c.Mode }),
		text("base-branch", "", "branch the pull request goes to", func(c *Config) *string { return &c.BaseBranch }, parseBranch).
			shown("the branch that is checked out", "name of a branch"),
		text("ci-workflow", "", "workflow to dispatch on the new branch, since the job's token starts none (wants actions: write)",
			func(c *Config) *string { return &c.CIWorkflow }, parseWorkflow).shown("none", "file name, like ci.yml"),
		text("branch-prefix", "ai/issue-", "start of the new branch's name, the issue's number follows", func(c *Config) *string { return &c.Prefix }, parsePrefix).
			shown("ai/issue-", "makes a branch's name with a number after it"),
		label("queued-label", "ai:queued", "label that asks for a run", func(c *Config) *string { return &c.Queued }),
		label("running-label", "ai:running", "label while a run works", func(c *Config) *string { return &c.Running }),
		label("ready-label", "ai:ready", "label when a pull request waits for a person", func(c *Config) *string { return &c.Ready }),
		label("failed-label", "ai:failed", "label when the run did not succeed", func(c *Config) *string { return &c.Failed }),
		choice("log-level", "info", []string{"debug", "info", "warn", "error"}, "how much the log says", func(c *Config) *string { return &c.LogLevel }),
		text("server-url", "", "address of the Gitea instance", func(c *Config) *string { return &c.ServerURL }, parseURL).
			shown("of the workflow", "https, or http to a loopback, private or service address").fromStep("GITHUB_SERVER_URL"),
		text("repository", "", "repository the issue belongs to", func(c *Config) *string { return &c.Repository }, parseRepository).
			shown("of the workflow", "owner/name").fromStep("GITHUB_REPOSITORY"),
		duration("first-token-timeout", 5*minute, 10*time.Second, 30*minute, "wait for the first token of an answer", func(c *Config) *time.Duration { return &c.FirstToken }),
		duration("token-timeout", minute, 5*time.Second, 10*minute, "wait for the next token of an answer", func(c *Config) *time.Duration { return &c.BetweenTokens }),
		text("commit-name", "issuesmith", "author of the commit", func(c *Config) *string { return &c.CommitName }, parseName).
			shown("issuesmith", "name without < and >"),
		text("commit-email", "issuesmith@localhost", "address of the commit's author", func(c *Config) *string { return &c.CommitEmail }, parseEmail).
			shown("issuesmith@localhost", "address"),
		boolean("allow-direct", "allow mode: direct", func(c *Config) *bool { return &c.AllowDirect }),
		boolean("allow-any-database", "allow test databases without \"test\" in their name", func(c *Config) *bool { return &c.AllowAnyDatabase }),
	}
}

func fileSettings() []setting {
	return []setting{
		fileOnly("trusted-users", "users whose comments on an issue the model may read", "list of user names", readUsers, func(c *Config) any { return c.TrustedUsers }).listed(),
		fileOnly("protected-paths", "paths that no change may touch, beside the built-in list", "list of globs", readGlobs(func(c *Config) *[]string { return &c.ProtectedPaths }), func(c *Config) any { return c.ProtectedPaths }).listed(),
		fileOnly("allow-paths", "paths taken out of the built-in protected list", "list of globs", readGlobs(func(c *Config) *[]string { return &c.AllowPaths }), func(c *Config) any { return c.AllowPaths }).listed(),
		fileOnly("direct-paths", "all that mode: direct may touch", "list of globs", readGlobs(func(c *Config) *[]string { return &c.DirectPaths }), func(c *Config) any { return c.DirectPaths }).listed(),
		fileOnly("playbook", "what the model should know about this repository", fmt.Sprintf("text, at most %d characters", playbookLimit), readPlaybook, func(c *Config) any { return c.Playbook }),
		fileOnly("prices", "USD per million tokens, by model: prompt, completion and, where it differs from prompt, cached", "mapping", readPrices, showPrices),
	}
}

func (s setting) shown(def, allowed string) setting {
	s.Default, s.Range = def, allowed
	return s
}

func (s setting) listed() setting {
	s.list = true
	return s
}

func (s setting) fromStep(variable string) setting {
	s.fallback = variable
	return s
}

func (s setting) outsideFile(why string) setting {
	s.noFile = why
	return s
}

func whole(name string, preset, low, high int, help string, at func(*Config) *int) setting {
	s := setting{Setting: Setting{Name: name, Range: wholeRange(low, high), Help: help, Input: true}}
	if preset != 0 {
		s.preset = strconv.Itoa(preset)
		s.Default = s.preset
	}
	s.read = func(c *Config, v value) (err error) {
		*at(c), err = parseWhole(v.text, low, high)
		return err
	}
	s.show = func(c *Config) any { return *at(c) }
	return s
}

func duration(name string, preset, low, high time.Duration, help string, at func(*Config) *time.Duration) setting {
	s := setting{Setting: Setting{Name: name, Default: shortDuration(preset), Range: durationRange(low, high), Help: help, Input: true}, preset: shortDuration(preset)}
	s.read = func(c *Config, v value) (err error) {
		*at(c), err = parseDuration(v.text, low, high)
		return err
	}
	s.show = func(c *Config) any { return shortDuration(*at(c)) }
	return s
}

func boolean(name, help string, at func(*Config) *bool) setting {
	s := setting{Setting: Setting{Name: name, Default: "false", Range: "true, false", Help: help, Input: true, Bool: true}, preset: "false"}
	s.read = func(c *Config, v value) (err error) {
		*at(c), err = parseBool(v.text)
		return err
	}
	s.show = func(c *Config) any { return *at(c) }
	return s
}

func choice(name, preset string, allowed []string, help string, at func(*Config) *string) setting {
	all := strings.Join(allowed, ", ")
	s := text(name, preset, help, at, func(text string) (string, error) {
		for _, a := range allowed {
			if text == a {
				return text, nil
			}
		}
		return "", fmt.Errorf("must be one of %s%s", all, nearest(text, allowed))
	})
	s.Range = all
	return s
}

// text is a setting of one line; parse checks it and returns it in its final form.
func text(name, preset, help string, at func(*Config) *string, parse func(string) (string, error)) setting {
	s := setting{Setting: Setting{Name: name, Default: preset, Help: help, Input: true}, preset: preset}
	s.read = func(c *Config, v value) error {
		parsed, err := parse(v.text)
		if err == nil {
			err = plain(parsed)
		}
		if err == nil {
			*at(c) = parsed
		}
		return err
	}
	s.show = func(c *Config) any { return *at(c) }
	return s
}

func label(name, preset, help string, at func(*Config) *string) setting {
	s := text(name, preset, help, at, func(text string) (string, error) {
		// A comma would end the name where the forge is asked for issues by label.
		if strings.Contains(text, ",") || len([]rune(text)) > 50 {
			return "", errors.New("must be a label's name: at most 50 characters, no comma")
		}
		return text, nil
	})
	s.Range = "four different labels"
	return s
}

func secret(name, help string, at func(*Config) *string) setting {
	s := text(name, "", help, at, func(text string) (string, error) {
		for _, r := range text {
			if r <= ' ' || r > '~' { // it goes into a header
				return "", errors.New("holds a blank, a line end or a character outside ASCII: it was probably not copied as a whole")
			}
		}
		return text, nil
	})
	s.Secret = true
	s.noFile = "secrets never come from the file: give it as an input from a secret of the repository"
	s.show = func(c *Config) any {
		if *at(c) == "" {
			return ""
		}
		return "***"
	}
	return s
}

func commands(name, help string, at func(*Config) *[]string) setting {
	s := setting{Setting: Setting{Name: name, Help: help, Input: true}, list: true}
	s.read = func(c *Config, v value) error {
		var out []string
		if v.isList {
			for _, item := range v.list { // whole, so that a command may have lines and ;; of its own
				if item = strings.TrimSpace(item); item != "" && (strings.Contains(item, "\n") || !isComment(item)) {
					out = append(out, item)
				}
			}
		} else {
			out = splitCommands(v.text)
		}
		for _, command := range out {
			if strings.ContainsRune(command, 0) {
				return errors.New("holds a NUL character")
			}
		}
		*at(c) = out
		return nil
	}
	s.show = func(c *Config) any { return *at(c) }
	return s
}

func modelSetting() setting {
	s := setting{Setting: Setting{Name: "model", Default: "mistral/devstral-latest", Input: true, Help: "the model that works on the issue; replay/FILE answers from a transcript"}}
	s.preset = s.Default
	s.Range = "provider/name; providers: " + strings.Join(providerNames(), ", ")
	s.read = func(c *Config, v value) (err error) {
		c.Model, err = parseModel(v.text)
		return err
	}
	s.show = func(c *Config) any { return c.Model.String() }
	return s
}

func costLimit() setting {
	s := setting{Setting: Setting{Name: "cost-limit", Default: "5", Range: "0 or more, 0 is off", Help: "USD a run", Input: true}, preset: "5"}
	s.read = func(c *Config, v value) (err error) {
		c.CostLimit, err = parseAmount(v.text)
		c.CostLimitGiven = v.where != ""
		return err
	}
	s.show = func(c *Config) any { return c.CostLimit }
	return s
}

func fileOnly(name, help, allowed string, read func(*Config, value) error, show func(*Config) any) setting {
	def := "none"
	if name == "prices" {
		def = "built-in table"
	}
	return setting{Setting: Setting{Name: name, Default: def, Range: allowed, Help: help, FileOnly: true}, read: read, show: show}
}

// Names that go into refs are held to a plain subset of what git allows.
var refForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+#-]*(/[A-Za-z0-9_][A-Za-z0-9._+#-]*)*$`)

func parseBranch(text string) (string, error) {
	if !refForm.MatchString(text) || strings.Contains(text, "..") || strings.HasSuffix(text, ".") ||
		strings.HasPrefix(text, "refs/") || strings.Contains(text+"/", ".lock/") || len(text) > 200 {
		return "", errors.New("must be the name of a branch, like main (without refs/heads/)")
	}
	return text, nil
}

func parsePrefix(text string) (string, error) {
	if _, err := parseBranch(text + "1"); err != nil || len(text) > 100 {
		return "", errors.New("must make the name of a branch with a number after it, like ai/issue-")
	}
	return text, nil
}

var workflowForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*\.ya?ml$`)

func parseWorkflow(text string) (string, error) {
	if !workflowForm.MatchString(text) {
		return "", errors.New("must be the file name of a workflow without its folder, like ci.yml")
	}
	return text, nil
}

var repositoryForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`)

func parseRepository(text string) (string, error) {
	if !repositoryForm.MatchString(text) || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") ||
		strings.HasSuffix(text, "/.") || strings.HasSuffix(text, "/..") {
		return "", errors.New("must be owner/name")
	}
	return text, nil
}

func parseName(text string) (string, error) {
	if strings.ContainsAny(text, "<>") || len(text) > 100 {
		return "", errors.New("must be a name without < and >, at most 100 characters")
	}
	return text, nil
}

var emailForm = regexp.MustCompile(`^[^\s<>@]+@[^\s<>@]+$`)

func parseEmail(text string) (string, error) {
	if !emailForm.MatchString(text) || len(text) > 200 {
		return "", errors.New("must be an address like issuesmith@example.org")
	}
	return text, nil
}
