package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"issuesmith/internal/redact"
)

// A Problem is one mistake in the configuration.
type Problem struct {
	Where   string // flag, input, "environment NAME", or file:line
	Key     string // the setting's name
	Value   string // as it was given; "" for secrets and where nothing was given
	Message string // what is wrong, what is allowed, what to do
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Where != "" {
		b.WriteString(p.Where + ": ")
	}
	b.WriteString(p.Key)
	if p.Value != "" {
		b.WriteString(" = " + quote(p.Value))
	}
	if p.Key != "" || p.Value != "" {
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems is every mistake at once; it is an error.
type Problems []Problem

// shownProblems is how many of them Error lists: more than anyone makes by mistake.
const shownProblems = 100

// Error lists the problems, one a line, in the order of their places.
func (p Problems) Error() string {
	sorted := slices.Clone(p)
	slices.SortStableFunc(sorted, byPlace)
	var b strings.Builder
	if len(sorted) == 1 {
		b.WriteString("the configuration has 1 problem:")
	} else {
		fmt.Fprintf(&b, "the configuration has %d problems:", len(sorted))
	}
	for i, problem := range sorted {
		if i == shownProblems {
			fmt.Fprintf(&b, "\n- and %d more", len(sorted)-i)
			break
		}
		b.WriteString("\n- " + problem.String())
	}
	return b.String()
}

// byPlace orders by place, lines of a file by their number.
func byPlace(a, b Problem) int {
	aFile, aLine := splitLine(a.Where)
	bFile, bLine := splitLine(b.Where)
	return cmp.Or(
		strings.Compare(aFile, bFile),
		cmp.Compare(aLine, bLine),
		strings.Compare(a.Key, b.Key),
		strings.Compare(a.Message, b.Message),
	)
}

func splitLine(where string) (string, int) {
	i := strings.LastIndexByte(where, ':')
	line, err := strconv.Atoi(where[i+1:])
	if i < 0 || err != nil {
		return where, 0
	}
	return where[:i], line
}

// quote makes foreign text safe to print on one line, and short.
func quote(text string) string {
	return strconv.Quote(redact.Cut(text, 120))
}

// An itemError is a mistake in one item of a list, which knows its own line and may
// show a value that differs from the whole of the list.
type itemError struct {
	line    int // 0: that of the list
	value   string
	message string
}

func (e *itemError) Error() string { return e.message }
