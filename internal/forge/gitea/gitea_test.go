package gitea

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"issuesmith/internal/forge"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

func (d *double) labels(repository, organization []object) {
	d.on(page(repoPath("/labels")), ok(repository))
	if organization == nil {
		d.on(page("/api/v1/orgs/boss/labels"), no(404, "not found"))
		return
	}
	d.on(page("/api/v1/orgs/boss/labels"), ok(organization))
	if len(organization) > 0 {
		d.on(strings.Replace(page("/api/v1/orgs/boss/labels"), "page=1", "page=2", 1), ok([]object{}))
	}
}

func TestMissingOrForbidden(t *testing.T) {
	t.Parallel()
	probe := "GET " + repoPath("/issues?limit=1&page=1&type=issues")
	pulls := "GET " + repoPath("/pulls?limit=1&page=1")
	var permission *forge.PermissionError
	for name, c := range map[string]struct {
		script func(*double)
		do     func(*Forge) error
		want   string // permission, "" for forge.ErrNotFound
	}{
		"no issue": {
			func(d *double) {
				d.on("GET "+repoPath("/issues/7"), no(404, "not found"))
				d.on(probe, ok([]object{}))
			},
			func(f *Forge) error { _, err := f.Issue(t.Context(), 7); return err }, "",
		},
		"no issues at all": {
			func(d *double) {
				d.on("GET "+repoPath("/issues/7"), no(404, "not found"))
				d.on(probe, no(404, "not found"))
			},
			func(f *Forge) error { _, err := f.Issue(t.Context(), 7); return err }, "issues: write",
		},
		"read only": {
			func(d *double) { d.on("POST "+repoPath("/issues/7/comments"), no(403, "must have write")) },
			func(f *Forge) error { _, err := f.Comment(t.Context(), 7, 0, "x"); return err }, "issues: write",
		},
		"no pull requests": {
			func(d *double) {
				d.on("POST "+repoPath("/pulls"), no(404, "not found"))
				d.on(pulls, no(404, "not found"))
			},
			func(f *Forge) error {
				_, err := f.OpenPull(t.Context(), forge.NewPull{Head: "h", Base: "b"})
				return err
			}, "pull-requests: write",
		},
		"no branch": {
			func(d *double) {
				d.on("POST "+repoPath("/pulls"), no(404, "not found"))
				d.on(pulls, ok([]object{}))
			},
			func(f *Forge) error {
				_, err := f.OpenPull(t.Context(), forge.NewPull{Head: "h", Base: "b"})
				return err
			}, "",
		},
		"no contents": {
			func(d *double) { d.on("GET "+repoPath("/branches/main"), no(403, "specific read permission")) },
			func(f *Forge) error { _, err := f.Contains(t.Context(), "main", hash); return err }, "contents: write",
		},
		"no workflow": {
			func(d *double) {
				d.on("POST "+repoPath("/actions/workflows/ci.yml/dispatches"), no(404, "workflow \"ci.yml\" doesn't exist"))
			},
			func(f *Forge) error { return f.Dispatch(t.Context(), "ci.yml", "main") }, "",
		},
		"no dispatch": {
			func(d *double) {
				d.on("POST "+repoPath("/actions/workflows/ci.yml/dispatches"), no(403, "permission"))
			},
			func(f *Forge) error { return f.Dispatch(t.Context(), "ci.yml", "main") }, "actions: write",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := newDouble(t, "")
			c.script(d)
			err := c.do(f)
			if c.want == "" {
				if !errors.Is(err, forge.ErrNotFound) {
					t.Errorf("%v is no ErrNotFound", err)
				}
				return
			}
			if !errors.As(err, &permission) || permission.Permission != c.want {
				t.Errorf("%v does not name %s", err, c.want)
			}
		})
	}
}

