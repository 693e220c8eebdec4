package pipeline

import (
	"regexp"
	"strings"

	"issuesmith/internal/redact"
)

// Foreign text (the issue, the model's summary, commands' output) is shown to people on the
// forge, where text can do things: "fixes #3" closes an issue on merge, "@name" calls a person. It is put
// into a fence, which the forge does not read for such marks, or made plain. Control characters go first: the
// redaction at the exit takes them out as well, and one inside a mark would have hidden it from us.

var (
	reference = regexp.MustCompile(`([#!])(\d)`)
	mention   = regexp.MustCompile(`(^|[^\pL\pN_])@([-\w])`)
	issueLink = regexp.MustCompile(`(/(?:issues|pulls)/)(\d)`)
	tag       = regexp.MustCompile(`<([A-Za-z/!?])`)
	linkEnd   = regexp.MustCompile(`\]([(:\[])`) // of a link, an image, a definition
	linkStart = regexp.MustCompile(`\[([!^])`)   // of a footnote, an alert
)

// plain takes the power out of references, mentions and hidden comments, and leaves the text readable.
func plain(text string) string {
	text = shown(text)
	text = reference.ReplaceAllString(text, "$1 $2")
	text = mention.ReplaceAllString(text, "$1@ $2")
	text = issueLink.ReplaceAllString(text, "$1 $2")
	return strings.ReplaceAll(text, "<!--", "<! --")
}

// shown is text without what is not seen: control characters, and the marks that turn the direction of
// writing, by which text reads otherwise than it is.
func shown(text string) string { return directions.Replace(redact.Escapes(text)) }

var directions = strings.NewReplacer(
	"\u061c", "", "\u200e", "", "\u200f", "", "\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "",
	"\u2066", "", "\u2067", "", "\u2068", "", "\u2069", "",
)

// quote is plain text as a block quote that the text itself cannot end: its headings, tables and fences stay
// inside, and it has no HTML, no links with an address that is not seen, no footnotes and no images.
func quote(text string) string {
	text = tag.ReplaceAllString(plain(text), "< $1")
	text = linkEnd.ReplaceAllString(text, "] $1")
	text = linkStart.ReplaceAllString(text, "[ $1")
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// fence is text in a code block that the text itself cannot close.
func fence(language, text string) string {
	text = shown(text)
	ticks := "```"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + language + "\n" + strings.TrimRight(text, "\n") + "\n" + ticks
}
