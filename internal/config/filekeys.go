package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"
)

// playbookLimit is in characters, as much as of an issue's body goes to the model.
const playbookLimit = 20_000

var userForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func readUsers(c *Config, v value) error {
	var mistakes []error
	for i, name := range v.lines() {
		if !userForm.MatchString(name) {
			mistakes = append(mistakes, &itemError{v.lineOf(i), name, "must be the name of a user, without @"})
			continue
		}
		c.TrustedUsers = append(c.TrustedUsers, name)
	}
	return errors.Join(mistakes...)
}

func readGlobs(at func(*Config) *[]string) func(*Config, value) error {
	return func(c *Config, v value) error {
		var mistakes []error
		for i, glob := range v.lines() {
			if err := checkGlob(glob); err != nil {
				mistakes = append(mistakes, &itemError{v.lineOf(i), glob, err.Error()})
				continue
			}
			*at(c) = append(*at(c), glob)
		}
		return errors.Join(mistakes...)
	}
}

// checkGlob wants a pattern that can match a path of a repository: one that never
// matches would protect nothing without a word.
func checkGlob(glob string) error {
	switch {
	case plain(glob) != nil:
		return errors.New("must not hold control characters")
	case strings.HasPrefix(glob, "/"):
		return errors.New("must be relative to the repository: take the / at the start away")
	case strings.HasPrefix(glob, "!"):
		return errors.New("cannot be negated: list what is meant")
	case strings.Contains(glob, `\`):
		return errors.New(`must use / between folders and no \`)
	case !doublestar.ValidatePattern(glob):
		return errors.New("is not a valid pattern: *, **, ?, [a-z] and {a,b} are understood")
	case path.Clean(glob) != strings.TrimSuffix(glob, "/") || strings.HasPrefix(glob, ".."):
		return errors.New("must not hold . or .. or // as a part of the path")
	}
	return nil
}

func readPlaybook(c *Config, v value) error {
	if v.isList || v.node != nil && v.node.Kind != yaml.ScalarNode {
		return errors.New("must be a text")
	}
	if n := len([]rune(v.text)); n > playbookLimit {
		return &itemError{value: fmt.Sprintf("%d characters", n), message: fmt.Sprintf("must be at most %d characters", playbookLimit)}
	}
	c.Playbook = v.text
	return nil
}

// readPrices reads model → {prompt, cached, completion}. cached is prompt's where it
// is not given.
func readPrices(c *Config, v value) error {
	if v.node == nil || v.node.Kind != yaml.MappingNode {
		return errors.New("must be a mapping of model names to prompt, cached and completion")
	}
	var mistakes []error
	c.Prices = map[string]Price{}
	for key, node := range pairs(v.node) {
		price, err := readPrice(key, node)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		c.Prices[key.Value] = price
	}
	return errors.Join(mistakes...)
}

func readPrice(key, node *yaml.Node) (Price, error) {
	model := key.Value
	if strings.TrimSpace(model) == "" || plain(model) != nil {
		return Price{}, &itemError{key.Line, model, "must be the name of a model"}
	}
	if node.Kind != yaml.MappingNode {
		return Price{}, &itemError{node.Line, model, "must be a mapping with prompt and completion"}
	}
	got := map[string]float64{}
	var mistakes []error
	for part, amount := range pairs(node) {
		switch part.Value {
		case "prompt", "cached", "completion":
		default:
			mistakes = append(mistakes, &itemError{part.Line, model + "." + part.Value, "is not known" +
				nearest(part.Value, []string{"prompt", "cached", "completion"})})
			continue
		}
		text, err := scalar(amount)
		if err == nil {
			got[part.Value], err = parseAmount(text)
		}
		if err != nil {
			mistakes = append(mistakes, &itemError{amount.Line, model + "." + part.Value + ": " + amount.Value, err.Error()})
			got[part.Value] = 0
		}
	}
	for _, part := range []string{"prompt", "completion"} {
		if _, given := got[part]; !given {
			mistakes = append(mistakes, &itemError{key.Line, model, "has no " + part + " price"})
		}
	}
	if _, given := got["cached"]; !given {
		got["cached"] = got["prompt"]
	}
	return Price{Prompt: got["prompt"], Cached: got["cached"], Completion: got["completion"]}, errors.Join(mistakes...)
}
