package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An alias is another variable that a setting is read from, after ISSUESMITH_….
type alias struct {
	name     string
	provider string // read only where the model is this provider's
	quiet    bool   // the usual name of the value, no note
	note     string // more to say than that the old name was used
	convert  func(text string, l *loader) (string, error)
}

func seconds(text string, _ *loader) (string, error) {
	if !plainForm.MatchString(text) {
		return "", errors.New("must be a number of seconds")
	}
	return text + "s", nil
}

// pythonLevel takes the level names that the older worker's language used.
func pythonLevel(text string, _ *loader) (string, error) {
	switch text = strings.ToLower(text); text {
	case "warning":
		return "warn", nil
	case "critical", "fatal":
		return "error", nil
	}
	return text, nil
}

func oldMode(text string, _ *loader) (string, error) {
	switch strings.ReplaceAll(strings.ToLower(text), "_", "-") {
	case "pr", "pull-request", "pull-requests":
		return "pr", nil
	case "direct", "direct-main", "main":
		return "direct", nil
	case "dry-run":
		return "dry-run", nil
	}
	return "", errors.New("must be pull_request, direct_main or dry_run; the setting's name is now mode: pr, direct or dry-run")
}

// oldBool takes what shells and compose files call true.
func oldBool(text string, _ *loader) (string, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "on":
		return "true", nil
	case "false", "0", "no", "off":
		return "false", nil
	}
	return "", errors.New("must be true or false")
}

// ownedRepository joins GITEA_OWNER and GITEA_REPOSITORY.
func ownedRepository(text string, l *loader) (string, error) {
	if strings.Contains(text, "/") {
		return text, nil
	}
	owner := l.env("GITEA_OWNER")
	if owner == "" {
		return "", errors.New("needs GITEA_OWNER beside it, or give repository as owner/name")
	}
	return owner + "/" + text, nil
}

// aliases are the older worker's names and the usual names of keys, by setting,
// strongest first.
func aliases() map[string][]alias {
	out := map[string][]alias{
		"token":             {{name: "GITEA_TOKEN"}},
		"model":             {{name: "AGENT_MODEL"}},
		"model-base-url":    {{name: "AGENT_MODEL_API_BASE"}, {name: "OPENAI_API_BASE", provider: "openai"}, {name: "OLLAMA_API_BASE", provider: "ollama"}},
		"setup-commands":    {{name: "SETUP_COMMANDS"}},
		"test-commands":     {{name: "TEST_COMMANDS"}},
		"max-attempts":      {{name: "MAX_AGENT_ATTEMPTS"}},
		"step-limit":        {{name: "AGENT_STEP_LIMIT"}},
		"cost-limit":        {{name: "AGENT_COST_LIMIT", note: "it limited one attempt there and limits the whole run here"}},
		"agent-timeout":     {{name: "AGENT_TIMEOUT_SECONDS", convert: seconds}},
		"command-timeout":   {{name: "AGENT_COMMAND_TIMEOUT_SECONDS", convert: seconds}},
		"max-changed-files": {{name: "MAX_CHANGED_FILES"}},
		"max-changed-lines": {{name: "MAX_CHANGED_LINES"}},
		"mode":              {{name: "AUTOMATION_MODE", convert: oldMode}},
		"base-branch":       {{name: "SOURCE_BRANCH"}},
		"queued-label":      {{name: "GITEA_QUEUED_LABEL"}},
		"running-label":     {{name: "GITEA_RUNNING_LABEL"}},
		"ready-label":       {{name: "GITEA_READY_LABEL"}},
		"failed-label":      {{name: "GITEA_FAILED_LABEL"}},
		"log-level":         {{name: "LOG_LEVEL", convert: pythonLevel}},
		"server-url":        {{name: "GITEA_URL"}},
		"repository":        {{name: "GITEA_REPOSITORY", convert: ownedRepository}, {name: "SOURCE_REPOSITORY"}},
		"allow-direct":      {{name: "ALLOW_DIRECT_MAIN", convert: oldBool}},
	}
	for _, p := range providers {
		if p.key != "" {
			out["model-api-key"] = append(out["model-api-key"], alias{name: p.key, provider: p.name, quiet: true})
		}
	}
	return out
}

// retired are names of the older worker that have nothing to set here. They are
// answered, since people copy whole environments, and are no mistake.
func (l *loader) retired() {
	var intake []string
	for _, name := range l.names {
		if (strings.HasPrefix(name, "FAILURE_DB_") || name == "AGENT_COMMAND") && l.env(name) != "" {
			intake = append(intake, name)
		}
	}
	if len(intake) > 0 {
		l.note("%s: ignored, since failures are no longer read from a database: issues of the forge are the only way in, and the agent is built in", strings.Join(intake, ", "))
	}
	for _, r := range []struct{ name, why string }{
		{"AGENT_USER", "commands get a user of their own from the sandbox"},
		{"WORKSPACE_ROOT", "every run makes its own folder below RUNNER_TEMP, or XDG_STATE_HOME on a desk"},
		{"WORKER_ID", "a claim names its run, no worker needs a name"},
		{"STALE_CLAIM_MINUTES", "a claim carries its own deadline, set by run-timeout"},
		{"POLL_SECONDS", "polling comes with the command worker, which is not built yet: use a schedule with sweep"},
	} {
		if slices.Contains(l.names, r.name) && l.env(r.name) != "" {
			l.note("%s: ignored, %s", r.name, r.why)
		}
	}
}

// alias finds a setting's value under its older names.
func (l *loader) alias(name string) (value, bool, error) {
	for _, a := range l.aliases[name] {
		if a.provider != "" && a.provider != l.config.Model.Provider {
			continue
		}
		text := l.env(a.name)
		if text == "" {
			continue
		}
		v := value{where: "environment " + a.name, text: text}
		if !a.quiet {
			note := fmt.Sprintf("%s: the older worker's name for %s, used as such", a.name, name)
			if a.note != "" {
				note += "; " + a.note
			}
			l.note("%s", note)
		}
		if a.convert == nil {
			return v, true, nil
		}
		converted, err := a.convert(text, l)
		if err == nil {
			v.text = converted
		}
		return v, true, err
	}
	return value{}, false, nil
}
