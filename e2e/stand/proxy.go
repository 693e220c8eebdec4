package stand

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Proxy stands between Gitea and everybody else. It passes everything on, keeps
// a record, and calls the hooks tests have put in.
type Proxy struct {
	URL string

	server  *http.Server
	forward *httputil.ReverseProxy

	mu    sync.Mutex
	hooks []*Hook
	seen  []Request
}

// A Request is one that passed.
type Request struct {
	Method, Path string
	Status       int
	Body         []byte // of requests below a repository, up to bodyLimit
	Token        string // from the Authorization header, "" without
}

// bodyLimit is what is kept of a request's body to match on; what is looked for (ref
// names, labels, comments) stands at the beginning.
const bodyLimit = 256 << 10

// A Hook is called for requests of one repository.
type Hook struct {
	Repo   string // OWNER/NAME
	Match  func(Request) bool
	Before func()                                            // before Gitea gets it
	Answer func(w http.ResponseWriter, r *http.Request) bool // in Gitea's place; false: passed on
	After  func(Request)                                     // after Gitea answered, before the client hears it
	Times  int                                               // how often it works; 0 is for ever

	hits int
}

// Push matches a git push that updates a ref whose name starts with prefix.
func Push(prefix string) func(Request) bool {
	return func(r Request) bool {
		return strings.HasSuffix(r.Path, "/git-receive-pack") && bytes.Contains(r.Body, []byte(" "+prefix))
	}
}

// Deletes matches a git push that deletes a ref whose name starts with prefix.
func Deletes(prefix string) func(Request) bool {
	zero := strings.Repeat("0", 40)
	return func(r Request) bool {
		return strings.HasSuffix(r.Path, "/git-receive-pack") && bytes.Contains(r.Body, []byte(" "+zero+" "+prefix))
	}
}

// API matches a call by method and a part of its path.
func API(method, path string) func(Request) bool {
	return func(r Request) bool { return r.Method == method && strings.Contains(r.Path, path) }
}

func newProxy(target string) (*Proxy, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		return nil, err
	}
	p := &Proxy{URL: "http://" + l.Addr().String()}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		FlushInterval: -1,
		// Until Gitea listens, and after it was stopped: who asked is told, the log need not be.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Transport:    &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }() // ends by Close
	return p, nil
}

// Close ends it.
func (p *Proxy) Close() { _ = p.server.Close() }

// Add puts a hook in and returns the function that takes it out again.
func (p *Proxy) Add(h *Hook) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = append(p.hooks, h)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, o := range p.hooks {
			if o == h {
				p.hooks = append(p.hooks[:i:i], p.hooks[i+1:]...)
				return
			}
		}
	}
}

// Requests lists what passed for a repository.
func (p *Proxy) Requests(repo string) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Request
	for _, r := range p.seen {
		if inRepo(r.Path, repo) {
			out = append(out, r)
		}
	}
	return out
}

// Tokens lists the different tokens that were used for a repository.
func (p *Proxy) Tokens(repo string) []string {
	var out []string
	for _, r := range p.Requests(repo) {
		if r.Token != "" && !slices.Contains(out, r.Token) {
			out = append(out, r.Token)
		}
	}
	return out
}

// token is the credential of a request: a bearer or Gitea token, or the password of
// basic authentication, as git sends it.
func token(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	_, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return value
}

func inRepo(path, repo string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(path, "/api/v1/repos"), "/"+repo)
	return ok && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, ".git/"))
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := Request{Method: r.Method, Path: r.URL.Path, Token: token(r)}
	if strings.HasPrefix(r.URL.Path, "/api/actions/") { // the runners' own protocol
		p.forward.ServeHTTP(w, r)
		return
	}
	head, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	req.Body = head
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}

	hook := p.match(req)
	if hook != nil && hook.Before != nil {
		hook.Before()
	}
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	if hook == nil || hook.Answer == nil || !hook.Answer(rec, r) {
		if hook != nil && hook.After != nil {
			// The client must not hear the answer before the hook has run.
			rec.hold = &bytes.Buffer{}
		}
		p.forward.ServeHTTP(rec, r)
	}
	req.Status = rec.status
	p.mu.Lock()
	p.seen = append(p.seen, req)
	p.mu.Unlock()
	if hook != nil && hook.After != nil {
		hook.After(req)
	}
	rec.release()
}

func (p *Proxy) match(r Request) *Hook {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hooks {
		if inRepo(r.Path, h.Repo) && (h.Times == 0 || h.hits < h.Times) && h.Match(r) {
			h.hits++
			return h
		}
	}
	return nil
}

// A recorder notes the status, and holds the answer back where a hook wants that.
type recorder struct {
	http.ResponseWriter
	status int
	hold   *bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	if r.hold == nil {
		r.ResponseWriter.WriteHeader(status)
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.hold != nil {
		return r.hold.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

// FlushError lets the proxy flush, except for an answer that is held.
func (r *recorder) FlushError() error {
	if r.hold != nil {
		return nil
	}
	return http.NewResponseController(r.ResponseWriter).Flush()
}

func (r *recorder) release() {
	if r.hold == nil {
		return
	}
	r.ResponseWriter.WriteHeader(r.status)
	_, _ = r.ResponseWriter.Write(r.hold.Bytes()) // the client may have been killed by the hook
}
