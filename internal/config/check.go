package config

import (
	"fmt"
	"strings"

	"issuesmith/internal/redact"
)

// checkRequired tells what nobody gave.
func (l *loader) checkRequired() {
	c := l.config
	missing := func(key, message string) {
		// A file that cannot be read may hold what seems to be missing.
		if !l.failed[key] && !l.failed["file"] {
			l.add(Problem{Where: l.where[key], Key: key, Message: message})
		}
	}
	if len(c.TestCommands) == 0 && !l.sources.NoTests {
		missing("test-commands", "is required: the commands that must pass before anything is published")
	}
	if l.sources.Local {
		return
	}
	if c.Token == "" {
		missing("token", "is required: the job's token (${{ github.token }}) or a personal one")
	}
	if c.ServerURL == "" {
		missing("server-url", "is required outside a workflow: the address of the Gitea instance")
	}
	if c.Repository == "" {
		missing("repository", "is required outside a workflow: owner/name")
	}
}

// checkLabels wants four different names. Names that differ only in case would be
// told apart by the forge, and by nobody who reads them.
func (l *loader) checkLabels() {
	c := l.config
	seen := map[string]string{}
	for _, label := range []struct{ key, name string }{
		{"queued-label", c.Queued}, {"running-label", c.Running}, {"ready-label", c.Ready}, {"failed-label", c.Failed},
	} {
		folded := strings.ToLower(label.name)
		if other, twice := seen[folded]; twice && folded != "" {
			l.add(Problem{Where: l.where[label.key], Key: label.key, Value: label.name, Message: "is the same label as " + other + ": the four labels must differ"})
			continue
		}
		seen[folded] = label.key
	}
}

// checkDirect guards the base branch.
func (l *loader) checkDirect() {
	c := l.config
	if c.Mode != "direct" {
		return
	}
	if !c.AllowDirect {
		l.add(Problem{Where: l.where["mode"], Key: "mode", Value: "direct", Message: "pushes to the base branch without a review, and so wants allow-direct: true as well"})
	}
	if len(c.DirectPaths) == 0 && !l.failed["direct-paths"] && !l.failed["file"] {
		l.add(Problem{Where: l.where["mode"], Key: "mode", Value: "direct", Message: "wants direct-paths in " + l.sources.FileName + ": the only files such a push may touch"})
	}
}

// warn notes what is allowed and probably not meant.
func (l *loader) warn() {
	c := l.config
	common := func(name, text string) {
		if text != "" && redact.Ordinary(text) {
			l.note("%s: its value is too short or too common a word to be blanked in logs and requests; use a longer one", name)
		}
	}
	common("token", c.Token)
	common("model-api-key", c.ModelKey)
	for _, entry := range c.TestEnv {
		if name, text, _ := strings.Cut(entry, "="); secretName(name) {
			common("test-env "+name, text)
		}
	}
	for _, pair := range []struct {
		inner, outer string
		longer       bool
	}{
		{"command-timeout", "agent-timeout", c.CommandTimeout > c.AgentTimeout},
		{"agent-timeout", "run-timeout", c.AgentTimeout > c.RunTimeout},
		{"test-timeout", "run-timeout", c.TestTimeout > c.RunTimeout},
		{"token-timeout", "first-token-timeout", c.BetweenTokens > c.FirstToken},
	} {
		if pair.longer && !l.failed[pair.inner] && !l.failed[pair.outer] {
			l.note("%s is longer than %s, which ends first", pair.inner, pair.outer)
		}
	}
}

// nearest is a hint at the name that was probably meant, "" when none is near.
func nearest(name string, known []string) string {
	best, distance := "", len(name)/3+1
	for _, k := range known {
		if d := edits(name, k); d <= distance && d < len(k) {
			if best == "" || d < distance {
				best = k
			}
			distance = d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", best)
}

// edits counts the insertions, deletions and replacements that make b of a.
func edits(a, b string) int {
	if len(a) > 64 {
		return len(a) // no setting is that long
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
