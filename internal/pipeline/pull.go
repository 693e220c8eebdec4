package pipeline

import (
	"fmt"
	"strings"
	"time"

	"issuesmith/internal/gate"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

// What a pull request holds at most, in bytes.
const (
	problemLimit = 15_000
	summaryLimit = 4_000
	pullLimit    = 50_000
	titleLimit   = 255

	isolationLimit = 1000 // a line of it
)

// A pullPage is what the pull request and the commit message tell.
type pullPage struct {
	Issue     int
	Title     string // the issue's, or a whole commit subject
	Problem   string
	Summary   string
	Files     []worktree.File
	Checks    []gate.Command
	Notes     []string // may hold foreign text
	Remarks   []string // Markdown of ours
	Attempts  string
	Isolation sandbox.Report
	Commit    string
}

func (r *run) page(v *gate.Verdict) pullPage {
	p := pullPage{
		Issue: r.Issue, Title: r.task.Title, Problem: r.task.Body, Summary: r.summary,
		Files: v.Change.Files, Checks: v.Commands, Notes: v.Notes,
		Isolation: r.sandbox.Report(),
	}
	p.Attempts = fmt.Sprintf("%d of %d attempts with `%s`, %s, %d prompt tokens (%d cached), %d completion tokens, %s",
		r.attempt, r.Config.MaxAttempts, strings.ReplaceAll(r.Client.Name(), "`", ""), plural(r.calls, "model call"), r.usage.Prompt, r.usage.Cached, r.usage.Completion, cost(r.usage))
	if r.task.EditedLater {
		p.Remarks = append(p.Remarks, "The issue's text was edited after it was labelled; the edit was not used.")
	}
	if r.ended != "" && r.summary == "" {
		p.Notes = append(p.Notes, "The agent did not submit; it ended by a limit: "+r.ended)
	}
	return p
}

// title is `Fix #N: title`, 255 at most. A title that is a commit subject of ours already stays.
func (p pullPage) title() string {
	prefix := fmt.Sprintf("Fix #%d: ", p.Issue)
	return oneLine(prefix+plain(strings.TrimPrefix(oneLine(p.Title, 1000), prefix)), titleLimit)
}

// body is the pull request's Markdown.
func (p pullPage) body() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Fixes #%d\n", p.Issue)
	if problem := strings.TrimSpace(p.Problem); problem != "" {
		fmt.Fprintf(&b, "\n### The problem, as the issue tells it\n\n%s\n", fence("", redact.Cut(problem, problemLimit)))
	}
	fmt.Fprintf(&b, "\n### What was done\n\n%s\n", quote(p.summary()))
	if len(p.Files) > 0 {
		b.WriteString("\n### Changed files\n\n| file | change | lines |\n|---|---|---|\n")
		for _, f := range p.Files {
			fmt.Fprintf(&b, "| %s | %s | +%d −%d |\n", code(f.Path), f.Op, f.Added, f.Removed)
		}
	}
	if len(p.Checks) > 0 {
		b.WriteString("\n### Checks\n\n| command | result | time |\n|---|---|---|\n")
		for _, c := range p.Checks {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", code(c.Command), result(c), c.Duration.Round(100*time.Millisecond))
		}
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\n%s\n", quote(oneLine(note, 1000)))
	}
	for _, remark := range p.Remarks {
		fmt.Fprintf(&b, "\n> %s\n", remark)
	}
	b.WriteString("\n### How\n\n")
	if p.Attempts != "" {
		fmt.Fprintf(&b, "- %s\n", p.Attempts)
	}
	p.isolation(&b)
	if p.Commit != "" {
		fmt.Fprintf(&b, "- commit: %s\n", p.Commit)
	}
	b.WriteString("\nWritten by a language model and checked by programs. **A person must review and merge it.**\n")
	return redact.Cut(b.String(), pullLimit-len(pullMark)-1) + "\n" + pullMark
}

// isolation is how well the commands were kept apart: a reviewer decides by it how far to trust what they did.
func (p pullPage) isolation(b *strings.Builder) {
	if p.Isolation.Level == "" {
		return
	}
	fmt.Fprintf(b, "- isolation: %s\n", p.Isolation.Level)
	if missing := notInForce(p.Isolation); len(missing) > 0 {
		fmt.Fprintf(b, "  - not in force: %s\n", oneLine(strings.Join(missing, ", "), isolationLimit))
	}
	if len(p.Isolation.Open) > 0 {
		fmt.Fprintf(b, "  - not closed: %s\n", oneLine(strings.Join(p.Isolation.Open, "; "), isolationLimit))
	}
}

func (p pullPage) summary() string {
	if s := strings.TrimSpace(p.Summary); s != "" {
		return plain(redact.Cut(s, summaryLimit))
	}
	return "The agent gave no summary."
}

// code is foreign text as a code span in a table cell.
func code(text string) string {
	text = strings.NewReplacer("`", "'", "|", "\\|").Replace(oneLine(shown(text), 200))
	return "`" + text + "`"
}

func result(c gate.Command) string {
	switch {
	case c.OK():
		return "passed"
	case c.TimedOut:
		return "timed out"
	default:
		return fmt.Sprintf("failed (exit %d)", c.Exit)
	}
}

// commitMessage is the subject, the summary, the checks and the trailers by which a later run
// knows its own.
func (r *run) commitMessage(p pullPage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", p.title(), p.summary())
	if len(p.Checks) > 0 {
		b.WriteString("\nChecks:\n")
		for _, c := range p.Checks {
			fmt.Fprintf(&b, "- %s: %s\n", oneLine(plain(c.Command), 200), result(c))
		}
	}
	fmt.Fprintf(&b, "\n%s: %d\n%s: %s\n", issueTrailer, r.Issue, runTrailer, r.runID())
	return b.String()
}
