package gitea

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// parseServer takes the instance's address, path prefix included, and refuses one to which a token
// may not be sent: https goes anywhere, http only to a loopback, private or service address.
func parseServer(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		// The error of url.Parse repeats the address, which may hold a password.
		return nil, errors.New("server-url is not an address: give https://HOST, with the path prefix if the instance has one")
	}
	switch {
	case u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("server-url needs a scheme and a host: give https://HOST, with the path prefix if the instance has one")
	case u.User != nil:
		return nil, errors.New("server-url holds a user or a password: take it out, the token is given as `token`")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("server-url holds a query or a fragment: give the address of the instance only")
	case u.Scheme == "http" && !near(u.Hostname()):
		return nil, fmt.Errorf("server-url: the token may not go over plain http to %s: use https (http is only for loopback, private and service addresses)", u.Hostname())
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("server-url: scheme %q is not supported: use https", u.Scheme)
	}
	u.Host = strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// near reports whether a host is one of this machine or its own network: an address of a loopback,
// private or link-local range, a name of one label (a service), or a name that no public server can have.
func near(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return nearAddr(a)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".home.arpa", ".lan"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// carrier is the range providers and overlay networks use inside (RFC 6598).
var carrier = netip.MustParsePrefix("100.64.0.0/10")

func nearAddr(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || carrier.Contains(a)
}

// origin is scheme, host and port, the port always written.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// baseTransport dials like Go's own, with three differences: over plain http it takes no proxy
// (which would read the token) and connects to near addresses only, whatever a name resolves to.
func baseTransport(server *url.URL) *http.Transport {
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext:           d.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	if server.Scheme == "https" {
		t.Proxy = http.ProxyFromEnvironment
		return t
	}
	d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil || !nearAddr(a.Addr()) {
			return fmt.Errorf("%s resolves to %s, a public address: the token may not go there over plain http; use https", server.Hostname(), address)
		}
		return nil
	}
	return t
}

// checkRedirect follows redirects within the instance only, and never one that would turn a write
// into a read (which would look like success).
func checkRedirect(own string) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		first := via[0]
		switch {
		case origin(req.URL) != own:
			return &redirectError{from: own, to: origin(req.URL)}
		case req.Method != first.Method && first.Method != http.MethodHead:
			return fmt.Errorf("the forge answered %s with a redirect: check `server-url` and `repository` (was it renamed?)", first.Method)
		case len(via) >= 5:
			return errors.New("the forge redirects in a circle: check `server-url`")
		}
		return nil
	}
}

// A redirectError is a redirect that would have taken the token elsewhere.
type redirectError struct{ from, to string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("%s redirects to %s: not followed, since the token may only go to the instance itself; if that is its address now, set `server-url` to it", e.from, e.to)
}
