package endpoint

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

const (
	windowPatience = 5 * time.Second
	maxModels      = 8 << 20 // OpenRouter's list is large
)

// Window asks the endpoint's list of models for the context size: llama.cpp's meta.n_ctx, vLLM's
// max_model_len, Mistral's max_context_length, OpenRouter's context_length. One try of at most
// five seconds; any failure is 0, unknown.
func (c *chat) Window(ctx context.Context) int {
	if c.key == "" && c.provider.KeyVariable != "" && !c.target.own {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, windowPatience)
	defer cancel()
	req, err := c.request(ctx, http.MethodGet, "/models", nil)
	if err != nil {
		return 0
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }() // read as far as it matters
	if resp.StatusCode != http.StatusOK {
		return 0
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxModels))
	if err != nil {
		return 0
	}
	return windowOf(body, c.model)
}

func windowOf(body []byte, model string) int {
	var list struct {
		Data []struct {
			ID   text `json:"id"`
			Meta struct {
				Context number `json:"n_ctx"`
			} `json:"meta"`
			MaxModelLen      number `json:"max_model_len"`
			MaxContextLength number `json:"max_context_length"`
			ContextLength    number `json:"context_length"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil {
		return 0
	}
	for _, m := range list.Data {
		// llama.cpp serves one model whatever name it is asked for.
		if string(m.ID) != model && len(list.Data) != 1 {
			continue
		}
		for _, n := range []number{m.Meta.Context, m.MaxModelLen, m.MaxContextLength, m.ContextLength} {
			if tokens := n.tokens(); tokens > 0 {
				return tokens
			}
		}
	}
	return 0
}
