package worktree

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/utils/ioutil"
)

const (
	// userName goes with the token; Gitea and its relatives look at the token alone.
	userName = "issuesmith"
	// maxFetch bounds in bytes what one fetch keeps in memory, compressed.
	maxFetch = 1 << 30
	// raceTries is how often a push is repeated that was refused with the words of a race
	// although the ref is what was expected: another writer may have held its lock.
	raceTries = 4
	racePause = 150 * time.Millisecond
)

// An httpRemote speaks git's smart HTTP.
type httpRemote struct {
	address   string
	token     string
	transport transport.Transport
	err       error // what is wrong with the address
}

// NewHTTPRemote speaks git's smart HTTP with the token in memory (user "issuesmith", password token).
// The client decides about redirects and certificates. Credentials in the address are
// dropped. Errors never hold the token; 401, 403 and 404 are an *AccessError.
func NewHTTPRemote(address, token string, client *http.Client) Remote {
	r := &httpRemote{token: token, transport: githttp.NewClient(client)}
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		r.err = errors.New("the address of the remote is not a URL")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		r.err = fmt.Errorf("the remote is reached over http or https, not %q", parsed.Scheme)
	default:
		parsed.User = nil
		r.address = strings.TrimSuffix(parsed.String(), "/")
	}
	return r
}

func (r *httpRemote) login() (*transport.Endpoint, transport.AuthMethod, error) {
	if r.err != nil {
		return nil, nil, r.err
	}
	endpoint, err := transport.NewEndpoint(r.address)
	if err != nil {
		return nil, nil, r.explain("read", err)
	}
	if r.token == "" {
		return endpoint, nil, nil
	}
	return endpoint, &githttp.BasicAuth{Username: userName, Password: r.token}, nil
}

// explain types refusals and takes the token out of what go-git and the server say.
func (r *httpRemote) explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return &AccessError{http.StatusUnauthorized, op}
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return &AccessError{http.StatusForbidden, op}
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return &AccessError{http.StatusNotFound, op}
	}
	return &scrubbed{text: r.scrub(err.Error()), err: err}
}

func (r *httpRemote) scrub(text string) string {
	if r.token != "" {
		header := base64.StdEncoding.EncodeToString([]byte(userName + ":" + r.token))
		text = strings.NewReplacer(r.token, "***", url.QueryEscape(r.token), "***", url.PathEscape(r.token), "***", header, "***").Replace(text)
	}
	return text
}

// scrubbed is an error whose own text is not shown.
type scrubbed struct {
	text string
	err  error
}

func (s *scrubbed) Error() string        { return s.text }
func (s *scrubbed) Is(target error) bool { return errors.Is(s.err, target) }

// Refs lists the refs; none for an empty repository.
func (r *httpRemote) Refs(ctx context.Context) (map[string]string, error) {
	_, advertised, err := r.upload(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the remote's refs: %w", r.explain("read", err))
	}
	return refsOf(advertised), nil
}

func refsOf(advertised *packp.AdvRefs) map[string]string {
	refs := make(map[string]string, len(advertised.References))
	for name, hash := range advertised.References {
		if strings.HasPrefix(name, "refs/") && !strings.HasSuffix(name, "^{}") {
			refs[name] = hash.String()
		}
	}
	return refs
}

func (r *httpRemote) upload(ctx context.Context) (transport.UploadPackSession, *packp.AdvRefs, error) {
	endpoint, auth, err := r.login()
	if err != nil {
		return nil, nil, err
	}
	session, err := r.transport.NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, nil, err
	}
	advertised, err := session.AdvertisedReferencesContext(ctx)
	return session, advertised, err
}

