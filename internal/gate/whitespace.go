package gate

import (
	"bytes"
	"slices"
	"strings"

	"issuesmith/internal/worktree"
)

// findWhitespace applies what `git diff --check` refuses by default, with cr-at-eol (git's ws.c and diff.c): blanks
// at the end of an added line, a blank before a tab in its indent, new blank lines at the end of
// the file, and conflict markers. What the base commit has already is not looked at.
func findWhitespace(c *candidate) ([]Finding, error) {
	var found []Finding
	for _, f := range c.kept {
		lines, err := c.lines(f)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 {
			continue
		}
		after, err := c.after(f)
		if err != nil {
			return nil, err
		}
		before, err := c.before(f)
		if err != nil {
			return nil, err
		}
		found = append(found, lineTroubles(f.Path, lines, after)...)
		if blank := blankEnd(after); blank > blankEnd(before) {
			found = append(found, Finding{
				Path:    f.Path,
				Line:    countLines(after) - blank + 1,
				Message: "new blank line at the end of the file",
				Hint:    "end the file with its last line of text and one line end",
			})
		}
	}
	return found, nil
}

func lineTroubles(path string, lines []worktree.Line, after []byte) []Finding {
	var found []Finding
	add := func(line int, message, hint string) {
		found = append(found, Finding{Path: path, Line: line, Message: message, Hint: hint})
	}
	conflict := -1 // not looked up yet
	for _, l := range lines {
		text := l.Text // without its line end, a carriage return before it included
		if text != "" && isBlank(text[len(text)-1]) {
			add(l.Number, "blanks at the end of the line", "remove them")
		}
		if blankBeforeTab(text) {
			add(l.Number, "a blank before a tab in the indent", "indent as the lines around do")
		}
		switch {
		case !isMarker(text):
			continue
		case text[0] == '=':
			// Seven equals signs alone underline a heading as well.
			if conflict < 0 {
				conflict = 0
				if inConflict(after) {
					conflict = 1
				}
			}
			if conflict == 0 {
				continue
			}
		}
		add(l.Number, "leftover conflict marker", "resolve the conflict and remove its markers")
	}
	return found
}

// isBlank is what git takes for white space (its own isspace, without form feed).
func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// blankBeforeTab reports a space directly before a tab in the indent of a line that has more than blanks.
func blankBeforeTab(line string) bool {
	line = strings.TrimRight(line, " \t\r\n")
	for i := 0; i < len(line) && (line[i] == ' ' || line[i] == '\t'); i++ {
		if line[i] == '\t' && i > 0 && line[i-1] == ' ' {
			return true
		}
	}
	return false
}

// isMarker reports seven times one of <, =, >, | followed by white space or the end.
func isMarker(line string) bool {
	if len(line) < 7 || !strings.ContainsRune("<=>|", rune(line[0])) {
		return false
	}
	if strings.Count(line[:7], line[:1]) != 7 {
		return false
	}
	return len(line) == 7 || isBlank(line[7])
}

// inConflict reports that a file holds the beginning or the end of a conflict.
func inConflict(content []byte) bool {
	for line := range bytes.Lines(content) {
		if text := strings.TrimRight(string(line[:min(len(line), 9)]), "\r\n"); isMarker(text) && (text[0] == '<' || text[0] == '>') {
			return true
		}
	}
	return false
}

// blankEnd counts the blank lines at the end of a file as git's count_trailing_blank does, which
// walks back from the last line and never looks at a first line of less than two bytes.
func blankEnd(content []byte) int {
	n := 0
	at := len(content) - 1 // the last byte of the line looked at
	if at >= 0 && content[at] == '\n' {
		at--
	}
	for at > 0 {
		start := bytes.LastIndexByte(content[:at+1], '\n') + 1
		if slices.ContainsFunc(content[start:at+1], func(b byte) bool { return !isBlank(b) }) {
			break
		}
		n++
		at = start - 2
	}
	return n
}

func countLines(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}
