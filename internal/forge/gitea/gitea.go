// Package gitea is the forge on a Gitea instance: its API through the SDK, claims as git refs.
// Facts about Gitea in comments were measured on 1.26.0.
package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"issuesmith/internal/forge"
	"issuesmith/internal/worktree"
)

// Options for New.
type Options struct {
	ServerURL  string // of the instance, path prefix included
	Repository string // owner/name
	Token      string
	// Repo keeps the commits of claims; nil where nothing is claimed.
	Repo *worktree.Repository
	// Remote is the repository's git side; nil for smart HTTP at ServerURL/Repository.git.
	Remote worktree.Remote
	// Run and Attempt of this workflow run: a claim of an earlier attempt of it is stale.
	Run     string
	Attempt int
	// Redact takes secrets out of error texts, beside the token itself; may be nil.
	Redact func(string) string

	// Transport and Wait replace the network and the pauses between tries; nil for the real ones.
	Transport http.RoundTripper
	Wait      func(context.Context, time.Duration) error
	// Now is the clock; nil for the real one.
	Now func() time.Time
}

// A Forge is one repository on one instance. It is safe for concurrent use.
type Forge struct {
	server      *url.URL
	owner, name string
	token       string
	api, git    *http.Client
	repo        *worktree.Repository
	remote      worktree.Remote
	redact      func(string) string
	now         func() time.Time
	asker       forge.Claim // Run and Attempt only

	mu   sync.Mutex
	self string // login of the token's user, "" until asked
}

var _ forge.Forge = (*Forge)(nil)

var segment = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// New checks the options; it asks the instance nothing.
func New(o Options) (*Forge, error) {
	server, err := parseServer(o.ServerURL)
	if err != nil {
		return nil, err
	}
	owner, name, _ := strings.Cut(o.Repository, "/")
	for _, s := range []string{owner, name} {
		if !segment.MatchString(s) || s == "." || s == ".." {
			return nil, fmt.Errorf("repository %q is not OWNER/NAME: set `repository` (some local runners put a whole address there)", cut(o.Repository, 100))
		}
	}
	if o.Token == "" || strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("`token` is empty or holds blanks: give a token of the instance, in a workflow ${{ github.token }}")
	}
	f := &Forge{
		server: server, owner: owner, name: name, token: o.Token,
		repo: o.Repo, remote: o.Remote, redact: o.Redact, now: o.Now,
		asker: forge.Claim{Run: o.Run, Attempt: o.Attempt},
	}
	if f.redact == nil {
		f.redact = func(s string) string { return s }
	}
	if f.now == nil {
		f.now = time.Now
	}
	base, wait := o.Transport, o.Wait
	if base == nil {
		base = baseTransport(server)
	}
	if wait == nil {
		wait = sleep
	}
	own := origin(server)
	f.api = &http.Client{
		Transport:     &transport{base: base, own: own, token: o.Token, whole: largestAnswer, wait: wait},
		CheckRedirect: checkRedirect(own),
	}
	f.git = &http.Client{
		Transport:     &transport{base: base, own: own, wait: wait},
		CheckRedirect: checkRedirect(own),
		Timeout:       gitTime,
	}
	if f.remote == nil {
		f.remote = worktree.NewHTTPRemote(f.CloneURL(), o.Token, f.git)
	}
	f.remote = &remote{Remote: f.remote, f: f}
	return f, nil
}

// CloneURL is where git finds the repository: below the server's own address, whatever
// the instance thinks its address is.
func (f *Forge) CloneURL() string {
	return f.server.JoinPath(f.owner, f.name+".git").String()
}

// Remote is the repository's git side. It names the permission that is missing, as the API's functions do.
func (f *Forge) Remote() worktree.Remote { return f.remote }

// Client is the SDK bound to a context. The transport adds the token.
func (f *Forge) Client(ctx context.Context) *sdk.Client {
	// An empty version spares a request and the error for versions it cannot parse; then nothing fails here.
	c, err := sdk.NewClient(f.server.String(), sdk.SetGiteaVersion(""), sdk.SetHTTPClient(f.api),
		sdk.SetContext(ctx), sdk.SetUserAgent("issuesmith"))
	if err != nil {
		panic("gitea: the SDK refuses fixed options: " + err.Error())
	}
	return c
}

// Repository describes the repository.
func (f *Forge) Repository(ctx context.Context) (*forge.Repository, error) {
	r, res, err := f.Client(ctx).GetRepo(f.owner, f.name)
	doing := "reading the repository " + f.owner + "/" + f.name
	if status(res) == http.StatusNotFound {
		return nil, &forge.PermissionError{
			Doing: doing, Permission: anyRead,
			Detail: "or there is no such repository on " + f.server.String() + ": the forge answers 404 to both; check `repository` and `server-url`",
		}
	}
	if err != nil {
		return nil, f.failed(doing, anyRead, res, err)
	}
	out := &forge.Repository{
		Owner: f.owner, Name: r.Name, URL: r.HTMLURL, CloneURL: f.CloneURL(),
		DefaultBranch: r.DefaultBranch, Empty: r.Empty, ObjectFormat: r.ObjectFormatName,
	}
	if r.Owner != nil {
		out.Owner = r.Owner.UserName
	}
	// That answer does not tell a person from an organization.
	out.OwnerIsOrg, err = f.isOrg(ctx)
	return out, err
}

// isOrg asks whether the owner is an organization.
func (f *Forge) isOrg(ctx context.Context) (bool, error) {
	_, res, err := f.Client(ctx).GetOrg(f.owner)
	switch {
	case err == nil:
		return true, nil
	case status(res) == http.StatusNotFound || status(res) == http.StatusForbidden:
		return false, nil // or an organization this token may not see: then its labels cannot be seen either
	}
	return false, f.failed("asking who owns the repository", anyRead, res, err)
}

// login is the token's own user, "gitea-actions" for a job's token.
func (f *Forge) login(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.self != "" {
		return f.self, nil
	}
	u, res, err := f.Client(ctx).GetMyUserInfo()
	switch {
	case err == nil:
		f.self = u.UserName
	case status(res) == http.StatusForbidden || status(res) == http.StatusNotFound:
		f.self = actionsUser // a personal token without read:user: then only the job's comments are known as ours
	default:
		return "", f.failed("asking whose token this is", anyRead, res, err)
	}
	return f.self, nil
}

// actionsUser is the author of what a job's token does; its id is -2.
const (
	actionsUser   = "gitea-actions"
	actionsUserID = -2
)
