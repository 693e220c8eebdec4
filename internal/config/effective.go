package config

import (
	"slices"
	"strings"
)

// Effective is the configuration as name → value for check and transcript, secrets as "***".
func (c *Config) Effective() map[string]any {
	out := map[string]any{}
	for _, s := range table() {
		shown := s.show(c)
		if list, isList := shown.([]string); isList {
			shown = append([]string{}, list...) // an empty list, not null
		}
		out[s.Name] = shown
	}
	return out
}

// Credentials are the secrets that open something outside: they are redacted always.
func (c *Config) Credentials() []string {
	return distinct(append([]string{c.Token, c.ModelKey}, c.bystanders...))
}

// TestSecrets are the secret values of test-env. One that stands in the repository is an ordinary
// word there, and blanking it would spoil honest text: the run decides when it has the tree.
func (c *Config) TestSecrets() []string {
	var out []string
	for _, entry := range c.TestEnv {
		if name, text, _ := strings.Cut(entry, "="); secretName(name) {
			out = append(out, text)
		}
	}
	return distinct(out)
}

// distinct sorts and drops what is empty or twice there.
func distinct(out []string) []string {
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

func showTestEnv(c *Config) any {
	out := make([]string, len(c.TestEnv))
	for i, entry := range c.TestEnv {
		if name, text, _ := strings.Cut(entry, "="); secretName(name) && text != "" {
			entry = name + "=***"
		}
		out[i] = entry
	}
	return out
}

func showPrices(c *Config) any {
	out := map[string]any{}
	for model, p := range c.Prices {
		out[model] = map[string]float64{"prompt": p.Prompt, "cached": p.Cached, "completion": p.Completion}
	}
	return out
}
