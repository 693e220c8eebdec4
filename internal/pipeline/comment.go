package pipeline

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"issuesmith/internal/redact"
	"issuesmith/internal/transcript"
)

// commentMark is at the start of every comment of ours: it tells them from people's, and
// which run wrote them.
func commentMark(run string) string { return "<!-- issuesmith:progress run=" + run + " -->" }

// patchHead is how much of a dry run's patch stands in the comment.
const patchHead = 6000

// commentLimit is the size of a comment (product: 10,000).
const commentLimit = 10_000

// progressComment is the comment while the run lasts.
func (r *run) progressComment() string {
	var b strings.Builder
	b.WriteString(commentMark(r.runID()) + "\n")
	fmt.Fprintf(&b, "**issuesmith** is working on this issue%s.\n\n", r.logLink())
	box := func(done bool, format string, args ...any) {
		mark := " "
		if done {
			mark = "x"
		}
		fmt.Fprintf(&b, "- [%s] %s\n", mark, fmt.Sprintf(format, args...))
	}
	box(true, "claimed")
	box(r.attempt > 0, "clean worktree of `%s`, setup", short(r.startCommit()))
	if r.attempt > 0 {
		box(r.publishing(), "attempt %d of %d, then the checks", r.attempt, r.Config.MaxAttempts)
	} else {
		box(false, "up to %d attempts, each followed by the checks", r.Config.MaxAttempts)
	}
	box(false, "%s", map[string]string{"pr": "pull request", "dry-run": "patch (dry run, nothing is pushed)", "direct": "push to `" + r.BaseBranch + "`"}[r.Config.Mode])
	fmt.Fprintf(&b, "\n%s\n", r.figures())
	b.WriteString(r.remarks())
	return b.String()
}

func (r *run) publishing() bool { return r.result.Patch != "" }

func (r *run) startCommit() string {
	if r.start.commit != "" {
		return r.start.commit
	}
	return r.Base
}

func (r *run) logLink() string {
	if r.RunURL == "" {
		return ""
	}
	return " ([log](" + r.RunURL + "))"
}

// figures is one line: time, attempts, calls, cost.
func (r *run) figures() string {
	return fmt.Sprintf("%s · %s · %s · %s",
		time.Since(r.started).Round(time.Second), plural(r.attempt, "attempt"), plural(r.calls, "model call"), cost(r.usage))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func cost(u transcript.Usage) string {
	switch {
	case u == transcript.Usage{}:
		return "no cost yet"
	case !u.CostKnown:
		return "cost unknown"
	default:
		return fmt.Sprintf("%.4f USD", u.Cost)
	}
}

// remarks are the lines about text that was not used and runs that were taken over.
func (r *run) remarks() string {
	var b strings.Builder
	if r.task != nil {
		if r.task.EditedLater {
			b.WriteString("\nThe issue's text was edited after it was labelled. The edit is not used; label it again to use it.\n")
		}
		for _, author := range sortedKeys(r.task.LeftOut) {
			fmt.Fprintf(&b, "\n%s by `%s` not used: only comments by trusted people, written before the label, are. Add the name to `trusted-users` in `.gitea/issuesmith.yml` and label again.\n",
				plural(r.task.LeftOut[author], "comment"), strings.ReplaceAll(author, "`", ""))
		}
	}
	if r.held != nil && r.held.Over != nil && !r.held.Cancelled {
		fmt.Fprintf(&b, "\nRecovered: the run before this one was killed (%s).\n", r.held.Why)
	}
	return b.String()
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// finalComment is the comment once the run has ended.
func (r *run) finalComment(o *Outcome) string {
	var b strings.Builder
	b.WriteString(commentMark(r.runID()) + "\n")
	switch o.Status {
	case Opened, Updated:
		fmt.Fprintf(&b, "**issuesmith** %s a pull request for this issue: %s%s\n\nA person must review and merge it.\n", o.Status, o.PullURL, r.logLink())
	case Pushed:
		fmt.Fprintf(&b, "**issuesmith** pushed `%s` to `%s`%s.\n", short(o.Commit), o.Branch, r.logLink())
	case DryRun:
		fmt.Fprintf(&b, "**issuesmith** made a change that passed all checks; this was a dry run, so nothing was pushed%s.\n\n%s\n", r.logLink(), fence("diff", r.patchHead()))
	case NothingToDo:
		fmt.Fprintf(&b, "**issuesmith** stopped: %s%s.\n", plain(o.Reason), r.logLink())
		return b.String()
	default:
		fmt.Fprintf(&b, "**issuesmith** did not solve this issue%s.\n\nWhat failed: **%s**\n\n%s\n", r.logLink(), o.Class, fence("", o.Reason))
	}
	if o.Exit != ExitDone && o.Status != Failed {
		fmt.Fprintf(&b, "\nAfter that something failed:\n\n%s\n", fence("", o.Reason))
	}
	if o.Status == Failed {
		fmt.Fprintf(&b, "\n%s\n", r.again(o))
	}
	fmt.Fprintf(&b, "\n%s\n", r.figures())
	b.WriteString(r.remarks())
	return redact.Cut(b.String(), commentLimit)
}

// again says how to try once more, fitting the class of the failure.
func (r *run) again(o *Outcome) string {
	queue := fmt.Sprintf("put the label `%s` on the issue again", r.Config.Queued)
	switch o.Class {
	case InfrastructureClass:
		spent := ""
		if r.calls == 0 {
			spent = "Nothing was spent on repair. "
		}
		return spent + "When the cause is mended, " + queue + "."
	case ConfigurationClass:
		return "When this is put right, " + queue + "."
	default:
		return "To try again: say in the issue what was missing or misleading, then " + queue + "."
	}
}

func (r *run) patchHead() string {
	if r.result.Patch == "" {
		return ""
	}
	patch, err := os.ReadFile(r.result.Patch)
	if err != nil {
		return "the patch could not be read: " + err.Error()
	}
	if len(patch) <= patchHead {
		return string(patch)
	}
	return strings.ToValidUTF8(string(patch[:patchHead]), "") + fmt.Sprintf("\n… %d more bytes: the whole patch is the file change.patch of the run", len(patch)-patchHead)
}
