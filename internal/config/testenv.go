package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readTestEnv reads KEY=VALUE lines. What it says never shows a value: one line may
// hold a password.
func readTestEnv(c *Config, v value) error {
	var mistakes []error
	seen := map[string]bool{}
	c.TestEnv = nil
	for i, line := range v.lines() {
		at := v.lineOf(i)
		name, text, found := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		switch {
		case !found:
			mistakes = append(mistakes, &itemError{at, "", fmt.Sprintf("entry %d is not KEY=VALUE", i+1)})
		case !variableName.MatchString(name):
			mistakes = append(mistakes, &itemError{at, "", fmt.Sprintf("entry %d has no valid name before the =: letters, digits and _, not a digit first", i+1)})
		case strings.ContainsRune(text, 0):
			mistakes = append(mistakes, &itemError{at, name, "holds a NUL character"})
		case seen[name]:
			mistakes = append(mistakes, &itemError{at, name, "is given twice"})
		default:
			seen[name] = true
			c.TestEnv = append(c.TestEnv, name+"="+text)
		}
	}
	return errors.Join(mistakes...)
}

// testVariables are the names by which the older worker was told of test databases.
var testVariables = []string{"TEST_DB_", "TEST_CUSTOMER_DB_", "TEST_CONFIG_DB_"}

// addTestVariables puts them into test-env, where test-env itself does not say better.
func (l *loader) addTestVariables() {
	given := map[string]bool{}
	for _, entry := range l.config.TestEnv {
		name, _, _ := strings.Cut(entry, "=")
		given[name] = true
	}
	var added []string
	for _, name := range l.names {
		if given[name] || !variableName.MatchString(name) ||
			!slices.ContainsFunc(testVariables, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		if text := l.env(name); text != "" && !strings.ContainsRune(text, 0) {
			l.config.TestEnv = append(l.config.TestEnv, name+"="+text)
			added = append(added, name)
		}
	}
	if len(added) > 0 {
		l.note("%s: names of the older worker, put into test-env under the same names", strings.Join(added, ", "))
	}
}

// checkDatabases refuses databases that do not look like test databases: the commands
// that see them may wipe them.
func (l *loader) checkDatabases() {
	if l.config.AllowAnyDatabase {
		return
	}
	for _, entry := range l.config.TestEnv {
		name, text, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		if !strings.HasSuffix(upper, "_DATABASE") && !strings.HasSuffix(upper, "DB_NAME") {
			continue
		}
		if text == ":memory:" || fileBelow(text) || strings.Contains(strings.ToLower(text), "test") {
			continue
		}
		l.add(Problem{Where: l.where["test-env"], Key: "test-env", Value: name + "=" + text, Message: "names a database without \"test\" in its name, " +
			"and the commands may wipe it: name a test database, or say allow-any-database: true"})
	}
}

// fileBelow reports whether a database is a file that lies below the worktree.
func fileBelow(text string) bool {
	switch path.Ext(text) {
	case ".sqlite", ".sqlite3", ".db":
	default:
		if !strings.Contains(text, "/") {
			return false
		}
	}
	return !path.IsAbs(text) && !strings.Contains(text, ":") && !strings.Contains(text, `\`) &&
		!slices.Contains(strings.Split(text, "/"), "..")
}

// secretName reports whether a variable's name says that its value is a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"PASSWORD", "PASSWD", "SECRET", "TOKEN"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	for part := range strings.SplitSeq(name, "_") {
		if strings.HasSuffix(part, "KEY") || part == "KEYS" || part == "PASS" || part == "PWD" {
			return true
		}
	}
	return false
}
