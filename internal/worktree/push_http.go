package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

const (
	// raceTries is how often a push is repeated that was refused with the words of a race
	// although the ref is what was expected: another writer may have held its lock.
	raceTries = 4
	racePause = 150 * time.Millisecond
)

// Push sends one atomic set of updates with their old values.
func (r *httpRemote) Push(ctx context.Context, from *Repository, updates ...Update) error {
	if err := check(updates); err != nil {
		return err
	}
	objects, err := from.ours(updates)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		again, err := r.push(ctx, objects, updates)
		if err == nil || !again || try == raceTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(racePause * time.Duration(try)):
		}
	}
}

// push tries once. again says that the refusal may have been another writer's lock.
func (r *httpRemote) push(ctx context.Context, objects []plumbing.EncodedObject, updates []Update) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx) // go-git leaves the response's body open
	defer cancel()
	endpoint, auth, err := r.login()
	if err != nil {
		return false, fmt.Errorf("push: %w", err)
	}
	session, err := r.transport.NewReceivePackSession(endpoint, auth)
	if err != nil {
		return false, fmt.Errorf("push: %w", r.explain("push", err))
	}
	advertised, err := session.AdvertisedReferencesContext(ctx)
	refs := map[string]string{}
	switch {
	case err == nil:
		refs = refsOf(advertised)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		advertised = packp.NewAdvRefs()
	default:
		return false, fmt.Errorf("push: %w", r.explain("push", err))
	}
	for _, u := range updates {
		if refs[u.Ref] != u.Old {
			return false, moved(u, refs[u.Ref])
		}
	}
	var said bytes.Buffer
	request, err := newRequest(advertised.Capabilities, objects, updates, &said)
	if err != nil {
		return false, fmt.Errorf("push: %w", err)
	}
	report, err := session.ReceivePack(ctx, request)
	switch {
	case report != nil && report.Error() != nil:
		err = errors.New(refusal(report, said.String()))
	case report == nil && err == nil:
		err = errors.New("the server gave no answer")
	case err == nil:
		return false, nil
	}
	return r.judge(ctx, updates, report != nil, r.explain("push", err))
}

// newRequest asks for all updates at once, or none, where the server can.
func newRequest(able *capability.List, objects []plumbing.EncodedObject, updates []Update, said io.Writer) (*packp.ReferenceUpdateRequest, error) {
	request := packp.NewReferenceUpdateRequestFromCapabilities(able)
	wish := []capability.Capability{capability.Sideband64k}
	if len(updates) > 1 {
		wish = append(wish, capability.Atomic)
	}
	deletesOnly := true
	for _, u := range updates {
		request.Commands = append(request.Commands, &packp.Command{
			Name: plumbing.ReferenceName(u.Ref), Old: plumbing.NewHash(u.Old), New: plumbing.NewHash(u.New),
		})
		deletesOnly = deletesOnly && u.New == ""
		if u.New == "" && !able.Supports(capability.DeleteRefs) {
			return nil, fmt.Errorf("the server does not let refs be deleted (%s)", u.Ref)
		}
	}
	for _, c := range wish {
		if able.Supports(c) {
			if err := request.Capabilities.Set(c); err != nil {
				return nil, err
			}
		}
	}
	request.Progress = &limited{w: said, left: 4096}
	if deletesOnly {
		return request, nil
	}
	pack, err := packOf(objects)
	if err != nil {
		return nil, err
	}
	request.Packfile = io.NopCloser(pack)
	return request, nil
}

// limited keeps the beginning of what the server says.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refusal is what the server gives as its reasons.
func refusal(report *packp.ReportStatus, said string) string {
	var reasons []string
	if report.UnpackStatus != "ok" {
		reasons = append(reasons, "unpack: "+report.UnpackStatus)
	}
	for _, status := range report.CommandStatuses {
		if status.Error() != nil {
			reasons = append(reasons, status.ReferenceName.String()+": "+status.Status)
		}
	}
	text := "the server refuses it: " + strings.Join(reasons, "; ")
	if said = strings.TrimSpace(printable(said)); said != "" {
		text += " (" + said + ")"
	}
	return text
}

// printable takes control characters out of foreign text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case r < ' ', r == 0x7f:
			return -1
		}
		return r
	}, text)
}

// raceWords are how git and its relatives word a lost race.
var raceWords = []string{
	"stale info", "fetch first", "object not found", "already exists", "cannot lock ref",
	"failed to update ref", "changed", "non-fast-forward", "failed to lock", "unable to create", "is at ",
}

// judge decides what a failed push means by what the refs are now: the words of servers
// differ, and an answer may have been lost after the update was made.
func (r *httpRemote) judge(ctx context.Context, updates []Update, answered bool, cause error) (again bool, err error) {
	refs, listErr := r.Refs(ctx)
	if listErr != nil {
		return false, fmt.Errorf("push: %w", cause)
	}
	done := true
	for _, u := range updates {
		done = done && refs[u.Ref] == u.New
	}
	if done && !answered {
		return false, nil
	}
	for _, u := range updates {
		now := refs[u.Ref] // at New, another ref of the set is the one that failed
		if now != u.Old && (now != u.New || len(updates) == 1) {
			return false, moved(u, now)
		}
	}
	text := strings.ToLower(cause.Error())
	for _, words := range raceWords {
		again = again || strings.Contains(text, words)
	}
	return again, fmt.Errorf("push: %w", cause)
}