// Fetch brings one commit without its parents.
func (r *httpRemote) Fetch(ctx context.Context, into *Repository, ref, commit string) error {
	if !plumbing.IsHash(commit) {
		return fmt.Errorf("fetch %s: %q is not a commit hash", ref, commit)
	}
	session, advertised, err := r.upload(ctx)
	if err != nil && !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return fmt.Errorf("fetch %s: %w", ref, r.explain("read", err))
	}
	hash := plumbing.NewHash(commit)
	if advertised == nil || advertised.References[ref] != hash {
		return fmt.Errorf("fetch %s: it is not at %s any more: %w", ref, commit, ErrMoved)
	}
	if !advertised.Capabilities.Supports(capability.Shallow) {
		return &UnsupportedError{"a git server without shallow fetches", "use a server that speaks the smart protocol with the shallow capability"}
	}
	request := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	request.Wants = []plumbing.Hash{hash}
	request.Depth = packp.DepthCommits(1)
	if err := request.Capabilities.Set(capability.Shallow); err != nil {
		return fmt.Errorf("fetch %s: %w", ref, err)
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", ref, r.explain("read", err))
	}
	pack, err := readPack(response, request.Capabilities)
	if err = errors.Join(err, response.Close()); err != nil {
		return fmt.Errorf("fetch %s: %w", ref, r.explain("read", err))
	}
	if err := into.addPack(pack, hash); err != nil {
		return fmt.Errorf("fetch %s: %w", ref, r.explain("read", err))
	}
	return nil
}

// readPack reads the pack out of a response.
func readPack(response io.Reader, agreed *capability.List) ([]byte, error) {
	switch {
	case agreed.Supports(capability.Sideband64k):
		response = sideband.NewDemuxer(sideband.Sideband64k, response)
	case agreed.Supports(capability.Sideband):
		response = sideband.NewDemuxer(sideband.Sideband, response)
	}
	pack, err := io.ReadAll(io.LimitReader(response, maxFetch+1))
	if err != nil {
		return nil, err
	}
	if len(pack) > maxFetch {
		return nil, fmt.Errorf("the commit has more than %d MiB packed, which is more than is kept in memory", maxFetch>>20)
	}
	return pack, nil
}

// addPack indexes a pack and keeps it, compressed as it is, beside the checkout, if the
// commit is complete with it.
func (r *Repository) addPack(pack []byte, commit plumbing.Hash) error {
	index := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(bytes.NewReader(pack)), index)
	if err != nil {
		return fmt.Errorf("read the pack: %w", err)
	}
	sum, err := parser.Parse()
	if err != nil {
		return fmt.Errorf("read the pack: %w", err)
	}
	files := memfs.New()
	name := "objects/pack/pack-" + sum.String()
	if err := writeTo(files, name+".pack", func(w io.Writer) error { _, err := w.Write(pack); return err }); err != nil {
		return err
	}
	err = writeTo(files, name+".idx", func(w io.Writer) error {
		entries, err := index.Index()
		if err != nil {
			return err
		}
		_, err = idxfile.NewEncoder(w).Encode(entries)
		return err
	})
	if err != nil {
		return err
	}
	f, err := openObjectFolder(readOnly{files}, r.cache)
	if err != nil {
		return err
	}
	return r.addFolder(f, commit)
}

// addFolder adds objects that were fetched, unless the commit would not be complete.
func (r *Repository) addFolder(f *objectFolder, commit plumbing.Hash) error {
	r.mu.Lock()
	before := r.folders
	r.folders = append(before[:len(before):len(before)], f)
	r.mu.Unlock()
	err := r.complete(commit)
	if err != nil {
		r.mu.Lock()
		r.folders = before
		r.mu.Unlock()
		return fmt.Errorf("the commit is not complete: %w", err)
	}
	return nil
}

func writeTo(files billy.Filesystem, name string, write func(io.Writer) error) (err error) {
	f, err := files.Create(name)
	if err != nil {
		return err
	}
	defer ioutil.CheckClose(f, &err)
	return write(f)
}

// Push sends one atomic set of updates with their old values.
func (r *httpRemote) Push(ctx context.Context, from *Repository, updates ...Update) error {
	if err := check(updates); err != nil {
		return err
	}
	objects, err := from.ours(updates)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		again, err := r.push(ctx, objects, updates)
		if err == nil || !again || try == raceTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(racePause * time.Duration(try)):
		}
	}
}

