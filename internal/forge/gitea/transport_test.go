package gitea

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"issuesmith/internal/forge"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://git.example.com":            "https://git.example.com:443",
		"https://git.example.com/gitea/":     "https://git.example.com:443",
		"https://GIT.example.com:8443":       "https://git.example.com:8443",
		"http://localhost:3000":              "http://localhost:3000",
		"http://127.0.0.1":                   "http://127.0.0.1:80",
		"http://[::1]:3000":                  "http://[::1]:3000",
		"http://10.1.2.3:3000":               "http://10.1.2.3:3000",
		"http://[fd00::1]":                   "http://[fd00::1]:80",
		"http://100.64.0.9":                  "http://100.64.0.9:80",
		"http://gitea:3000/":                 "http://gitea:3000",
		"http://git.local":                   "http://git.local:80",
		" https://git.example.com ":          "https://git.example.com:443",
		"http://git.example.com":             "",
		"http://8.8.8.8":                     "",
		"http://[::ffff:8.8.8.8]":            "",
		"http://[2001:4860:4860::8888]":      "",
		"http://127.0.0.1.evil.example":      "",
		"http://evil.example/localhost":      "",
		"http://localhost@evil.example":      "",
		"https://user:secret@git.example":    "",
		"https://git.example.com?x=y":        "",
		"https://git.example.com/#f":         "",
		"ftp://git.example.com":              "",
		"file:///etc":                        "",
		"git.example.com":                    "",
		"https://":                           "",
		"https://user:secret@git .example/%": "",
		"":                                   "",
	} {
		u, err := parseServer(raw)
		switch {
		case (want == "") != (err != nil):
			t.Errorf("%s: %v, %v", raw, u, err)
		case err == nil && origin(u) != want:
			t.Errorf("%s: origin %s, want %s", raw, origin(u), want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := Options{ServerURL: "https://git.example.com", Repository: "boss/demo", Token: "t0ken"}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for _, repository := range []string{"", "demo", "boss/", "/demo", "boss/demo/x", "../demo", "boss/..", "https://git.example.com/boss/demo", "boss/de mo"} {
		o := good
		o.Repository = repository
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "OWNER/NAME") {
			t.Errorf("repository %q: %v", repository, err)
		}
	}
	for _, token := range []string{"", "a b", "a\nb", "tök"} {
		o := good
		o.Token = token
		if _, err := New(o); err == nil || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

// Plain http goes to near addresses only, whatever the name resolves to.
func TestDialsNearOnly(t *testing.T) {
	t.Parallel()
	near, err := parseServer("http://gitea:3000")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = baseTransport(near).DialContext(ctx, "tcp", "192.0.2.1:80")
	if err == nil || !strings.Contains(err.Error(), "public address") {
		t.Errorf("dialled: %v", err)
	}
	if baseTransport(near).Proxy != nil {
		t.Error("a proxy would read the token")
	}
	far, err := parseServer("https://git.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if baseTransport(far).Proxy == nil {
		t.Error("https cannot use the proxy")
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	get := "GET /api/v1/user"
	me := ok(user("me"))
	later := func(code int, after string) answer {
		return answer{code: code, header: http.Header{"Retry-After": {after}}}
	}
	for name, c := range map[string]struct {
		answers []answer
		fails   string
		waits   []time.Duration
	}{
		"at once":             {answers: []answer{me}},
		"the third time":      {answers: []answer{no(502, "x"), {do: half}, me}, waits: []time.Duration{500 * time.Millisecond, 2 * time.Second}},
		"never":               {answers: []answer{no(500, "x"), no(503, "y"), no(502, "bad gateway")}, fails: "502 Bad Gateway: bad gateway", waits: []time.Duration{500 * time.Millisecond, 2 * time.Second}},
		"as long as asked":    {answers: []answer{later(429, "7"), later(503, "0"), me}, waits: []time.Duration{7 * time.Second, 0}},
		"asked for an hour":   {answers: []answer{later(429, "3600")}, fails: "429"},
		"not for refusals":    {answers: []answer{no(400, "no")}, fails: "400"},
		"a half answer":       {answers: []answer{{do: half}, me}, waits: []time.Duration{500 * time.Millisecond}},
		"an answer too large": {answers: []answer{{do: endless}}, fails: "larger than 2 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, f := newDouble(t, "")
			f.api.Transport.(*transport).whole = 2 << 20
			d.on(get, c.answers...)
			got, err := f.login(t.Context())
			if c.fails == "" && (err != nil || got != "me") {
				t.Errorf("%q, %v", got, err)
			}
			if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("error is %v, want %q in it", err, c.fails)
			}
			if !slices.Equal(d.waits, c.waits) {
				t.Errorf("waited %v, want %v", d.waits, c.waits)
			}
		})
	}
}

// half promises more than it sends.
func half(w http.ResponseWriter, _ *http.Request, _ string) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"login":`) // the client sees the rest missing
}

func endless(w http.ResponseWriter, _ *http.Request, _ string) {
	chunk := strings.Repeat(" ", 1<<20)
	for range 8 {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

func TestWritesAreRepeatedOnlyWhereSafe(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	post, patch := "POST "+repoPath("/issues/7/comments"), "PATCH "+repoPath("/issues/comments/3")

	d, f := newDouble(t, "")
	d.on(post, no(502, "down"))
	if _, err := f.Comment(ctx, 7, 0, "x"); err == nil || !strings.Contains(err.Error(), "commenting on #7") {
		t.Errorf("a new comment after 502: %v", err)
	}
	d.on(post, lost())
	if _, err := f.Comment(ctx, 7, 0, "x"); err == nil {
		t.Error("a new comment after a lost connection is taken for done")
	}
	if n := d.count(post); n != 2 {
		t.Errorf("%d comments may have been made", n)
	}
	// 429: the forge did nothing, so even this may be repeated, with its body.
	d.on(post, no(429, "slow down"), answer{do: func(w http.ResponseWriter, _ *http.Request, body string) {
		if body != `{"body":"x"}` {
			t.Errorf("the second try sends %q", body)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":3}`) // the client checks
	}})
	if id, err := f.Comment(ctx, 7, 0, "x"); err != nil || id != 3 {
		t.Errorf("a new comment after 429: %d, %v", id, err)
	}
	// An edit is the same edit twice.
	d.on(patch, no(502, "down"), lost(), ok(object{"id": 3}))
	if id, err := f.Comment(ctx, 7, 3, "y"); err != nil || id != 3 {
		t.Errorf("an edit: %d, %v", id, err)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the stranger was asked %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(stranger.Close)
	to := func(code int, where string) answer {
		return answer{code: code, header: http.Header{"Location": {where}}}
	}

	d, f := newDouble(t, "")
	d.on("GET /api/v1/user", to(302, stranger.URL+"/api/v1/user"))
	_, err := f.login(t.Context())
	var elsewhere *redirectError
	if !errors.As(err, &elsewhere) || !strings.Contains(err.Error(), "not followed") {
		t.Errorf("another origin: %v", err)
	}
	d.on("GET /api/v1/user", to(307, "/elsewhere"))
	d.on("GET /elsewhere", ok(user("me")))
	if got, err := f.login(t.Context()); err != nil || got != "me" {
		t.Errorf("the own origin: %q, %v", got, err)
	}
	d.on("POST "+repoPath("/issues/7/comments"), to(302, "/login"))
	if _, err := f.Comment(t.Context(), 7, 0, "x"); err == nil || !strings.Contains(err.Error(), "answered POST with a redirect") {
		t.Errorf("a write turned into a read: %v", err)
	}
	// Git over HTTP has the same rule.
	for _, address := range []string{stranger.URL, strings.Replace(d.server.URL, "127.0.0.1", "localhost", 1)} {
		res, err := f.git.Get(address)
		if !errors.As(err, &elsewhere) {
			t.Errorf("git asks %s: %v", address, err)
		}
		if res != nil {
			_ = res.Body.Close() // only on failure of the test
		}
	}
}

