package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"issuesmith/internal/config"
)

// The key goes to the configured origin, in one header, and nowhere else.
func TestKeyStaysWithItsOrigin(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		leaked = append(leaked, fmt.Sprint(r.Method, r.URL, r.Header, string(body)))
		_, _ = io.WriteString(w, good)
	}))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != "Bearer "+key {
				t.Errorf("Authorization %q", got)
			}
			r.Header.Del("Authorization")
			body, _ := io.ReadAll(r.Body)
			if all := fmt.Sprint(r.URL, r.Header, string(body)); strings.Contains(all, key) {
				t.Errorf("the key is in %s", all)
			}
			http.Redirect(w, r, other.URL+"/v1/chat/completions?"+key, code)
		})
		_, err := newTestChat(t, srv.URL, nil).Complete(t.Context(), hello, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Refused || e.Status != code || !strings.Contains(e.Message, other.URL) || strings.Contains(err.Error(), key) {
			t.Errorf("%d: %v", code, err)
		}
	}
	if len(leaked) != 0 {
		t.Errorf("the other host was asked: %q", leaked)
	}
	// The same origin may move a path; the request stays whole.
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
	}, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); r.URL.Path != "/moved" || r.Method != http.MethodPost || !strings.Contains(string(body), "hello") {
			t.Errorf("%s %s %s", r.Method, r.URL, body)
		}
		_, _ = io.WriteString(w, good)
	})
	if _, err := newTestChat(t, srv.URL, nil).Complete(t.Context(), hello, nil); err != nil {
		t.Error(err)
	}
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	}))
	defer loop.Close()
	if _, err := newTestChat(t, loop.URL, nil).Complete(t.Context(), hello, nil); err == nil {
		t.Error("redirected for ever")
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c := newTestChat(t, "http://"+address, nil)
	waits := 0
	c.tell = func(string, time.Duration) { waits++ }
	_, err = c.Complete(t.Context(), hello, nil)
	var e *Error
	if !errors.As(err, &e) || e.Kind != Connection || waits != maxTries-1 || !strings.Contains(e.Message, "refused") {
		t.Errorf("got %v after %d waits", err, waits)
	}
	// A certificate nobody vouches for does not get better.
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked") }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	_, err = newTestChat(t, srv.URL, nil).Complete(t.Context(), hello, nil)
	if !errors.As(err, &e) || e.Kind != Refused || !strings.Contains(e.Message, "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}

// Turns of one conversation share a connection.
func TestConnectionIsKept(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(says200(good))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c := newTestChat(t, srv.URL, nil)
	for range 10 {
		if _, err := c.Complete(t.Context(), hello, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for ten turns", n)
	}
}

// A server that answers before it has read the request: the bytes of the request are used again for
// the next one while the transport may still be sending them.
func TestAnsweredBeforeItWasRead(t *testing.T) {
	t.Parallel()
	early := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
	srv := serve(t, early, early, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(body) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		_, _ = io.WriteString(w, good)
	})
	c := newTestChat(t, srv.URL, nil)
	c.tries = 1
	messages := []Message{{Role: User, Content: strings.Repeat("long ", 1<<20)}}
	for range 2 {
		if _, err := c.Complete(t.Context(), messages, nil); err == nil {
			t.Error("no error")
		}
		messages = append(messages, Message{Role: User, Content: "more"})
	}
	if _, err := c.Complete(t.Context(), messages, nil); err != nil {
		t.Error(err)
	}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	handlers := make(chan http.HandlerFunc, 3)
	handlers <- status(503, "")
	handlers <- says200(good)
	handlers <- func(w http.ResponseWriter, r *http.Request) {
		stall(data(`{"choices":[{"index":0,"delta":{"content":"ha"}}]}`))(w, r)
		close(gone)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("spoke %s", r.Proto)
		}
		(<-handlers)(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c := newTestChat(t, srv.URL, func(cfg *config.Config) { cfg.BetweenTokens = 300 * time.Millisecond })
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if turn, err := c.Complete(t.Context(), hello, nil); err != nil || turn.Message.Content != "hi" {
		t.Errorf("got %s", describe(turn, err))
	}
	_, err := c.Complete(t.Context(), hello, nil)
	var e *Error
	if !errors.As(err, &e) || e.Kind != Idle {
		t.Errorf("got %v", err)
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the stream stayed open")
	}
}
