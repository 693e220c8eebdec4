package stand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"issuesmith/e2e/parts"
)

// A Repo is one repository on the instance, used by one test.
type Repo struct {
	Owner, Name string
	Maintainer  *Person // who may write
	stand       *Stand
}

// FullName is OWNER/NAME.
func (r *Repo) FullName() string { return r.Owner + "/" + r.Name }

// URL is where it is cloned from, without credentials.
func (r *Repo) URL() string { return r.stand.URL + "/" + r.FullName() + ".git" }

// NewRepo makes a repository of the maintainer (or of an organization), pushes the
// content of dir as its main branch and waits until events start workflows there.
func (s *Stand) NewRepo(ctx context.Context, maintainer *Person, owner, name, dir string, private bool) (*Repo, error) {
	r := &Repo{Owner: owner, Name: name, Maintainer: maintainer, stand: s}
	option := gitea.CreateRepoOption{Name: name, Private: private, DefaultBranch: "main"}
	var err error
	if owner == maintainer.Name {
		_, _, err = maintainer.CreateRepo(option)
	} else {
		_, _, err = maintainer.CreateOrgRepo(owner, option)
	}
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", r.FullName(), err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); errors.Is(err, os.ErrNotExist) {
		if err := InitRepo(ctx, dir); err != nil {
			return nil, err
		}
	}
	if err := r.Push(ctx, dir, "HEAD:refs/heads/main"); err != nil {
		return nil, err
	}
	// Until its push queue has run, the repository counts as empty and no event starts
	// a workflow.
	for {
		info, _, err := maintainer.GetRepo(owner, name)
		if err != nil {
			return nil, err
		}
		if !info.Empty {
			break
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("%s still counts as empty: %w", r.FullName(), err)
		}
	}
	return r, sleep(ctx, 300*time.Millisecond)
}

// InitRepo makes a git repository of a folder with one commit of all in it.
func InitRepo(ctx context.Context, dir string) error {
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A", "-f"}, {"commit", "-q", "-m", "Start"}} {
		if _, err := Git(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// Git runs git in a folder as a person called Maintainer and returns what it
// printed, without the configuration of whoever runs the tests.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Maintainer", "GIT_AUTHOR_EMAIL=maintainer@example.test",
		"GIT_COMMITTER_NAME=Maintainer", "GIT_COMMITTER_EMAIL=maintainer@example.test")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Push pushes from a folder as the maintainer. Flags (--force) may come before refspecs.
func (r *Repo) Push(ctx context.Context, dir string, args ...string) error {
	_, err := Git(ctx, dir, append([]string{"-c", r.auth(), "push", "-q", r.URL()}, args...)...)
	return err
}

// Clone makes a clone with the maintainer's rights in a new folder below dir.
func (r *Repo) Clone(ctx context.Context, dir string, args ...string) (string, error) {
	to, err := os.MkdirTemp(dir, "clone-")
	if err != nil {
		return "", err
	}
	_, err = Git(ctx, dir, append(append([]string{"-c", r.auth(), "clone", "-q"}, args...), r.URL(), to)...)
	return to, err
}

func (r *Repo) auth() string {
	return "http.extraHeader=Authorization: token " + r.Maintainer.Token
}

// Refs lists the repository's refs with their hashes, hidden ones included.
func (r *Repo) Refs(ctx context.Context) (map[string]string, error) {
	out, err := Git(ctx, r.stand.Dir, "-c", r.auth(), "ls-remote", r.URL())
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			refs[name] = hash
		}
	}
	return refs, nil
}

// Issue opens an issue.
func (r *Repo) Issue(title, body string) (int64, error) {
	i, _, err := r.Maintainer.CreateIssue(r.Owner, r.Name, gitea.CreateIssueOption{Title: title, Body: body})
	if err != nil {
		return 0, fmt.Errorf("opening an issue: %w", err)
	}
	return i.Index, nil
}

// LabelID looks a label up on the repository and makes it where it is missing.
func (r *Repo) LabelID(name string) (int64, error) {
	labels, _, err := r.Maintainer.ListRepoLabels(r.Owner, r.Name, gitea.ListLabelsOptions{ListOptions: gitea.ListOptions{PageSize: 50}})
	if err != nil {
		return 0, err
	}
	for _, l := range labels {
		if l.Name == name {
			return l.ID, nil
		}
	}
	l, _, err := r.Maintainer.CreateLabel(r.Owner, r.Name, gitea.CreateLabelOption{Name: name, Color: "#445566"})
	if err != nil {
		return 0, fmt.Errorf("creating label %s: %w", name, err)
	}
	return l.ID, nil
}

// Label puts a label on an issue.
func (r *Repo) Label(issue int64, name string) error {
	id, err := r.LabelID(name)
	if err != nil {
		return err
	}
	if _, _, err := r.Maintainer.AddIssueLabels(r.Owner, r.Name, issue, gitea.IssueLabelsOption{Labels: []int64{id}}); err != nil {
		return fmt.Errorf("labelling #%d: %w", issue, err)
	}
	return nil
}

