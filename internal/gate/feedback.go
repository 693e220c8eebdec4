package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"issuesmith/internal/redact"
)

const (
	maxVerdict = 8000 // bytes of what is wrong, before outputs and diff
	laterEnd   = 2000 // characters of each end for failing commands after the first
	perRule    = 25   // findings told of one rule
)

// Feedback is the verdict as text for the model, redacted, at most 8,000 characters and the failing commands' output.
// What failed comes first. "" when everything passed.
func Feedback(v *Verdict, r *redact.Redactor) string {
	if v.Passed {
		return ""
	}
	var b strings.Builder
	b.WriteString(redact.Cut(clean(summary(v), r), maxVerdict))
	if v.Discarded != "" {
		b.WriteString("\nThe diff that was discarded when those files were put back:\n")
		b.WriteString(fenced("diff", redact.Cut(clean(v.Discarded, r), maxDiscarded)))
	}
	first := true
	for _, c := range v.Commands {
		if c.OK() {
			continue
		}
		keep := outputEnd
		if !first {
			keep = laterEnd
		}
		first = false
		fmt.Fprintf(&b, "\nOutput of %s (%s):\n", clean(quoted(c.Command), r), c.ended())
		b.WriteString(fenced("", ends(clean(c.Output, r), "", 0, keep)))
	}
	return b.String()
}

// summary is the verdict without outputs and diff.
func summary(v *Verdict) string {
	var b strings.Builder
	b.WriteString("The change was refused. ")
	failing := v.failing()
	switch {
	case len(v.Findings) > 0 && len(v.Commands) == 0:
		fmt.Fprintf(&b, "Policy found %s; the test commands were not run yet.\n", count(len(v.Findings), "problem"))
	case len(failing) > 0:
		fmt.Fprintf(&b, "%d of %s failed.\n", len(failing), count(len(v.Commands), "test command"))
	default:
		fmt.Fprintf(&b, "%s came up after the test commands.\n", count(len(v.Findings), "problem"))
	}
	for _, c := range failing {
		fmt.Fprintf(&b, "- %s: %s\n", quoted(c.Command), c.ended())
	}
	byRule := map[string][]Finding{}
	for _, f := range v.Findings {
		byRule[f.Rule] = append(byRule[f.Rule], f)
	}
	for _, name := range rulesInOrder(byRule) {
		fmt.Fprintf(&b, "\nRule %s:\n", name)
		lines, hints := findingLines(byRule[name])
		b.WriteString(lines)
		for _, hint := range hints {
			fmt.Fprintf(&b, "  Hint: %s.\n", hint)
		}
	}
	if len(v.PutBack) > 0 {
		fmt.Fprintf(&b, "\nPut back to the base commit already, so do not undo them again: %s.\n", some(v.PutBack, 40))
		b.WriteString("Everything else stands in the worktree as you left it.\n")
	}
	for _, note := range v.Notes {
		fmt.Fprintf(&b, "\nNote: %s.\n", note)
	}
	return b.String()
}

// findingLines lists findings of one rule, and each hint once.
func findingLines(found []Finding) (string, []string) {
	var (
		b     strings.Builder
		hints []string
	)
	for i, f := range found {
		if i == perRule {
			fmt.Fprintf(&b, "- and %d more\n", len(found)-perRule)
			break
		}
		fmt.Fprintf(&b, "- %s\n", f.text())
		if f.Hint != "" && !slices.Contains(hints, f.Hint) {
			hints = append(hints, f.Hint)
		}
	}
	return b.String(), hints
}

// text is a finding on one line, without its rule and hint.
func (f Finding) text() string {
	switch {
	case f.Path == "":
		return f.Message
	case f.Line > 0:
		return fmt.Sprintf("%s:%d: %s", shown(f.Path), f.Line, f.Message)
	}
	return shown(f.Path) + ": " + f.Message
}

// rulesInOrder puts rules in the order in which the policy applies them, others behind by name.
func rulesInOrder(byRule map[string][]Finding) []string {
	at := func(name string) int {
		for i, r := range slices.Concat(strayRules, changeRules) {
			if r.name == name {
				return i
			}
		}
		return len(strayRules) + len(changeRules)
	}
	var names []string
	for name := range byRule {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b)) })
	return names
}

// failing are the commands that did not succeed.
func (v *Verdict) failing() []Command {
	return slices.DeleteFunc(slices.Clone(v.Commands), Command.OK)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// fenced sets foreign text apart with a fence that the text does not hold.
func fenced(kind, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + kind + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}
