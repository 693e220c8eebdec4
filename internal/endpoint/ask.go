package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxComplaint = 64 << 10 // of an error's body
	maxRedirects = 3
	endOfBody    = 100 * time.Millisecond // for the end of a body after its [DONE]
)

// newHTTP makes a client that keeps to one origin. There is no time limit on a whole request:
// the clock ends those that fall silent.
func newHTTP(origin string) *http.Client {
	var proxy func(*http.Request) (*url.URL, error)
	if strings.HasPrefix(origin, "https:") { // over plain http a proxy would read the key
		proxy = http.ProxyFromEnvironment
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    30 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           4,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 256 << 10,
			DisableCompression:     true, // a compressed stream arrives late, and may be a bomb
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			// The key stays with its origin, and a redirect that turns the request into a GET
			// asks for something else.
			if originOf(req.URL) != origin || req.Method != via[0].Method || len(via) > maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// ask sends one request and reads its turn. begun says that tokens had arrived when it failed.
func (c *chat) ask(ctx context.Context, body []byte) (turn *Turn, begun bool, failure *Error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // closes the connection when the answer was not read to its end
	clock := startClock(cancel, c.first, c.next)
	defer clock.timer.Stop()
	payload := &payload{bytes: body}
	defer payload.retire()
	req, err := c.request(ctx, http.MethodPost, "/chat/completions", payload)
	if err != nil {
		return nil, false, c.fail(Refused, err.Error(), err)
	}
	sent := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, false, c.broken(ctx, clock, "could not be reached", err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing of it is needed any more
	answer := clock.watch(resp.Body)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, false, c.refusal(resp, answer)
	}
	var a assembly
	firstToken, failure := c.read(ctx, clock, newEventReader(answer), &a, sent)
	if failure != nil {
		return nil, a.begun, failure
	}
	turn = c.turn(&a, resp.Header, len(body), firstToken, time.Since(sent))
	// A connection is used again only when its answer was read to the end, which mostly is there.
	clock.run(endOfBody)
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // the turn is whole whatever comes
	return turn, true, nil
}

// request makes a request to the endpoint; payload is nil for a GET.
func (c *chat) request(ctx context.Context, method, path string, payload *payload) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.target.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if payload != nil {
		req.Body, req.ContentLength = payload.open(), int64(len(payload.bytes))
		req.GetBody = func() (io.ReadCloser, error) { return payload.open(), nil }
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "text/event-stream")
	}
	req.Header.Set("User-Agent", "issuesmith")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

// read takes the events of an answer until it is whole.
func (c *chat) read(ctx context.Context, k *clock, events *eventReader, a *assembly, sent time.Time) (firstToken time.Duration, failure *Error) {
	for {
		ev, err := events.next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return firstToken, c.judge(a)
		case errors.Is(err, errNotChat):
			return firstToken, c.fail(Protocol, err.Error(), errNotChat)
		case a.finish != "" && (ctx.Err() == nil || errors.Is(context.Cause(ctx), errIdle)):
			return firstToken, c.judge(a) // all but the usage has arrived
		default:
			return firstToken, c.broken(ctx, k, "broke off", err)
		}
		if ev.done {
			return firstToken, c.judge(a)
		}
		if failure := c.event(ev, a); failure != nil {
			return firstToken, failure
		}
		if a.begun && firstToken == 0 {
			firstToken = time.Since(sent)
		}
		switch {
		case a.finish != "":
			k.finished()
		case a.begun:
			k.token()
		}
	}
}

// event adds one event to the turn.
func (c *chat) event(ev event, a *assembly) *Error {
	var ch chunk
	if ev.failed {
		return c.complain(0, ev.data)
	}
	if err := json.Unmarshal(ev.data, &ch); err != nil {
		return c.fail(Protocol, fmt.Sprintf("%v: %v: %s", errNotChat, err, excerpt(ev.data)), errNotChat)
	}
	if ch.failed() {
		return c.complain(0, ev.data)
	}
	if _, err := a.take(&ch); err != nil {
		return c.fail(Protocol, err.Error(), errNotChat)
	}
	return nil
}

