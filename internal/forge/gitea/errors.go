package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "code.gitea.io/sdk/gitea"

	"issuesmith/internal/forge"
)

// detailBytes bounds what of the forge's own words goes into an error.
const detailBytes = 1000

// What an operation needs, as it is written under `permissions:` of a job.
const (
	anyRead   = "contents: write" // what the job needs in any case
	contents  = "contents: write"
	issues    = "issues: write"
	pulls     = "pull-requests: write"
	runsWrite = "actions: write"
)

// An apiError is an answer that says no.
type apiError struct {
	status int
	detail string
}

func (e *apiError) Error() string {
	s := fmt.Sprintf("the forge answered %d %s", e.status, http.StatusText(e.status))
	if e.detail != "" {
		s += ": " + e.detail
	}
	return s
}

func status(res *sdk.Response) int {
	if res == nil || res.Response == nil {
		return 0
	}
	return res.StatusCode
}

// failed turns the SDK's result into an error that says what was being done. 403 and 404 are
// taken for a missing permission: whether a thing is only missing must be found out before.
func (f *Forge) failed(doing, permission string, res *sdk.Response, err error) error {
	code := status(res)
	var known *forge.PermissionError
	switch {
	case errors.As(err, &known):
		return err
	case code == 0:
		return fmt.Errorf("%s: %w", doing, f.cleanError(err))
	case code/100 == 2:
		return fmt.Errorf("%s: the forge's answer cannot be understood: %s", doing, f.clean(err.Error()))
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w", doing, forge.ErrToken)
	case code == http.StatusForbidden, code == http.StatusNotFound:
		return &forge.PermissionError{Doing: doing, Permission: permission, Detail: f.answer(code, err)}
	}
	e := &apiError{status: code, detail: f.clean(err.Error())}
	if code == http.StatusTooManyRequests || code >= 500 {
		return fmt.Errorf("%s: %w; try again later", doing, e)
	}
	return fmt.Errorf("%s: %w", doing, e)
}

// answer is code and words of a refusal on one line.
func (f *Forge) answer(code int, err error) string {
	return strings.TrimSuffix(fmt.Sprintf("the forge answered %d: %s", code, f.clean(err.Error())), ": ")
}

// clean takes secrets and control characters out of the forge's words and cuts them.
func (f *Forge) clean(s string) string {
	s = strings.ReplaceAll(s, f.token, "***")
	s = f.redact(s)
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	return cut(s, detailBytes)
}

// cleanError keeps what errors.Is and As see and cleans the words.
func (f *Forge) cleanError(err error) error {
	return &wordsError{words: f.clean(err.Error()), error: err}
}

type wordsError struct {
	words string
	error
}

func (e *wordsError) Error() string { return e.words }
func (e *wordsError) Unwrap() error { return e.error }

// cut shortens at a rune's start.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// failedOn is failed for an operation on one issue or pull request, which may just not be there.
func (f *Forge) failedOn(ctx context.Context, doing, what, permission string, res *sdk.Response, err error) error {
	if code := status(res); code == http.StatusNotFound {
		return f.missing(ctx, doing, what, permission, code, err)
	}
	return f.failed(doing, permission, res, err)
}

// missing tells, after a 404 on one issue or pull request, whether it is the thing or the permission that
// is missing: the list of its kind is answered only to those who may read it.
func (f *Forge) missing(ctx context.Context, doing, what, permission string, code int, err error) error {
	probe := sdk.ListOptions{Page: 1, PageSize: 1}
	var res *sdk.Response
	var probed error
	if permission == pulls {
		_, res, probed = f.Client(ctx).ListRepoPullRequests(f.owner, f.name, sdk.ListPullRequestsOptions{ListOptions: probe})
	} else {
		_, res, probed = f.Client(ctx).ListRepoIssues(f.owner, f.name, sdk.ListIssueOption{ListOptions: probe, Type: sdk.IssueTypeIssue})
	}
	switch refused := status(res); {
	case probed == nil:
		return fmt.Errorf("%s: %s: %w", doing, what, forge.ErrNotFound)
	case refused == http.StatusNotFound, refused == http.StatusForbidden:
		return &forge.PermissionError{Doing: doing, Permission: permission, Detail: f.answer(code, err)}
	}
	return f.failed(doing, permission, res, probed)
}
