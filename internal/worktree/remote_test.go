package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const token = "s3cret/token+with=signs"

// serve is a real git server: git http-backend behind basic auth. It serves dir/*.git.
func serve(t testing.TB, dir string) *httptest.Server {
	t.Helper()
	backend := &cgi.Handler{
		Stderr: io.Discard,
		Path:   filepath.Join(git(t, dir, "--exec-path"), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=issuesmith", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_COMMITTER_NAME=s", "GIT_COMMITTER_EMAIL=s@example.org",
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if strings.Contains(r.URL.String(), "secret") || r.URL.User != nil {
			t.Errorf("credentials in the address %s", r.URL)
		}
		switch {
		case user != "issuesmith" || password != token:
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "no such token "+password, http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, "/readonly.git") && strings.Contains(r.URL.String(), "receive-pack"):
			http.Error(w, "forbidden", http.StatusForbidden)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// served is a bare copy of a repository on a server, and a shallow checkout of it.
func served(t testing.TB, files map[string]string) (remote Remote, bare, checkout, address string) {
	t.Helper()
	dir := t.TempDir()
	source := repoWith(t, files)
	write(t, source, map[string]string{"second": "2\n"})
	git(t, source, "add", "-A")
	git(t, source, "commit", "-q", "-m", "second")
	bare = filepath.Join(dir, "repo.git")
	git(t, dir, "clone", "-q", "--bare", source, bare)
	git(t, bare, "config", "http.receivepack", "true")
	git(t, bare, "tag", "-a", "-m", "t", "v1")
	checkout = filepath.Join(dir, "checkout")
	git(t, dir, "clone", "-q", "--depth=1", "file://"+bare, checkout)
	server := serve(t, dir)
	return NewHTTPRemote(server.URL+"/repo.git", token, server.Client()), bare, checkout, server.URL
}

func opened(t testing.TB, dir string) *Repository {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func claim(t testing.TB, r *Repository, message string) string {
	t.Helper()
	hash, err := r.EmptyCommit(someone, message)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestPushFromShallow(t *testing.T) {
	t.Parallel()
	remote, bare, checkout, _ := served(t, project)
	tree := checkedOut(t, checkout)
	begin(t, tree)
	// The blob of "old" is somewhere in the checkout, dangling: the server lacks it.
	write(t, checkout, map[string]string{"dangling": "dangling\n"})
	git(t, checkout, "hash-object", "-w", "dangling")
	write(t, tree.Dir(), map[string]string{"a/b/c.txt": "fixed\n", "a/b/new.txt": "dangling\n", "link": "-> a"})
	c := change(t, tree)
	hash, err := tree.CommitChange(c, someone, "Fix #1: title\n\nbody")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := tree.CommitChange(c, someone, "Fix #1: title\n\nbody"); err != nil || again != hash {
		t.Errorf("not deterministic: %s %v", again, err)
	}
	if err := remote.Push(t.Context(), tree.repo, Update{Ref: "refs/heads/ai/issue-1", New: hash}); err != nil {
		t.Fatal(err)
	}
	git(t, bare, "fsck", "--strict", "--full")
	if got := git(t, bare, "rev-parse", "ai/issue-1^{tree}", "ai/issue-1^"); got != c.Tree+"\n"+tree.Base() {
		t.Errorf("the server has %s", got)
	}
	if got, want := git(t, bare, "cat-file", "commit", hash), "author issuesmith <issuesmith@localhost> 1700000000 +0000\ncommitter issuesmith <issuesmith@localhost> 1700000000 +0000\n\nFix #1: title\n\nbody"; !strings.HasSuffix(got, want) {
		t.Errorf("commit %q", got)
	}
	if entries, err := filepath.Glob(filepath.Join(bare, "objects", "pack", "*")); err != nil || len(entries) > 3 {
		t.Logf("packs: %q", entries)
	}

	// A second commit on top, from a worktree made of the first one.
	next, err := tree.repo.Checkout(t.Context(), hash, filepath.Join(t.TempDir(), "tree"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close() }()
	begin(t, next)
	write(t, next.Dir(), map[string]string{"more": "m\n"})
	second, err := next.CommitChange(change(t, next), someone, "More")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Push(t.Context(), next.repo, Update{"refs/heads/ai/issue-1", hash, second}); err != nil {
		t.Fatal(err)
	}
	git(t, bare, "fsck", "--strict", "--full")
	if err := remote.Push(t.Context(), next.repo, Update{"refs/heads/ai/issue-1", hash, second}); !errors.Is(err, ErrMoved) {
		t.Errorf("pushed twice: %v", err)
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	remote, bare, checkout, address := served(t, project)
	refs, err := remote.Refs(t.Context())
	want := map[string]string{"refs/heads/main": head(t, bare), "refs/tags/v1": git(t, bare, "rev-parse", "v1")}
	if err != nil || fmt.Sprint(refs) != fmt.Sprint(want) {
		t.Errorf("refs %v %v, want %v", refs, err, want)
	}
	// An empty repository has none, and takes a first push.
	git(t, filepath.Dir(bare), "init", "-q", "--bare", "empty.git")
	git(t, filepath.Dir(bare), "-C", "empty.git", "config", "http.receivepack", "true")
	empty := NewHTTPRemote(address+"/empty.git", token, http.DefaultClient)
	if refs, err := empty.Refs(t.Context()); err != nil || len(refs) != 0 {
		t.Errorf("empty: %v %v", refs, err)
	}
	r := opened(t, checkout)
	hash := claim(t, r, "first")
	if err := empty.Push(t.Context(), r, Update{Ref: "refs/ai/claims/1", New: hash}); err != nil {
		t.Error(err)
	}
	if refs, err := empty.Refs(t.Context()); err != nil || refs["refs/ai/claims/1"] != hash {
		t.Errorf("after the push: %v %v", refs, err)
	}
}

// TestClaims has six create one ref at once, in each kind of remote.
func TestClaims(t *testing.T) {
	t.Parallel()
	remote, bare, checkout, _ := served(t, project)
	other := opened(t, checkout)
	local, err := NewLocalRemote(filepath.Join(t.TempDir(), "local.git"), other)
	if err != nil {
		t.Fatal(err)
	}
	const ref = "refs/ai/claims/7"
	for name, remote := range map[string]Remote{"http": remote, "local": local} {
		t.Run(name, func(t *testing.T) {
			var won, lost atomic.Int32
			var winner atomic.Value
			var group sync.WaitGroup
			for i := range 6 {
				group.Go(func() {
					r, err := Open(checkout)
					if err != nil {
						t.Error(err)
						return
					}
					hash, err := r.EmptyCommit(someone, fmt.Sprintf("claim of runner %d", i))
					if err == nil {
						err = remote.Push(t.Context(), r, Update{Ref: ref, New: hash})
					}
					switch {
					case err == nil:
						won.Add(1)
						winner.Store(hash)
					case errors.Is(err, ErrMoved):
						lost.Add(1)
					default:
						t.Errorf("neither won nor lost: %v", err)
					}
				})
			}
			group.Wait()
			if won.Load() != 1 || lost.Load() != 5 {
				t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
			}
			refs, err := remote.Refs(t.Context())
			if err != nil || refs[ref] != winner.Load() {
				t.Fatalf("refs %v %v, the winner is %v", refs, err, winner.Load())
			}

			// A takeover by somebody who has never seen the commit, with the old value.
			stranger := opened(t, checkout)
			mine := claim(t, stranger, "taken over")
			if err := remote.Push(t.Context(), stranger, Update{ref, strings.Repeat("1", 40), mine}); !errors.Is(err, ErrMoved) {
				t.Errorf("with a wrong old value: %v", err)
			}
			if err := remote.Push(t.Context(), stranger, Update{ref, refs[ref], mine}); err != nil {
				t.Errorf("takeover: %v", err)
			}
			if err := remote.Push(t.Context(), stranger, Update{Ref: ref, Old: refs[ref]}); !errors.Is(err, ErrMoved) {
				t.Errorf("the robbed owner deletes: %v", err)
			}
			// Several at once: all or none.
			err = remote.Push(t.Context(), stranger, Update{Ref: "refs/heads/ai/new", New: mine}, Update{ref, refs[ref], mine})
			if !errors.Is(err, ErrMoved) {
				t.Errorf("half a push: %v", err)
			}
			if err := remote.Push(t.Context(), stranger, Update{Ref: "refs/heads/ai/new", New: mine}, Update{Ref: ref, Old: mine}); err != nil {
				t.Errorf("create and delete: %v", err)
			}
			if refs, err = remote.Refs(t.Context()); err != nil || refs[ref] != "" || refs["refs/heads/ai/new"] != mine {
				t.Errorf("in the end: %v %v", refs, err)
			}
			if err := remote.Push(t.Context(), stranger, Update{Ref: ref, Old: mine}); !errors.Is(err, ErrMoved) {
				t.Errorf("deleting nothing: %v", err)
			}
		})
	}
	git(t, bare, "fsck", "--strict")
}

// TestRaceBehindTheAdvertisement loses the race between looking and pushing.
func TestRaceBehindTheAdvertisement(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := repoWith(t, project)
	git(t, dir, "clone", "-q", "--bare", source, "repo.git")
	bare := filepath.Join(dir, "repo.git")
	git(t, bare, "config", "http.receivepack", "true")
	inner := serve(t, dir)
	target, err := url.Parse(inner.URL)
	if err != nil {
		t.Fatal(err)
	}
	const ref = "refs/ai/claims/1"
	var before func()
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && before != nil && strings.HasSuffix(r.URL.Path, "git-receive-pack") {
			before()
			before = nil
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	remote := NewHTTPRemote(target.String()+"/repo.git", token, client)
	r := opened(t, source)
	base := head(t, source)

	before = func() { git(t, bare, "update-ref", ref, base) }
	if err := remote.Push(t.Context(), r, Update{Ref: ref, New: claim(t, r, "one")}); !errors.Is(err, ErrMoved) {
		t.Errorf("created by another: %v", err)
	}
	before = func() { git(t, bare, "update-ref", "-d", ref) }
	if err := remote.Push(t.Context(), r, Update{ref, base, claim(t, r, "two")}); !errors.Is(err, ErrMoved) {
		t.Errorf("deleted by another: %v", err)
	}
	// A lock that another writer holds for a moment is waited for.
	lock := filepath.Join(bare, "refs", "ai", "claims", "2.lock")
	before = func() {
		if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			t.Error(err)
		}
		time.AfterFunc(300*time.Millisecond, func() { _ = os.Remove(lock) })
	}
	if err := remote.Push(t.Context(), r, Update{Ref: "refs/ai/claims/2", New: claim(t, r, "three")}); err != nil {
		t.Errorf("a lock held for a moment: %v", err)
	}
	// The answer is lost after the push was made.
	lostAnswer := &http.Client{Transport: roundTrip(func(q *http.Request) (*http.Response, error) {
		response, err := http.DefaultTransport.RoundTrip(q)
		if err == nil && q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "git-receive-pack") {
			_ = response.Body.Close()
			return nil, errors.New("connection reset by peer")
		}
		return response, err
	})}
	if err := NewHTTPRemote(inner.URL+"/repo.git", token, lostAnswer).Push(t.Context(), r, Update{Ref: "refs/ai/claims/3", New: claim(t, r, "four")}); err != nil && !errors.Is(err, ErrMoved) {
		// The server may or may not have finished when its client went away; what it did
		// is what is reported.
		if refs, listErr := remote.Refs(t.Context()); listErr != nil || refs["refs/ai/claims/3"] != "" {
			t.Errorf("lost answer: %v, yet the ref is %v", err, refs)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRefusedPush(t *testing.T) {
	t.Parallel()
	remote, bare, checkout, address := served(t, project)
	r := opened(t, checkout)
	hash := claim(t, r, "c")
	write(t, bare, map[string]string{"hooks/pre-receive": "+x #!/bin/sh\necho \"branch is \033[31mprotected\033[0m, see the docs\"\nexit 1\n"})
	err := remote.Push(t.Context(), r, Update{Ref: "refs/heads/x", New: hash})
	if err == nil || errors.Is(err, ErrMoved) || !strings.Contains(err.Error(), "protected") || strings.Contains(err.Error(), "\033") {
		t.Errorf("hook: %v", err)
	}
	var access *AccessError
	wrong := NewHTTPRemote(address+"/repo.git", "wrong-"+token, http.DefaultClient)
	if _, err := wrong.Refs(t.Context()); !errors.As(err, &access) || access.Status != 401 || access.Op != "read" || strings.Contains(err.Error(), token) {
		t.Errorf("wrong token: %v", err)
	}
	git(t, filepath.Dir(bare), "clone", "-q", "--bare", bare, "readonly.git")
	readOnly := NewHTTPRemote(address+"/readonly.git", token, http.DefaultClient)
	if _, err := readOnly.Refs(t.Context()); err != nil {
		t.Error(err)
	}
	if err := readOnly.Push(t.Context(), r, Update{Ref: "refs/heads/x", New: hash}); !errors.As(err, &access) || access.Status != 403 || access.Op != "push" {
		t.Errorf("read only: %v", err)
	}
	if _, err := NewHTTPRemote(address+"/none.git", token, http.DefaultClient).Refs(t.Context()); !errors.As(err, &access) || access.Status != 404 {
		t.Errorf("none: %v", err)
	}
	for _, bad := range []string{"file:///tmp", "ssh://x/y", "/tmp/x", "", "http://[::1", "git@host:x"} {
		if _, err := NewHTTPRemote(bad, token, http.DefaultClient).Refs(t.Context()); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	// Credentials in the address go nowhere; a transport error does not show the token.
	failing := &http.Client{Transport: roundTrip(func(q *http.Request) (*http.Response, error) {
		if q.URL.User != nil {
			t.Error("the address kept its credentials")
		}
		return nil, fmt.Errorf("proxy says: Authorization was %s", token)
	})}
	err = NewHTTPRemote("http://user:pass@localhost/x.git", token, failing).Push(t.Context(), r, Update{Ref: "refs/heads/x", New: hash})
	if err == nil || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "pass") {
		t.Errorf("transport error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := remote.Refs(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, u := range []Update{{}, {Ref: "main", New: hash}, {Ref: "refs/heads/../x", New: hash}, {Ref: "refs/heads/x"}, {Ref: "refs/heads/x", New: "abc"}, {"refs/heads/x", hash, hash}} {
		if err := remote.Push(t.Context(), r, u); err == nil || errors.Is(err, ErrMoved) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	if err := remote.Push(t.Context(), r); err == nil {
		t.Error("no updates")
	}
}
