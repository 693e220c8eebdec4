package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"issuesmith/internal/config"
)

const key = "canary-key-0123456789"

var good = data(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, "[DONE]")

// A script answers each request with the next of its handlers, and counts them.
type script struct {
	*httptest.Server
	asked atomic.Int32
}

func serve(t *testing.T, handlers ...http.HandlerFunc) *script {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(s.asked.Add(1))
		if n > len(handlers) {
			t.Errorf("request %d was not expected", n)
			http.Error(w, "not expected", http.StatusTeapot)
			return
		}
		handlers[n-1](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func says200(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}
}

func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// stall sends body and then nothing until the client is gone.
func stall(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client is gone
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// reset sends body and breaks the connection.
func reset(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	busy := status(500, `{"error":{"message":"boom"}}`)
	half := data(`{"choices":[{"index":0,"delta":{"content":"ha"}}]}`)
	for name, tt := range map[string]struct {
		handlers []http.HandlerFunc
		kind     Kind // "" when the last answer is good
		status   int
		words    string
		waits    int
	}{
		"500 three times":             {handlers: []http.HandlerFunc{busy, busy, busy, says200(good)}, waits: 3},
		"500 for ever":                {handlers: []http.HandlerFunc{busy, busy, busy, busy, busy}, kind: Server, status: 500, words: "boom", waits: 4},
		"408, 409, 425, 529":          {handlers: []http.HandlerFunc{status(408, ""), status(409, ""), status(425, ""), status(529, ""), says200(good)}, waits: 4},
		"400":                         {handlers: []http.HandlerFunc{status(400, `{"error":{"message":"bad field"}}`)}, kind: Refused, status: 400, words: "bad field"},
		"401":                         {handlers: []http.HandlerFunc{status(401, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`)}, kind: Auth, status: 401, words: "Incorrect API key provided: ***"},
		"402":                         {handlers: []http.HandlerFunc{status(402, `{"error":{"message":"Insufficient credits"}}`)}, kind: Refused, status: 402},
		"403":                         {handlers: []http.HandlerFunc{status(403, "")}, kind: Auth, status: 403, words: "without a word"},
		"404":                         {handlers: []http.HandlerFunc{status(404, "404 page not found")}, kind: Refused, status: 404, words: "page not found"},
		"422 of fastapi":              {handlers: []http.HandlerFunc{status(422, `{"detail":[{"loc":["body","x"],"msg":"extra"}]}`)}, kind: Refused, status: 422, words: "extra (body.x)"},
		"422 of mistral":              {handlers: []http.HandlerFunc{status(422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_error"}`)}, kind: Refused, status: 422, words: "Extra inputs are not permitted (body.x)"},
		"an array of gemini":          {handlers: []http.HandlerFunc{status(400, `[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`)}, kind: Refused, status: 400, words: "API key not valid"},
		"no stream_options":           {handlers: []http.HandlerFunc{status(422, `{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`), says200(good)}},
		"an empty account":            {handlers: []http.HandlerFunc{status(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}`)}, kind: Refused, status: 429},
		"an image":                    {handlers: []http.HandlerFunc{status(500, `{"error":{"message":"image input is not supported - hint: mmproj"}}`)}, kind: Refused, status: 500},
		"overflow of llama.cpp":       {handlers: []http.HandlerFunc{status(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":900,"n_ctx":512}}`)}, kind: ContextOverflow, status: 400},
		"overflow of OpenAI":          {handlers: []http.HandlerFunc{status(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`)}, kind: ContextOverflow, status: 400},
		"overflow of vLLM":            {handlers: []http.HandlerFunc{status(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","code":400}`)}, kind: ContextOverflow, status: 400},
		"overflow of Anthropic":       {handlers: []http.HandlerFunc{status(400, `{"error":{"message":"prompt is too long: 208310 tokens > 200000 maximum"}}`)}, kind: ContextOverflow, status: 400},
		"overflow of a proxy":         {handlers: []http.HandlerFunc{status(413, "<html><h1>413 Request Entity Too Large</h1></html>")}, kind: ContextOverflow, status: 413, words: "413 Request Entity Too Large"},
		"too many tokens a minute":    {handlers: []http.HandlerFunc{status(429, "Too many tokens, please wait"), says200(good)}, waits: 1},
		"a page":                      {handlers: []http.HandlerFunc{status(200, "<!DOCTYPE html><title>Login</title>", "Content-Type", "text/html")}, kind: Protocol, words: "Login"},
		"a page with 502":             {handlers: []http.HandlerFunc{status(502, "<html><h1>Bad Gateway</h1>"), says200(good)}, waits: 1},
		"reset at once":               {handlers: []http.HandlerFunc{reset(""), says200(good)}, waits: 1},
		"reset after comments":        {handlers: []http.HandlerFunc{reset(": wait\n\n"), says200(good)}, waits: 1},
		"reset after the first token": {handlers: []http.HandlerFunc{reset(half)}, kind: Connection},
		"ended after the first token": {handlers: []http.HandlerFunc{says200(half)}, kind: Truncated},
		"empty answer":                {handlers: []http.HandlerFunc{says200(""), says200(good)}, waits: 1},
		"error before the first":      {handlers: []http.HandlerFunc{says200(data(`{"error":{"message":"overloaded","code":503}}`)), says200(good)}, waits: 1},
		"error after the first":       {handlers: []http.HandlerFunc{says200(half + data(`{"error":{"message":"gone","code":503}}`))}, kind: Server, words: "gone"},
		"reset after the finish":      {handlers: []http.HandlerFunc{reset(data(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, tt.handlers...)
			c := newTestChat(t, srv.URL, nil)
			waits := 0
			c.tell = func(reason string, _ time.Duration) {
				if waits++; strings.Contains(reason, key) || reason == "" {
					t.Errorf("reason %q", reason)
				}
			}
			turn, err := c.Complete(t.Context(), hello, nil)
			if int(srv.asked.Load()) != len(tt.handlers) || waits != tt.waits {
				t.Errorf("%d requests, %d waits told", srv.asked.Load(), waits)
			}
			if tt.kind == "" {
				if err != nil || turn.Message.Content != "hi" {
					t.Errorf("got %s", describe(turn, err))
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Status != tt.status || !strings.Contains(e.Message, tt.words) {
				t.Fatalf("got %#v", err)
			}
			if text := fmt.Sprintf("%v %+v %v", err, e, errors.Unwrap(err)); strings.Contains(text, key) || !strings.Contains(text, "custom/m") || !strings.Contains(text, srv.URL) {
				t.Errorf("text %s", text)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const date = "in three seconds"
	for name, tt := range map[string]struct {
		headers  []string
		min, max time.Duration
	}{
		"seconds":      {[]string{"Retry-After", "1"}, time.Second, time.Second},
		"a fraction":   {[]string{"Retry-After", "0.5"}, 500 * time.Millisecond, 500 * time.Millisecond},
		"a date":       {[]string{"Retry-After", date}, time.Second, 3 * time.Second},
		"milliseconds": {[]string{"Retry-After-Ms", "250", "Retry-After", "9"}, 250 * time.Millisecond, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.headers[1] == date {
				tt.headers[1] = time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat)
			}
			srv := serve(t, status(429, `{"message":"Requests rate limit exceeded"}`, tt.headers...), says200(good))
			c := newTestChat(t, srv.URL, nil)
			var told time.Duration
			c.tell = func(_ string, d time.Duration) { told = d }
			began := time.Now()
			if _, err := c.Complete(t.Context(), hello, nil); err != nil {
				t.Fatal(err)
			}
			if told < tt.min || told > tt.max || time.Since(began) < told {
				t.Errorf("told %s, waited %s", told, time.Since(began))
			}
		})
	}
	t.Run("longer than the time left", func(t *testing.T) {
		t.Parallel()
		srv := serve(t, status(429, "slow down", "Retry-After", "3600"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := newTestChat(t, srv.URL, nil).Complete(ctx, hello, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != RateLimit || e.RetryAfter != time.Hour {
			t.Errorf("got %v", err)
		}
	})
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-3": 0, "NaN": 0, "0": 0, "1e300": 1e7 * time.Second, "Inf": 1e7 * time.Second,
		now.Add(-time.Hour).UTC().Format(http.TimeFormat): 0, " 7 ": 7 * time.Second,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", value, got, want)
		}
	}
}

func TestBackoffGrows(t *testing.T) {
	t.Parallel()
	for try := 1; try < 100; try++ {
		full := min(500*time.Millisecond<<min(try-1, 10), 30*time.Second)
		if d := backoff(try); d < full/2 || d > full {
			t.Errorf("try %d: %s", try, d)
		}
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	// Long enough for a busy machine: what must not run out has a second to spare.
	const short = 1300 * time.Millisecond
	half := data(`{"choices":[{"index":0,"delta":{"content":"ha"}}]}`)
	// slowly sends text n times, each after a quarter of the limit.
	slowly := func(n int, before, text, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, before)
			for range n {
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(short / 4):
				}
				_, _ = io.WriteString(w, text)
			}
			_, _ = io.WriteString(w, after)
		}
	}
	role := data(`{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`)
	for name, tt := range map[string]struct {
		handlers []http.HandlerFunc
		next     bool // the limit is the one between tokens
		kind     Kind
		words    string
	}{
		"silent at first, twice":           {handlers: []http.HandlerFunc{stall(""), stall(""), says200(good)}},
		"silent after a role":              {handlers: []http.HandlerFunc{stall(role), says200(good)}},
		"silent after a token":             {next: true, handlers: []http.HandlerFunc{stall(half)}, kind: Idle, words: "token-timeout"},
		"comments before the first token":  {handlers: []http.HandlerFunc{slowly(8, "", ": wait\n\n", good)}},
		"comments between tokens":          {next: true, handlers: []http.HandlerFunc{slowly(100, half, ": wait\n\n", good)}, kind: Idle, words: "token-timeout"},
		"tokens one by one":                {next: true, handlers: []http.HandlerFunc{slowly(8, "", half, good)}},
		"open after an error":              {next: true, handlers: []http.HandlerFunc{stall(half + "data: {\"error\":{\"message\":\"boom\"}}\n")}, kind: Server, words: "boom"},
		"open after the finish, no [DONE]": {next: true, handlers: []http.HandlerFunc{stall(strings.TrimSuffix(good, "data: [DONE]\n\n"))}},
		"open after [DONE]":                {handlers: []http.HandlerFunc{stall(good)}},
		"no headers":                       {handlers: []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, says200(good)}},
		"an error status without end":      {handlers: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(400); stall("half of the words")(w, r) }}, kind: Refused, words: "half of the words"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, tt.handlers...)
			c := newTestChat(t, srv.URL, func(cfg *config.Config) {
				if tt.next {
					cfg.BetweenTokens = short
				} else {
					cfg.FirstToken = short
				}
			})
			began := time.Now()
			turn, err := c.Complete(t.Context(), hello, nil)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if int(srv.asked.Load()) != len(tt.handlers) {
				t.Errorf("%d requests", srv.asked.Load())
			}
			if tt.kind == "" {
				if err != nil || !strings.HasSuffix(turn.Message.Content, "hi") || turn.FirstToken <= 0 || turn.Elapsed < turn.FirstToken {
					t.Errorf("got %s", describe(turn, err))
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Message, tt.words) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A cancelled request closes its connection at once, in every stage, and the error is the context's.
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"before the answer": "",
		"in the middle":     data(`{"choices":[{"index":0,"delta":{"content":"ha"}}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, gone := make(chan struct{}), make(chan struct{})
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if sent != "" {
					_, _ = io.WriteString(w, sent)
					w.(http.Flusher).Flush()
				}
				close(arrived)
				<-r.Context().Done()
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			c := newTestChat(t, srv.URL, nil)
			go func() {
				<-arrived
				cancel()
			}()
			began := time.Now()
			if _, err := c.Complete(ctx, hello, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			select {
			case <-gone:
			case <-time.After(20 * time.Second):
				t.Error("the connection stayed open")
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
	t.Run("while waiting", func(t *testing.T) {
		t.Parallel()
		srv := serve(t, status(500, ""))
		ctx, cancel := context.WithCancel(t.Context())
		c := newTestChat(t, srv.URL, nil)
		c.backoff = func(int) time.Duration { return time.Minute }
		c.tell = func(string, time.Duration) { cancel() }
		if _, err := c.Complete(ctx, hello, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("out of time", func(t *testing.T) {
		t.Parallel()
		srv := serve(t, stall(""))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := newTestChat(t, srv.URL, nil).Complete(ctx, hello, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
