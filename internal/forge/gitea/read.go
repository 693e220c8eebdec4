package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"
)

const (
	pageSize = 50 // the most a page holds
	maxPages = 200
)

// get reads an answer of the API that the SDK has no function or not all fields for. path is below the
// repository and escaped already.
func (f *Forge) get(ctx context.Context, path string, query url.Values, into any) (*sdk.Response, error) {
	u := f.server.JoinPath("api", "v1", "repos", f.owner, f.name).String() + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "issuesmith")
	res, err := f.api.Do(req)
	if err != nil {
		return nil, err
	}
	out := &sdk.Response{Response: res}
	data, err := io.ReadAll(res.Body) // in memory and bounded already
	_ = res.Body.Close()              // as above
	if err != nil {
		return out, err
	}
	if res.StatusCode/100 != 2 {
		var said struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(data, &said) != nil {
			said.Message = cut(string(data), detailBytes)
		}
		return out, fmt.Errorf("%s", said.Message)
	}
	return out, json.Unmarshal(data, into)
}

// pages reads a list to its end. Some lists know no pages and answer with everything at once, so the
// end is where the total is reached, a page is empty, or a page begins like the one before.
func pages[T any](id func(T) int64, fetch func(sdk.ListOptions) ([]T, *sdk.Response, error)) ([]T, *sdk.Response, error) {
	var all []T
	last := int64(-1)
	for page := 1; page <= maxPages; page++ {
		part, res, err := fetch(sdk.ListOptions{Page: page, PageSize: pageSize})
		if err != nil {
			return nil, res, err
		}
		if len(part) == 0 || id(part[0]) == last {
			return all, res, nil
		}
		last = id(part[0])
		all = append(all, part...)
		if total, ok := totalCount(res); ok && len(all) >= total {
			return all, res, nil
		}
	}
	return all, nil, nil
}

func totalCount(res *sdk.Response) (int, bool) {
	if res == nil || res.Response == nil {
		return 0, false
	}
	n, err := strconv.Atoi(res.Header.Get("X-Total-Count"))
	return n, err == nil
}

// paging is the query of one page.
func paging(o sdk.ListOptions) url.Values {
	return url.Values{"page": {strconv.Itoa(o.Page)}, "limit": {strconv.Itoa(o.PageSize)}}
}
