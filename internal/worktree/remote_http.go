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