// Unlabel takes a label off an issue.
func (r *Repo) Unlabel(issue int64, name string) error {
	labels, err := r.labels(issue)
	if err != nil {
		return err
	}
	for _, l := range labels {
		if l.Name == name {
			_, err := r.Maintainer.DeleteIssueLabel(r.Owner, r.Name, issue, l.ID)
			return err
		}
	}
	return fmt.Errorf("#%d has no label %s", issue, name)
}

func (r *Repo) labels(issue int64) ([]*gitea.Label, error) {
	labels, _, err := r.Maintainer.GetIssueLabels(r.Owner, r.Name, issue, gitea.ListLabelsOptions{ListOptions: gitea.ListOptions{PageSize: 50}})
	return labels, err
}

// Labels are the names of an issue's labels.
func (r *Repo) Labels(issue int64) ([]string, error) {
	labels, err := r.labels(issue)
	var names []string
	for _, l := range labels {
		names = append(names, l.Name)
	}
	return names, err
}

// Comments of an issue or pull request, oldest first.
func (r *Repo) Comments(issue int64) ([]*gitea.Comment, error) {
	all, _, err := r.Maintainer.ListIssueComments(r.Owner, r.Name, issue, gitea.ListIssueCommentOptions{})
	return all, err
}

// Pulls lists all pull requests, closed ones included, oldest first.
func (r *Repo) Pulls() ([]*gitea.PullRequest, error) {
	all, _, err := r.Maintainer.ListRepoPullRequests(r.Owner, r.Name, gitea.ListPullRequestsOptions{State: gitea.StateAll, Sort: "oldest"})
	return all, err
}

// Dispatch starts a workflow by hand.
func (r *Repo) Dispatch(workflow, ref string, inputs map[string]string) error {
	_, _, err := r.Maintainer.DispatchRepoActionWorkflow(r.Owner, r.Name, workflow, gitea.CreateActionWorkflowDispatchOption{Ref: ref, Inputs: inputs}, false)
	if err != nil {
		return fmt.Errorf("dispatching %s: %w", workflow, err)
	}
	return nil
}

// Secret gives the repository a secret for its workflows.
func (r *Repo) Secret(name, value string) error {
	_, err := r.Maintainer.CreateRepoActionSecret(r.Owner, r.Name, name, gitea.CreateOrUpdateSecretOption{Data: value})
	return err
}

// CopyTemplate copies a folder of e2e/testdata to a new folder below dir.
func CopyTemplate(name, dir string) (string, error) {
	root, err := parts.Root()
	if err != nil {
		return "", err
	}
	to, err := os.MkdirTemp(dir, "template-")
	if err != nil {
		return "", err
	}
	return to, parts.CopyTree(filepath.Join(root, "testdata", name), to)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// SetOpen closes or reopens an issue or pull request.
func (r *Repo) SetOpen(issue int64, open bool) error {
	state := gitea.StateClosed
	if open {
		state = gitea.StateOpen
	}
	_, _, err := r.Maintainer.EditIssue(r.Owner, r.Name, issue, gitea.EditIssueOption{State: &state})
	return err
}

// LabelFrom puts a label of the organization on an issue.
func (r *Repo) LabelFrom(issue int64, org, name string) error {
	labels, _, err := r.Maintainer.ListOrgLabels(org, gitea.ListOrgLabelsOptions{})
	if err != nil {
		return err
	}
	for _, l := range labels {
		if l.Name == name {
			_, _, err := r.Maintainer.AddIssueLabels(r.Owner, r.Name, issue, gitea.IssueLabelsOption{Labels: []int64{l.ID}})
			return err
		}
	}
	return fmt.Errorf("organization %s has no label %s", org, name)
}

// OwnLabels are the labels made on the repository itself, with their descriptions.
func (r *Repo) OwnLabels() (map[string]string, error) {
	labels, _, err := r.Maintainer.ListRepoLabels(r.Owner, r.Name, gitea.ListLabelsOptions{})
	own := map[string]string{}
	for _, l := range labels {
		own[l.Name] = l.Description
	}
	return own, err
}

// Invite gives a person a right ("read", "write") on the repository.
func (r *Repo) Invite(name, right string) error {
	mode := gitea.AccessMode(right)
	_, err := r.Maintainer.AddCollaborator(r.Owner, r.Name, name, gitea.AddCollaboratorOption{Permission: &mode})
	return err
}

// CommentAs writes a comment.
func (r *Repo) CommentAs(p *Person, issue int64, body string) error {
	_, _, err := p.CreateIssueComment(r.Owner, r.Name, issue, gitea.CreateIssueCommentOption{Body: body})
	return err
}

// EditBody changes an issue's text.
func (r *Repo) EditBody(issue int64, body string) error {
	_, _, err := r.Maintainer.EditIssue(r.Owner, r.Name, issue, gitea.EditIssueOption{Body: &body})
	return err
}
