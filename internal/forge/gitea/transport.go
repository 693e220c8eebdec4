package gitea

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	tries         = 3
	requestTime   = 30 * time.Second  // one try of an API request, its answer included
	gitTime       = 300 * time.Second // one git exchange
	longestWait   = 60 * time.Second  // a longer Retry-After is not waited for
	firstBackoff  = 500 * time.Millisecond
	largestAnswer = 64 << 20 // bytes of an API answer
)

// errTooLarge is an answer that is not read.
var errTooLarge = errors.New("the forge's answer is larger")

// repeatKey marks requests that may be repeated though they write.
type repeatKey struct{}

// repeatable says that doing the write twice is the same as doing it once.
func repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatKey{}, true)
}

// A transport keeps requests at the instance and repeats those that may be repeated.
type transport struct {
	base  http.RoundTripper
	own   string // origin
	token string // added as the Authorization header when not empty
	whole int64  // answers up to so many bytes are read whole, within requestTime, as part of the try; 0: they are not
	wait  func(context.Context, time.Duration) error
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if o := origin(req.URL); o != t.own {
		closeBody(req)
		return nil, &redirectError{from: t.own, to: o}
	}
	safe := req.Method == http.MethodGet || req.Method == http.MethodHead || req.Context().Value(repeatKey{}) != nil
	for try := 1; ; try++ {
		res, err := t.once(req)
		again, wait := worthAnother(req.Context(), res, err, safe, try)
		if !again || try == tries || !rewindable(req) {
			return res, err
		}
		if res != nil {
			drain(res)
		}
		if e := t.wait(req.Context(), wait); e != nil {
			return nil, fmt.Errorf("waiting to try again: %w", e)
		}
		if req, err = rewind(req); err != nil {
			return nil, err
		}
	}
}

// once is one try.
func (t *transport) once(req *http.Request) (*http.Response, error) {
	r := req.Clone(req.Context())
	if t.token != "" {
		r.Header.Set("Authorization", "token "+t.token)
	}
	if t.whole == 0 {
		res, err := t.base.RoundTrip(r)
		return res, adviseOnCertificate(err)
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), requestTime, fmt.Errorf("no answer from the forge within %v", requestTime))
	defer cancel()
	res, err := t.base.RoundTrip(r.WithContext(ctx))
	if err == nil {
		err = readWhole(res, t.whole)
	}
	if err != nil {
		if req.Context().Err() == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // our limit, not the caller's
		}
		return nil, adviseOnCertificate(err)
	}
	return res, nil
}

// A certificateError says what to do about a certificate that is not trusted.
type certificateError struct {
	*tls.CertificateVerificationError
}

func (e *certificateError) Error() string {
	return e.CertificateVerificationError.Error() + "; if the instance has a certificate authority of its own, name its file in the environment variable SSL_CERT_FILE"
}

func adviseOnCertificate(err error) error {
	var c *tls.CertificateVerificationError
	if errors.As(err, &c) {
		return &certificateError{c}
	}
	return err
}

// readWhole takes the answer into memory, so that a connection lost in its middle is a failed try.
func readWhole(res *http.Response, limit int64) error {
	var b bytes.Buffer
	_, err := io.Copy(&b, io.LimitReader(res.Body, limit+1))
	err = errors.Join(err, res.Body.Close())
	if int64(b.Len()) > limit {
		err = fmt.Errorf("%w than %d MiB", errTooLarge, limit>>20)
	}
	res.Body = io.NopCloser(&b)
	return err
}

// worthAnother decides whether a failed try is repeated, and after which wait. A request that was
// never sent, or that the forge put off (429), may be repeated whatever it does.
func worthAnother(ctx context.Context, res *http.Response, err error, safe bool, try int) (bool, time.Duration) {
	wait := firstBackoff << (2 * (try - 1))
	var hopeless *certificateError
	if ctx.Err() != nil || errors.Is(err, errTooLarge) || errors.As(err, &hopeless) {
		return false, 0
	}
	if err != nil {
		var op *net.OpError
		unsent := errors.As(err, &op) && op.Op == "dial"
		return safe || unsent, wait
	}
	if res.StatusCode != http.StatusTooManyRequests && (res.StatusCode < 500 || !safe) {
		return false, 0
	}
	if w, ok := retryAfter(res.Header.Get("Retry-After"), time.Now()); ok {
		return w <= longestWait, w
	}
	return true, wait
}

// retryAfter reads the header in both of its forms.
func retryAfter(v string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

func rewindable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

func rewind(req *http.Request) (*http.Request, error) {
	r := req.Clone(req.Context())
	if req.GetBody == nil {
		return r, nil
	}
	b, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("repeating the request: %w", err)
	}
	r.Body = b
	return r, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // nothing was read from it
	}
}

// drain gives the connection back for the next try.
func drain(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // what fails here fails only the reuse
	_ = res.Body.Close()                          // the answer is thrown away
}

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
