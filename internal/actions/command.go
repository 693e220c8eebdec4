package actions

import (
	"strings"
	"unicode"

	"github.com/sethvargo/go-githubactions"
)

// command is a workflow command as the runner reads it, its text escaped.
func command(name, text string) string {
	c := githubactions.Command{Name: name, Message: text}
	return c.String()
}

// inert makes one line of text safe to print in a step. A runner takes `::name::` at the
// start of a line, and some of them after blanks, for a command; the older form `##[name]`
// is taken by some wherever it stands.
func inert(line string) string {
	line = unbracket(line)
	start := strings.TrimLeftFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
	if strings.HasPrefix(start, "::") {
		return "| " + line
	}
	return line
}

func unbracket(line string) string { return strings.ReplaceAll(line, "##[", "## [") }

// splitLines takes text apart at every line end that a runner knows.
func splitLines(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}