func (c *chat) judge(a *assembly) *Error {
	if kind, why := a.verdict(); kind != "" {
		return c.fail(kind, why, nil)
	}
	return nil
}

func (c *chat) turn(a *assembly, h http.Header, requestBytes int, firstToken, elapsed time.Duration) *Turn {
	t := &Turn{Finish: plain(a.finish, c.key), FirstToken: firstToken, Elapsed: elapsed, Model: plain(a.model, c.key)}
	if t.Model == "" {
		t.Model = c.model
	}
	for _, id := range []string{h.Get("X-Request-Id"), h.Get("Request-Id"), a.id} {
		if usableID(id) {
			t.RequestID = id
			break
		}
	}
	t.Message = a.message(c.newID)
	for i, call := range a.calls {
		if call.extra != nil {
			c.conversation.signatures[t.Message.Calls[i].ID] = call.extra
		}
	}
	t.Usage = c.account(a, t.Message, requestBytes)
	return t
}

// refusal reads the answer of a request that got no stream.
func (c *chat) refusal(resp *http.Response, answer io.Reader) *Error {
	body, _ := io.ReadAll(io.LimitReader(answer, maxComplaint)) // what arrived says enough
	if resp.StatusCode < 400 {
		return c.redirected(resp)
	}
	e := c.complain(resp.StatusCode, body)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

func (c *chat) redirected(resp *http.Response) *Error {
	where := "an address that makes no sense"
	if u, err := resp.Location(); err == nil {
		where = originOf(u)
	}
	e := c.fail(Refused, "it redirects to "+where+", which is not followed: the key goes to the configured address only", nil)
	e.Status = resp.StatusCode
	return e
}

// complain makes an error of what the endpoint says; status is 0 inside a stream.
func (c *chat) complain(status int, body []byte) *Error {
	words := readComplaint(body)
	as := status
	if code, err := strconv.Atoi(words.code); status == 0 && err == nil && code >= 400 && code <= 599 {
		as = code
	}
	kind := classify(as, words)
	if words.text == "" {
		words.text = http.StatusText(status) + ", without a word"
	}
	e := c.fail(kind, words.text, nil)
	e.Status = status
	return e
}

// broken makes an error of what went wrong on the network.
func (c *chat) broken(ctx context.Context, k *clock, what string, err error) *Error {
	if errors.Is(context.Cause(ctx), errIdle) {
		return c.fail(Idle, k.why(), errIdle)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the method and the address again
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var plainHTTP tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return c.fail(Refused, what+": "+err.Error()+" (name the authority's file in SSL_CERT_FILE)", err)
	case errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &plainHTTP):
		return c.fail(Refused, what+": "+err.Error(), err)
	}
	return c.fail(Connection, what+": "+err.Error(), err)
}

// A payload is a request's body. The transport may still read it in the background after it has
// returned; retire ends that, so that the bytes can be used for the next request.
type payload struct {
	mu    sync.Mutex
	bytes []byte
}

var errRetired = errors.New("the request is over")

func (p *payload) open() io.ReadCloser { return &payloadReader{payload: p} }

func (p *payload) retire() {
	p.mu.Lock()
	p.bytes = nil
	p.mu.Unlock()
}

type payloadReader struct {
	payload *payload
	at      int
}

func (r *payloadReader) Read(b []byte) (int, error) {
	r.payload.mu.Lock()
	defer r.payload.mu.Unlock()
	if r.payload.bytes == nil {
		return 0, errRetired
	}
	n, err := bytes.NewReader(r.payload.bytes[r.at:]).Read(b)
	r.at += n
	return n, err
}

func (r *payloadReader) Close() error { return nil }