// push tries once. again says that the refusal may have been another writer's lock.
func (r *httpRemote) push(ctx context.Context, objects []plumbing.EncodedObject, updates []Update) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx) // go-git leaves the response's body open
	defer cancel()
	endpoint, auth, err := r.login()
	if err != nil {
		return false, fmt.Errorf("push: %w", err)
	}
	session, err := r.transport.NewReceivePackSession(endpoint, auth)
	if err != nil {
		return false, fmt.Errorf("push: %w", r.explain("push", err))
	}
	advertised, err := session.AdvertisedReferencesContext(ctx)
	refs := map[string]string{}
	switch {
	case err == nil:
		refs = refsOf(advertised)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		advertised = packp.NewAdvRefs()
	default:
		return false, fmt.Errorf("push: %w", r.explain("push", err))
	}
	for _, u := range updates {
		if refs[u.Ref] != u.Old {
			return false, moved(u, refs[u.Ref])
		}
	}
	var said bytes.Buffer
	request, err := newRequest(advertised.Capabilities, objects, updates, &said)
	if err != nil {
		return false, fmt.Errorf("push: %w", err)
	}
	report, err := session.ReceivePack(ctx, request)
	switch {
	case report != nil && report.Error() != nil:
		err = errors.New(refusal(report, said.String()))
	case report == nil && err == nil:
		err = errors.New("the server gave no answer")
	case err == nil:
		return false, nil
	}
	return r.judge(ctx, updates, report != nil, r.explain("push", err))
}

// newRequest asks for all updates at once, or none, where the server can.
func newRequest(able *capability.List, objects []plumbing.EncodedObject, updates []Update, said io.Writer) (*packp.ReferenceUpdateRequest, error) {
	request := packp.NewReferenceUpdateRequestFromCapabilities(able)
	wish := []capability.Capability{capability.Sideband64k}
	if len(updates) > 1 {
		wish = append(wish, capability.Atomic)
	}
	deletesOnly := true
	for _, u := range updates {
		request.Commands = append(request.Commands, &packp.Command{
			Name: plumbing.ReferenceName(u.Ref), Old: plumbing.NewHash(u.Old), New: plumbing.NewHash(u.New),
		})
		deletesOnly = deletesOnly && u.New == ""
		if u.New == "" && !able.Supports(capability.DeleteRefs) {
			return nil, fmt.Errorf("the server does not let refs be deleted (%s)", u.Ref)
		}
	}
	for _, c := range wish {
		if able.Supports(c) {
			if err := request.Capabilities.Set(c); err != nil {
				return nil, err
			}
		}
	}
	request.Progress = &limited{w: said, left: 4096}
	if deletesOnly {
		return request, nil
	}
	pack, err := packOf(objects)
	if err != nil {
		return nil, err
	}
	request.Packfile = io.NopCloser(pack)
	return request, nil
}

// limited keeps the beginning of what the server says.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refusal is what the server gives as its reasons.
func refusal(report *packp.ReportStatus, said string) string {
	var reasons []string
	if report.UnpackStatus != "ok" {
		reasons = append(reasons, "unpack: "+report.UnpackStatus)
	}
	for _, status := range report.CommandStatuses {
		if status.Error() != nil {
			reasons = append(reasons, status.ReferenceName.String()+": "+status.Status)
		}
	}
	text := "the server refuses it: " + strings.Join(reasons, "; ")
	if said = strings.TrimSpace(printable(said)); said != "" {
		text += " (" + said + ")"
	}
	return text
}

// printable takes control characters out of foreign text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case r < ' ', r == 0x7f:
			return -1
		}
		return r
	}, text)
}

// raceWords are how git and its relatives word a lost race.
var raceWords = []string{
	"stale info", "fetch first", "object not found", "already exists", "cannot lock ref",
	"failed to update ref", "changed", "non-fast-forward", "failed to lock", "unable to create", "is at ",
}

// judge decides what a failed push means by what the refs are now: the words of servers
// differ, and an answer may have been lost after the update was made.
func (r *httpRemote) judge(ctx context.Context, updates []Update, answered bool, cause error) (again bool, err error) {
	refs, listErr := r.Refs(ctx)
	if listErr != nil {
		return false, fmt.Errorf("push: %w", cause)
	}
	done := true
	for _, u := range updates {
		done = done && refs[u.Ref] == u.New
	}
	if done && !answered {
		return false, nil
	}
	for _, u := range updates {
		now := refs[u.Ref] // at New, another ref of the set is the one that failed
		if now != u.Old && (now != u.New || len(updates) == 1) {
			return false, moved(u, now)
		}
	}
	text := strings.ToLower(cause.Error())
	for _, words := range raceWords {
		again = again || strings.Contains(text, words)
	}
	return again, fmt.Errorf("push: %w", cause)
}