func TestPathPrefix(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "/gitea/")
	d.on("GET /gitea/api/v1/user", ok(user("me")))
	d.on("GET /gitea/api/v1/repos/boss/demo/issues/7", no(500, ""), no(500, ""), no(500, ""))
	if _, err := f.login(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := f.Issue(t.Context(), 7); err == nil {
		t.Error("no error")
	}
	if want := d.server.URL + "/gitea/boss/demo.git"; f.CloneURL() != want {
		t.Errorf("git goes to %s, want %s", f.CloneURL(), want)
	}
}

func TestErrorsAreShortAndHoldNoSecret(t *testing.T) {
	t.Parallel()
	d, _ := newDouble(t, "")
	f := d.forge("", func(s string) string { return strings.ReplaceAll(s, "hunter22", "***") })
	d.on("GET /api/v1/user", answer{code: 400, body: "<html>\x1b[31m" + testToken + " hunter22 " + strings.Repeat("long é ", 1000)})
	_, err := f.login(t.Context())
	if err == nil {
		t.Fatal("no error")
	}
	s := err.Error()
	if strings.Contains(s, testToken) || strings.Contains(s, "hunter22") || strings.ContainsAny(s, "\n\x1b") || len(s) > 1200 {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

func TestDeadToken(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	d.on("GET "+repoPath(""), no(401, "invalid username, password or token"))
	if _, err := f.Repository(t.Context()); !errors.Is(err, forge.ErrToken) {
		t.Error(err)
	}
}

func TestStopsWhenTheCallerStops(t *testing.T) {
	t.Parallel()
	d, f := newDouble(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	d.on("GET /api/v1/user", answer{do: func(w http.ResponseWriter, _ *http.Request, _ string) {
		cancel()
		w.WriteHeader(http.StatusBadGateway)
	}})
	if _, err := f.login(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestUnknownCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked %s", r.URL) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	tries := 0
	f, err := New(Options{ServerURL: server.URL, Repository: "boss/demo", Token: testToken, Wait: func(context.Context, time.Duration) error {
		tries++
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, first := f.login(t.Context())
	_, second := f.Remote().Refs(t.Context())
	for _, err := range []error{first, second} {
		if err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
			t.Errorf("no advice: %v", err)
		}
	}
	if tries != 0 {
		t.Errorf("tried %d times more", tries)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"5": 5 * time.Second, "0": 0, now.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat): 0, "": -1, "-5": -1, "soon": -1, strconv.Itoa(1 << 40): -1,
	} {
		got, ok := retryAfter(v, now)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}
