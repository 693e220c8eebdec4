package pipeline

import (
	"regexp"
	"strings"
)

// Foreign text (the issue, the model's summary, commands' output) is shown to people on the
// forge, where text can do things: "fixes #3" closes an issue on merge, "@name" calls a person. It is put
// into a fence, which the forge does not read for such marks, or made plain.

var (
	reference = regexp.MustCompile(`([#!])(\d)`)
	mention   = regexp.MustCompile(`(^|[^\pL\pN_])@([-\w])`)
	issueLink = regexp.MustCompile(`(/(?:issues|pulls)/)(\d)`)
)

// plain takes the power out of references, mentions and hidden comments, and leaves the text readable.
func plain(text string) string {
	text = reference.ReplaceAllString(text, "$1 $2")
	text = mention.ReplaceAllString(text, "$1@ $2")
	text = issueLink.ReplaceAllString(text, "$1 $2")
	return strings.ReplaceAll(text, "<!--", "<! --")
}

// fence is text in a code block that the text itself cannot close.
func fence(language, text string) string {
	ticks := "```"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + language + "\n" + strings.TrimRight(text, "\n") + "\n" + ticks
}
