package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"

	"issuesmith/internal/forge"
	"issuesmith/internal/worktree"
)

// A field is a bare repository on disk for the claims and a server that tells of commits and runs.
type field struct {
	t      *testing.T
	repo   *worktree.Repository
	remote worktree.Remote
	server *httptest.Server
	now    time.Time
	mu     sync.Mutex
	runs   map[string]string // id → "status conclusion", or an HTTP status
}

func newField(t *testing.T) *field {
	t.Helper()
	dir := t.TempDir()
	made, err := git.PlainInit(filepath.Join(dir, "checkout"), false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := made.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	who := &gitobject.Signature{Name: "n", Email: "e", When: time.Unix(1, 0)}
	if _, err := w.Commit("first", &git.CommitOptions{AllowEmptyCommits: true, Author: who}); err != nil {
		t.Fatal(err)
	}
	x := &field{t: t, now: time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC), runs: map[string]string{}}
	if x.repo, err = worktree.Open(filepath.Join(dir, "checkout")); err != nil {
		t.Fatal(err)
	}
	if x.remote, err = worktree.NewLocalRemote(filepath.Join(dir, "bare.git"), x.repo); err != nil {
		t.Fatal(err)
	}
	x.server = httptest.NewServer(http.HandlerFunc(x.serve))
	t.Cleanup(x.server.Close)
	return x
}

