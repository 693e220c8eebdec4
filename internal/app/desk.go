package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"issuesmith/internal/actions"
	"issuesmith/internal/config"
	"issuesmith/internal/forge/local"
	"issuesmith/internal/pipeline"
	"issuesmith/internal/worktree"
)

// connectLocal makes the local forge from an issue in a file.
func (b *bench) connectLocal(q request) error {
	title, body, err := local.ReadIssueFile(q.issueFile)
	if err != nil {
		return config.Problems{{Where: "flag", Key: "issue-file", Value: q.issueFile, Message: err.Error()}}
	}
	return b.useDesk(max(b.config.Issue, 1), title, body)
}

// A deskIssue is the one issue of a local forge.
type deskIssue struct {
	number      int
	title, body string
}

// useDesk makes the local forge. Where its branches are left is known only when the run has a folder.
func (b *bench) useDesk(number int, title, body string) error {
	b.desk = &deskIssue{number, title, body}
	f, err := local.New(local.Options{Number: number, Title: title, Body: body, Branch: b.branch})
	if err != nil {
		return config.Problems{{Where: "issue", Value: title, Message: err.Error()}}
	}
	b.forge = f
	return nil
}

// atDesk gives a run of the local forge its clone: the branch goes there, the user's own repository
// is not written to.
func (b *bench) atDesk(o *pipeline.Options) error {
	clone := cloneOf(o.Folder)
	remote, err := worktree.NewLocalRemote(clone, b.repository)
	if err != nil {
		return err
	}
	f, err := local.New(local.Options{Number: b.desk.number, Title: b.desk.title, Body: b.desk.body, Branch: b.branch, Place: clone})
	if err != nil {
		return err
	}
	o.Remote, o.Forge = remote, f
	return nil
}

func cloneOf(dir string) string { return filepath.Join(dir, "repository.git") }

// show prints what a person at a desk wants to see: the diff, the text, and where the branch is.
func (b *bench) show(o *pipeline.Outcome) {
	if b.desk == nil {
		return
	}
	print := func(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }
	if o.Patch != "" {
		if patch, err := os.ReadFile(o.Patch); err == nil {
			print("\n%s\n%s", rule("The change"), patch)
		}
	}
	if o.PullTitle != "" {
		print("\n%s\n%s\n\n%s\n", rule("The pull request"), o.PullTitle, o.PullBody)
	} else if o.Report != "" {
		print("\n%s\n%s\n", rule("The comment on the issue"), o.Report)
	}
	if o.Branch != "" {
		clone, dir := cloneOf(filepath.Dir(o.Transcript)), b.dir
		if absolute, err := filepath.Abs(dir); err == nil {
			dir = absolute // the line is pasted anywhere
		}
		print("\n%s\nbranch %s, commit %s, in %s\nto take it over:  git -C %s fetch %s %s:%s\nto run it again:  issuesmith replay --repo %s %s\npatch:            %s\n",
			rule("Where it is"), o.Branch, o.Commit, clone, quoted(dir), quoted(clone), o.Branch, o.Branch, quoted(dir), quoted(o.Transcript), o.Patch)
	}
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return r != '/' && r != '.' && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

func rule(title string) string { return "──── " + title + " ────" }

// waiting is told of each pause before an endpoint is asked again.
func (b *bench) waiting(reason string, d time.Duration) {
	b.log.Printf(actions.Info, "waiting %s before asking the model again: %s", d.Round(time.Second/10), reason)
}