func TestIssue(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	d.on("GET "+repoPath("/issues/7"), ok(object{
		"number": 7, "title": "T", "body": "B", "state": "open", "user": user("reporter"), "content_version": 4,
		"labels": []object{labelObject(1, "ai:queued")}, "updated_at": "2030-05-06T12:00:00Z",
	}))
	d.on("GET /api/v1/user", ok(user("Me")))
	var comments []object
	for n := range 60 {
		author := user(fmt.Sprint("u", n))
		if n == 3 {
			author = user("me")
		}
		if n == 4 {
			author = object{"id": -2, "login": "gitea-actions"}
		}
		comments = append(comments, object{"id": 100 - n, "body": fmt.Sprint(n), "user": author, "created_at": fmt.Sprintf("2030-05-06T12:00:%02dZ", n)})
	}
	// Gitea sends all comments whatever page is asked for.
	all := ok(comments)
	all.header = http.Header{"X-Total-Count": {"60"}}
	d.on(page(repoPath("/issues/7/comments")), all)
	i, err := f.Issue(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if i.ContentVersion != 4 || !i.Open || i.IsPull || !i.HasLabel("ai:queued") || i.Author != "reporter" || len(i.Comments) != 60 {
		t.Errorf("%+v", i)
	}
	for n, c := range i.Comments {
		if c.Body != fmt.Sprint(n) || c.Own != (n == 3 || n == 4) || c.Updated.Before(c.Created) {
			t.Errorf("comment %d: %+v", n, c)
		}
	}
}

func TestLabelled(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	issue := func(n int, state string, labels ...object) object {
		return object{"number": n, "state": state, "labels": labels}
	}
	queued := labelObject(4, "ai:queued")
	// Without the label nothing is listed: the forge would answer everything.
	d.labels([]object{labelObject(1, "bug")}, nil)
	d.on(strings.Replace(page(repoPath("/labels")), "page=1", "page=2", 1), ok([]object{}))
	if got, err := f.Labelled(t.Context(), "ai:queued"); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	d.labels([]object{}, []object{queued})
	list := func(n string) string {
		return strings.Replace(page(repoPath("/issues"), "labels=ai%3Aqueued", "state=open", "type=issues"), "page=1", "page="+n, 1)
	}
	pull := issue(8, "open", queued)
	pull["pull_request"] = object{"merged": false}
	d.on(list("1"), ok([]object{issue(9, "open", queued), pull, issue(7, "closed", queued), issue(6, "open"), issue(5, "open", labelObject(1, "bug"), queued)}))
	d.on(list("2"), ok([]object{issue(5, "open", queued), issue(2, "open", queued)}))
	d.on(list("3"), ok([]object{}))
	got, err := f.Labelled(t.Context(), "ai:queued")
	var numbers []int
	for _, i := range got {
		numbers = append(numbers, i.Number)
	}
	if err != nil || !slices.Equal(numbers, []int{2, 5, 9}) {
		t.Errorf("%v, %v", numbers, err)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	on := page(repoPath("/issues/7/labels"))
	total := func(a answer, n string) answer { a.header = http.Header{"X-Total-Count": {n}}; return a }
	bug, running := labelObject(1, "bug"), labelObject(5, "ai:running")

	// Doubled names: the repository's oldest is taken, and only that one id is sent.
	d.on(on, total(ok([]object{bug}), "1"))
	d.on(page(repoPath("/labels")), total(ok([]object{labelObject(9, "ai:running"), running, bug}), "3"))
	d.on(page("/api/v1/orgs/boss/labels"), total(ok([]object{labelObject(2, "ai:running")}), "1"))
	d.on("POST "+repoPath("/issues/7/labels"), answer{do: func(w http.ResponseWriter, _ *http.Request, body string) {
		if body != `{"labels":[5]}` {
			t.Errorf("sent %s", body)
		}
		_, _ = io.WriteString(w, `[{"id":1,"name":"bug"},{"id":5,"name":"ai:running"}]`) // the client checks
	}})
	if err := f.AddLabel(t.Context(), 7, "ai:running"); err != nil {
		t.Error(err)
	}
	// There already: nothing is sent.
	d.on(on, total(ok([]object{bug, running}), "2"))
	if err := f.AddLabel(t.Context(), 7, "ai:running"); err != nil {
		t.Error(err)
	}
	// Doubles on the issue go, others stay.
	d.on(on, total(ok([]object{bug, running, labelObject(9, "ai:running")}), "3"))
	d.on("DELETE "+repoPath("/issues/7/labels/5"), no(502, ""), answer{code: 204})
	d.on("DELETE "+repoPath("/issues/7/labels/9"), no(422, "label does not exist"))
	d.on(on, total(ok([]object{bug}), "1"))
	if err := f.RemoveLabel(t.Context(), 7, "ai:running"); err != nil {
		t.Error(err)
	}
	// Absent: no error.
	d.on(on, total(ok([]object{bug}), "1"))
	if err := f.RemoveLabel(t.Context(), 7, "ai:running"); err != nil {
		t.Error(err)
	}
	// Only what neither has is made.
	d.on(page(repoPath("/labels")), total(ok([]object{bug}), "1"))
	d.on(page("/api/v1/orgs/boss/labels"), total(ok([]object{labelObject(2, "ai:queued")}), "1"))
	d.on("POST "+repoPath("/labels"), answer{do: func(w http.ResponseWriter, _ *http.Request, body string) {
		if !strings.Contains(body, `"name":"ai:failed","color":"#cc0000","description":"D"`) {
			t.Errorf("made %s", body)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":11,"name":"ai:failed"}`) // as above
	}})
	err := f.EnsureLabels(t.Context(), []forge.Label{{Name: "ai:queued", Color: "#00aabb"}, {Name: "ai:failed", Color: "#cc0000", Description: "D"}})
	if err != nil {
		t.Error(err)
	}
}

func TestCommentThatWasDeleted(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	d.on("PATCH "+repoPath("/issues/comments/3"), no(404, "not found"))
	d.on("POST "+repoPath("/issues/7/comments"), answer{code: 201, body: `{"id":4}`})
	if id, err := f.Comment(t.Context(), 7, 3, "x"); err != nil || id != 4 {
		t.Errorf("%d, %v", id, err)
	}
}

func pullObject(n int, state, head string, headRepo int) object {
	return object{
		"number": n, "state": state, "title": "T", "user": user("me"), "created_at": "2030-05-06T12:00:00Z",
		"head": object{"label": head, "ref": fmt.Sprintf("refs/pull/%d/head", n), "sha": hash, "repo_id": headRepo},
		"base": object{"label": "main", "ref": "main", "repo_id": 1},
	}
}

func TestPulls(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	list := func(state string) string { return page(repoPath("/pulls"), "sort=recentupdate", "state="+state) }
	total := func(a answer, n string) answer { a.header = http.Header{"X-Total-Count": {n}}; return a }
	script := func() {
		d.on(list("open"), total(ok([]object{
			pullObject(4, "open", "ai/issue-7", 1), pullObject(5, "open", "ai/issue-7", 2), pullObject(6, "open", "ai/issue-77", 1),
		}), "3"))
		d.on(list("closed"), total(ok([]object{pullObject(3, "closed", "ai/issue-7", 1), pullObject(9, "closed", "ai/issue-7", 1)}), "2"))
	}
	script()
	got, err := f.Pulls(t.Context(), "ai/issue-7")
	var numbers []int
	for _, p := range got {
		numbers = append(numbers, p.Number)
	}
	if err != nil || !slices.Equal(numbers, []int{9, 4, 3}) || got[1].Head != "ai/issue-7" || got[1].HeadCommit != hash || !got[1].Open || got[0].Open {
		t.Errorf("%v, %v", numbers, err)
	}
	// One that exists is returned; one whose making may have worked is looked for.
	for _, first := range []answer{no(409, "already exists"), no(502, "down"), lost()} {
		d.on("POST "+repoPath("/pulls"), first)
		script()
		p, err := f.OpenPull(t.Context(), forge.NewPull{Title: "T", Head: "ai/issue-7", Base: "main"})
		if err != nil || p.Number != 4 {
			t.Errorf("%+v, %v", p, err)
		}
	}
	d.on("POST "+repoPath("/pulls"), no(422, "invalid"))
	if _, err := f.OpenPull(t.Context(), forge.NewPull{Title: "T", Head: "ai/issue-7", Base: "main"}); err == nil || !strings.Contains(err.Error(), "422") {
		t.Error(err)
	}
}

func TestContains(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	branch := func() {
		d.on("GET "+repoPath("/branches/ai/x"), ok(object{"name": "ai/x", "commit": object{"id": strings.Repeat("f", 40)}}))
	}
	beyond := "GET " + repoPath("/commits?files=false&limit=1&not=refs%2Fheads%2Fai%2Fx&sha="+hash+"&stat=false&verification=false")
	for _, c := range []struct {
		answer answer
		want   bool
	}{
		{ok([]object{}), true},
		{ok([]object{{"sha": hash}}), false},
		{answer{code: 404, body: "null"}, false},
	} {
		branch()
		d.on(beyond, c.answer)
		if got, err := f.Contains(t.Context(), "ai/x", hash); err != nil || got != c.want {
			t.Errorf("%v, %v", got, err)
		}
	}
	branch()
	if got, err := f.Contains(t.Context(), "ai/x", strings.Repeat("f", 40)); err != nil || !got {
		t.Errorf("its tip: %v, %v", got, err)
	}
	if _, err := f.Contains(t.Context(), "ai/x", "--all"); err == nil {
		t.Error("an option was taken for a commit")
	}
}

func TestReviews(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	total := func(a answer, n string) answer { a.header = http.Header{"X-Total-Count": {n}}; return a }
	at := func(s int) string { return fmt.Sprintf("2030-05-06T12:00:%02dZ", s) }
	d.on("GET /api/v1/user", ok(user("me")))
	d.on(page(repoPath("/pulls/4/reviews")), total(ok([]object{
		{"id": 1, "user": user("boss"), "state": "COMMENT", "body": "body", "comments_count": 2, "submitted_at": at(3), "updated_at": at(9)},
		{"id": 2, "user": user("boss"), "state": "PENDING", "body": "not sent", "submitted_at": at(3)},
		{"id": 3, "user": user("boss"), "state": "REQUEST_CHANGES", "body": "taken back", "dismissed": true, "submitted_at": at(3)},
		{"id": 4, "user": user("boss"), "state": "APPROVED", "submitted_at": at(3)},
	}), "4"))
	d.on(page(repoPath("/issues/4/comments")), total(ok([]object{{"id": 9, "user": user("boss"), "body": "plain", "created_at": at(1)}}), "1"))
	d.on("GET "+repoPath("/pulls/4/reviews/1/comments"), ok([]object{
		{"id": 7, "user": user("boss"), "body": "line", "path": "a.go", "position": 12, "created_at": at(2)},
		{"id": 8, "user": user("boss"), "body": "settled", "path": "a.go", "position": 13, "created_at": at(2), "resolver": user("boss")},
	}))
	got, err := f.Reviews(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, c := range got {
		s = append(s, fmt.Sprintf("%s %s:%d", c.Body, c.Path, c.Line))
	}
	if want := []string{"plain :0", "line a.go:12", "body :0"}; !slices.Equal(s, want) {
		t.Errorf("got %q, want %q", s, want)
	}
	if len(got) == 3 && got[2].Updated.Second() != 9 {
		t.Errorf("an edited review: %+v", got[2])
	}
}

func TestMapState(t *testing.T) {
	t.Parallel()
	for words, want := range map[[2]string]forge.RunState{
		{"queued", ""}: forge.RunActive, {"waiting", ""}: forge.RunActive, {"in_progress", ""}: forge.RunActive,
		{"completed", "success"}: forge.RunFinished, {"completed", "failure"}: forge.RunFinished, {"completed", "skipped"}: forge.RunFinished,
		{"completed", "cancelled"}: forge.RunCancelled, {"completed", ""}: forge.RunUnknown,
		{"", ""}: forge.RunUnknown, {"new word", "success"}: forge.RunUnknown,
	} {
		if got := mapState(words[0], words[1]); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