func (x *field) serve(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if hash, ok := strings.CutPrefix(r.URL.Path, repoPath("/git/commits/")); ok {
		c, err := x.repo.Commit(hash)
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"commit":{"message":%q,"committer":{"date":%q}}}`, c.Message, c.Committer.When.Format(time.RFC3339))
		return
	}
	id, ok := strings.CutPrefix(r.URL.Path, repoPath("/actions/runs/"))
	said, known := x.runs[id]
	if !ok || !known {
		x.t.Errorf("unexpected request %s", r.URL)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	var code int
	if n, _ := fmt.Sscan(said, &code); n == 1 {
		w.WriteHeader(code)
		return
	}
	status, conclusion, _ := strings.Cut(said, " ")
	fmt.Fprintf(w, `{"id":%s,"status":%q,"conclusion":%q,"html_url":"https://git.example/run/%s"}`, id, status, conclusion, id)
}

func (x *field) forge(remote worktree.Remote) *Forge {
	x.t.Helper()
	f, err := New(Options{
		ServerURL: x.server.URL, Repository: "boss/demo", Token: testToken, Repo: x.repo, Remote: remote,
		Now: func() time.Time { return x.now }, Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return f
}

func (x *field) claim(run string, attempt int) forge.Claim {
	return forge.Claim{Issue: 7, Run: run, Attempt: attempt, Host: "h", Started: x.now, Deadline: x.now.Add(time.Hour)}
}

func (x *field) at() string {
	x.t.Helper()
	refs, err := x.remote.Refs(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	return refs["refs/ai/claims/7"]
}

func TestClaimAndRelease(t *testing.T) {
	t.Parallel()
	x := newField(t)
	f := x.forge(x.remote)
	h, err := f.Claim(t.Context(), x.claim("12", 1))
	if err != nil || h.Commit == "" || x.at() != h.Commit || h.Over != nil {
		t.Fatalf("%+v, %v", h, err)
	}
	for range 2 { // the second time it is gone already
		if err := f.Release(t.Context(), h); err != nil {
			t.Error(err)
		}
	}
	if x.at() != "" {
		t.Error("still there")
	}
	// The same claim again is another commit, so an old value cannot be taken for it.
	again, err := f.Claim(t.Context(), x.claim("12", 1))
	if err != nil || again.Commit == h.Commit {
		t.Errorf("%+v, %v", again, err)
	}
	// A claim that has changed hands is left alone.
	if err := f.Release(t.Context(), h); err != nil || x.at() != again.Commit {
		t.Errorf("released somebody else's: %v", err)
	}
	if err := f.Release(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestClaimThereIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run       string // that has it
		said      string // by the forge about it
		asker     [2]any
		late      time.Duration
		busy      string // in the error; "" when it is taken over
		takeover  int
		cancelled bool
	}{
		"active":                        {run: "12", said: "in_progress", busy: "https://git.example/run/12"},
		"active, long after":            {run: "12", said: "in_progress", late: 9 * time.Hour, busy: "run 12, attempt 1, on h, until 2030-05-06 13:00:00 UTC"},
		"killed":                        {run: "12", said: "completed failure", takeover: 1},
		"cancelled":                     {run: "12", said: "completed cancelled", cancelled: true},
		"cannot be asked":               {run: "12", said: "403", busy: "nothing can be learned"},
		"unknown run is never finished": {run: "12", said: "404", busy: "nothing can be learned"},
		"forge unwell":                  {run: "12", said: "502", busy: "nothing can be learned"},
		"cannot be asked, late":         {run: "12", said: "403", late: time.Hour + time.Second, takeover: 1},
		"a desk":                        {run: "desk-x", busy: "desk-x"},
		"a desk, late":                  {run: "desk-x", late: 2 * time.Hour, takeover: 1},
		"re-run":                        {run: "12", said: "in_progress", asker: [2]any{"12", 2}, takeover: 1},
		"another job of the run":        {run: "12", said: "in_progress", asker: [2]any{"12", 1}, busy: "run 12"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newField(t)
			if c.said != "" {
				x.runs[c.run] = c.said
			}
			f := x.forge(x.remote)
			first := x.claim(c.run, 1)
			first.Comment = 55
			old, err := f.Claim(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			x.now = x.now.Add(c.late)
			asker := x.claim("99", 1)
			if c.asker[0] != nil {
				asker = x.claim(c.asker[0].(string), c.asker[1].(int))
			}
			h, err := f.Claim(t.Context(), asker)
			if c.busy != "" {
				if !errors.Is(err, forge.ErrBusy) || !strings.Contains(err.Error(), c.busy) || x.at() != old.Commit {
					t.Errorf("%v does not say %q", err, c.busy)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if x.at() != h.Commit || h.Over == nil || h.Over.Run != c.run || h.Why == "" || h.Comment != 55 {
				t.Errorf("%+v", h)
			}
			if h.Takeover != c.takeover || h.Cancelled != c.cancelled {
				t.Errorf("takeover %d, cancelled %v", h.Takeover, h.Cancelled)
			}
			if said, err := x.repo.Commit(h.Commit); err != nil {
				t.Error(err)
			} else if c, err := forge.ParseClaim(said.Message); err != nil || c != h.Claim {
				t.Errorf("the commit says %+v, we hold %+v, %v", c, h.Claim, err)
			}
		})
	}
}

func TestClaimIsUnreadable(t *testing.T) {
	t.Parallel()
	x := newField(t)
	f := x.forge(x.remote)
	who := worktree.Person{Name: "n", Email: "e", When: x.now}
	commit, err := x.repo.EmptyCommit(who, "something else")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.remote.Push(t.Context(), x.repo, worktree.Update{Ref: forge.Ref(7), New: commit}); err != nil {
		t.Fatal(err)
	}
	x.now = x.now.Add(3 * time.Hour)
	_, err = f.Claim(t.Context(), x.claim("12", 1))
	if !errors.Is(err, forge.ErrBusy) || !strings.Contains(err.Error(), "delete that ref") {
		t.Error(err)
	}
	x.now = x.now.Add(time.Second)
	h, err := f.Claim(t.Context(), x.claim("12", 1))
	if err != nil || h.Over == nil || x.at() != h.Commit {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	x := newField(t)
	x.runs["1"] = "completed failure"
	f := x.forge(x.remote)
	if _, err := f.Claim(t.Context(), x.claim("1", 1)); err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for n := range 8 {
		run := fmt.Sprint("desk-", n)
		all.Go(func() {
			_, err := x.forge(x.remote).Claim(t.Context(), x.claim(run, 1))
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, forge.ErrBusy):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have the claim", won.Load())
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	x := newField(t)
	x.runs["1"], x.runs["2"] = "in_progress", "completed cancelled"
	f := x.forge(x.remote)
	for issue, run := range map[int]string{30: "1", 4: "2", 5: "desk"} {
		c := x.claim(run, 1)
		c.Issue = issue
		if _, err := f.Claim(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.Claims(t.Context())
	var s []string
	for _, c := range got {
		s = append(s, fmt.Sprintf("%d %s %v", c.Issue, c.State, c.Stale))
	}
	if want := "4 cancelled true, 5 unknown false, 30 active false"; err != nil || strings.Join(s, ", ") != want {
		t.Fatalf("%q, %v", s, err)
	}
	if err := f.Drop(t.Context(), got[0]); err != nil {
		t.Error(err)
	}
	if err := f.Drop(t.Context(), got[0]); !errors.Is(err, forge.ErrBusy) {
		t.Errorf("dropped twice: %v", err)
	}
	// What only deletes needs no checkout.
	f.repo = nil
	if err := f.Drop(t.Context(), got[1]); err != nil {
		t.Error(err)
	}
	if left, err := f.Claims(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
}

// stopping is a remote whose push works and never says so, since the caller is stopped.
type stopping struct {
	worktree.Remote
	stop context.CancelFunc
}

func (s *stopping) Push(ctx context.Context, from *worktree.Repository, updates ...worktree.Update) error {
	err := s.Remote.Push(ctx, from, updates...)
	if s.stop != nil {
		s.stop()
		s.stop = nil
		return context.Canceled
	}
	return err
}

func TestStoppedWhileClaiming(t *testing.T) {
	t.Parallel()
	x := newField(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := x.forge(&stopping{x.remote, cancel}).Claim(ctx, x.claim("12", 1))
	if !errors.Is(err, context.Canceled) || x.at() != "" {
		t.Errorf("%v; the claim is at %q", err, x.at())
	}
}

// refusing is a remote that says no in a server's ways.
type refusing struct {
	worktree.Remote
	err error
}

func (r *refusing) Push(context.Context, *worktree.Repository, ...worktree.Update) error {
	return r.err
}

func TestPushRefused(t *testing.T) {
	t.Parallel()
	x := newField(t)
	var permission *forge.PermissionError
	for _, refusal := range []error{
		&worktree.AccessError{Status: 404, Op: "push"},
		&worktree.AccessError{Status: 403, Op: "push"},
		errors.New("push: the server refuses it: refs/ai/claims/7: pre-receive hook declined (error: User permission denied for writing.)"),
	} {
		_, err := x.forge(&refusing{x.remote, refusal}).Claim(t.Context(), x.claim("12", 1))
		if !errors.As(err, &permission) || permission.Permission != "contents: write" {
			t.Errorf("%v became %v", refusal, err)
		}
	}
	_, err := x.forge(&refusing{x.remote, &worktree.AccessError{Status: 401, Op: "push"}}).Claim(t.Context(), x.claim("12", 1))
	if !errors.Is(err, forge.ErrToken) {
		t.Error(err)
	}
	_, err = x.forge(&refusing{x.remote, errors.New("disk full " + testToken)}).Claim(t.Context(), x.claim("12", 1))
	if err == nil || errors.As(err, &permission) || strings.Contains(err.Error(), testToken) || !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
}
