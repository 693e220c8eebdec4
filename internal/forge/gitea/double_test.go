package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const testToken = "tok-0123456789abcdef"

// A double stands in for Gitea where the real one cannot be made to fail on cue: it answers
// exactly what a test lists, in that order for each request, and fails the test on anything else and,
// at the end, on answers nobody asked for. What Gitea means by its answers is tested in e2e.
type double struct {
	t      *testing.T
	server *httptest.Server
	mu     sync.Mutex
	script map[string][]answer
	asked  []string
	waits  []time.Duration
}

// An answer; do may look at the request, and hijack it.
type answer struct {
	code   int
	body   string
	header http.Header
	do     func(http.ResponseWriter, *http.Request, string)
}

func newDouble(t *testing.T, prefix string) (*double, *Forge) {
	t.Helper()
	d := &double{t: t, script: map[string][]answer{}}
	d.server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(func() {
		d.server.Close()
		for request, left := range d.script {
			if len(left) > 0 {
				t.Errorf("nobody asked for %s (%d answers left)", request, len(left))
			}
		}
	})
	return d, d.forge(prefix, nil)
}

func (d *double) forge(prefix string, redact func(string) string) *Forge {
	d.t.Helper()
	f, err := New(Options{
		ServerURL: d.server.URL + prefix, Repository: "boss/demo", Token: testToken, Redact: redact,
		Wait: func(ctx context.Context, w time.Duration) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.waits = append(d.waits, w)
			return ctx.Err()
		},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

// on lists answers to a request: "GET /api/v1/user?x=y".
func (d *double) on(request string, answers ...answer) {
	d.script[request] = append(d.script[request], answers...)
}

func (d *double) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Error(err)
	}
	request := r.Method + " " + r.URL.RequestURI()
	d.mu.Lock()
	d.asked = append(d.asked, request)
	left := d.script[request]
	if len(left) == 0 {
		d.mu.Unlock()
		d.t.Errorf("unexpected request %s %s", request, body)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	d.script[request] = left[1:]
	d.mu.Unlock()
	if got := r.Header.Get("Authorization"); got != "token "+testToken {
		d.t.Errorf("%s: Authorization is %q", request, got)
	}
	a := left[0]
	if a.do != nil {
		a.do(w, r, string(body))
		return
	}
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.code)
	_, _ = io.WriteString(w, a.body) // a broken connection shows in the client
}

func (d *double) count(request string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, a := range d.asked {
		if a == request {
			n++
		}
	}
	return n
}

func ok(v any) answer {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return answer{code: http.StatusOK, body: string(data)}
}

func no(code int, message string) answer {
	return answer{code: code, body: fmt.Sprintf(`{"message":%q}`, message)}
}

// lost breaks the connection instead of answering.
func lost() answer {
	return answer{do: func(w http.ResponseWriter, _ *http.Request, _ string) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close() // that is the point
		}
	}}
}

type object = map[string]any

func user(name string) object { return object{"id": 5, "login": name} }

func labelObject(id int, name string) object { return object{"id": id, "name": name} }

// repoPath is the API path of the repository.
func repoPath(rest string) string { return "/api/v1/repos/boss/demo" + rest }

// page is a list request's first page.
func page(path string, query ...string) string {
	q := append([]string{"limit=50", "page=1"}, query...)
	slices.Sort(q)
	return "GET " + path + "?" + strings.Join(q, "&")
}
