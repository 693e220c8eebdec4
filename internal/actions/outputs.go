package actions

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// OutputNames lists the action's outputs, in the order of action.yml.
func OutputNames() []string {
	return []string{
		"status", "pull-request-number", "pull-request-url", "branch", "commit", "attempts", "model-calls",
		"prompt-tokens", "cached-tokens", "completion-tokens", "cost", "transcript", "issues",
	}
}

var outputName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Outputs writes name=value pairs to GITHUB_OUTPUT with random delimiters; outside a step it does nothing.
// go-githubactions' own delimiter is always the same, so that a value could end it and
// set further outputs.
func Outputs(getenv func(string) string, values map[string]string) error {
	if getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !outputName.MatchString(name) {
			return fmt.Errorf("writing the outputs: %q cannot be the name of one", name)
		}
		// 128 random bits: no value holds them but by knowing them.
		end := "issuesmith_" + rand.Text()
		value := strings.ReplaceAll(values[name], "\x00", "")
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", name, end, value, end)
	}
	if err := appendTo(getenv("GITHUB_OUTPUT"), b.String()); err != nil {
		return fmt.Errorf("writing the outputs to GITHUB_OUTPUT: %w", err)
	}
	return nil
}

// summaryLimit is in bytes: what runners keep of a step's summary.
const summaryLimit = 1 << 20

// Summary appends Markdown to GITHUB_STEP_SUMMARY; outside a step, and where the runner has
// none, it does nothing.
func Summary(getenv func(string) string, markdown string) error {
	path := getenv("GITHUB_STEP_SUMMARY")
	if getenv("GITHUB_ACTIONS") != "true" || path == "" {
		return nil
	}
	if len(markdown) > summaryLimit {
		return fmt.Errorf("writing the summary: %d bytes are more than the runner takes", len(markdown))
	}
	if err := appendTo(path, markdown+"\n"); err != nil {
		return fmt.Errorf("writing the summary to GITHUB_STEP_SUMMARY: %w", err)
	}
	return nil
}

// appendTo adds text to a file that the runner made, in one write.
func appendTo(path, text string) error {
	if path == "" {
		return errors.New("the runner has not set it")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
