package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"issuesmith/internal/config"
	"issuesmith/internal/transcript"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		provider, base, key string
		words               string // "" is accepted
	}{
		"the provider's address":   {provider: "mistral", key: key},
		"https anywhere":           {provider: "custom", base: "https://models.example.com/v1/"},
		"http on loopback":         {provider: "custom", base: "http://127.0.0.1:8080/v1"},
		"http on IPv6 loopback":    {provider: "custom", base: "http://[::1]:8080/v1"},
		"http on a private host":   {provider: "custom", base: "http://10.1.2.3/v1"},
		"http to a service":        {provider: "custom", base: "http://llama:8080/v1"},
		"http to localhost":        {provider: "custom", base: "http://localhost:8080/v1"},
		"http anywhere":            {provider: "custom", base: "http://models.example.com/v1", words: "in the clear"},
		"http to the metadata":     {provider: "custom", base: "http://169.254.169.254/v1", words: "in the clear"},
		"http to a number":         {provider: "custom", base: "http://134744072/v1", words: "in the clear"},
		"http to a hexadecimal":    {provider: "custom", base: "http://0x08080808/v1", words: "in the clear"},
		"http to a mapped address": {provider: "custom", base: "http://[::ffff:8.8.8.8]/v1", words: "in the clear"},
		"a file":                   {provider: "custom", base: "file:///etc/passwd", words: "https://"},
		"no host":                  {provider: "custom", base: "https:///v1", words: "host"},
		"not a URL":                {provider: "custom", base: "https://a b\x7f/" + key, words: "not a URL"},
		"a password":               {provider: "custom", base: "https://u:" + key + "@host/v1", words: "user or password"},
		"a query":                  {provider: "custom", base: "https://host/v1?key=" + key, words: "query"},
		"no address":               {provider: "custom", words: "model-base-url"},
		"no such provider":         {provider: "acme", words: "acme"},
		"a key with a newline":     {provider: "custom", base: "https://host/v1", key: key + "\r\nX-Evil: 1", words: "model-api-key"},
		"a key with a space after": {provider: "custom", base: "https://host/v1", key: key + "\n"},
	} {
		_, err := New(Options{Config: &config.Config{Model: config.Model{Provider: tt.provider, Name: "m"}, ModelBase: tt.base, ModelKey: tt.key}})
		switch {
		case tt.words == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.words != "" && (err == nil || !strings.Contains(err.Error(), tt.words)):
			t.Errorf("%s: got %v", name, err)
		case err != nil && strings.Contains(err.Error(), key):
			t.Errorf("%s: the key is in %v", name, err)
		}
	}
}

func TestProvidersAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range Providers() {
		if seen[p.Name] {
			t.Errorf("%s twice", p.Name)
		}
		seen[p.Name] = true
		if p.BaseURL == "" {
			continue
		}
		target, err := parseBase(p.BaseURL)
		if err != nil || target.own != p.Local || target.base != p.BaseURL {
			t.Errorf("%s: %+v, %v", p.Name, target, err)
		}
		if (p.KeyVariable == "") != p.Local {
			t.Errorf("%s: key variable %q", p.Name, p.KeyVariable)
		}
	}
	for _, name := range strings.Fields("mistral openai openrouter anthropic gemini deepseek ollama vllm llamacpp custom replay") {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestNoKeyIsSaidBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Config: &config.Config{Model: config.Model{Provider: "mistral", Name: "devstral-latest"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Complete(t.Context(), hello, nil)
	var e *Error
	if !errors.As(err, &e) || e.Kind != Auth || !strings.Contains(err.Error(), "MISTRAL_API_KEY") {
		t.Errorf("got %v", err)
	}
	if c.Window(t.Context()) != 0 {
		t.Error("a window without a key")
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	given := map[string]config.Price{"m": {Prompt: 1}, "custom/x": {Prompt: 2}, "x": {Prompt: 3}, "devstral-latest": {Prompt: 9}}
	for _, tt := range []struct {
		model, base string
		prices      map[string]config.Price
		prompt      float64
		known       bool
	}{
		{model: "mistral/devstral-latest", prompt: 0.4, known: true},
		{model: "mistral/devstral-latest", prices: given, prompt: 9, known: true},
		{model: "openai/gpt-4.1-2025-04-14", prompt: 2, known: true},
		{model: "anthropic/claude-sonnet-4-5-20250929", prompt: 3, known: true},
		{model: "openai/gpt-99"},
		{model: "openrouter/mistralai/devstral-medium"},
		{model: "custom/m", base: "https://models.example.com/v1"},
		{model: "custom/m", base: "https://models.example.com/v1", prices: given, prompt: 1, known: true},
		{model: "custom/x", base: "https://models.example.com/v1", prices: given, prompt: 2, known: true},
		{model: "custom/m", base: "http://10.0.0.1/v1", known: true},
		{model: "custom/m", base: "http://10.0.0.1/v1", prices: given, prompt: 1, known: true},
		{model: "mistral/devstral-latest", base: "http://127.0.0.1:1/v1", known: true},
		{model: "ollama/qwen", known: true},
		{model: "llamacpp/m", prices: given, prompt: 1, known: true},
	} {
		provider, name, _ := strings.Cut(tt.model, "/")
		p, known := PriceOf(&config.Config{Model: config.Model{Provider: provider, Name: name}, ModelBase: tt.base, Prices: tt.prices})
		if known != tt.known || p.Prompt != tt.prompt {
			t.Errorf("%s at %q: %v, %v", tt.model, tt.base, p, known)
		}
	}
	for name, p := range prices {
		if provider, model, _ := strings.Cut(name, "/"); model == "" || p.Prompt <= 0 || p.Cached <= 0 || p.Cached > p.Prompt || p.Completion < p.Prompt {
			t.Errorf("%s: %v", name, p)
		} else if _, ok := providerOf(provider); !ok {
			t.Errorf("%s: no such provider", name)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	hi := `{"choices":[{"index":0,"delta":{"content":"12345678"},"finish_reason":"stop"}]}`
	for name, tt := range map[string]struct {
		provider, usage string
		want            transcript.Usage
	}{
		"cached tokens":           {usage: `{"usage":{"prompt_tokens":1000,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":600}}}`, want: transcript.Usage{Prompt: 1000, Cached: 600, Completion: 10, Cost: (400*1 + 600*0.5 + 10*2) / 1e6, CostKnown: true}},
		"deepseek's cache":        {usage: `{"usage":{"prompt_tokens":1000,"completion_tokens":10,"prompt_cache_hit_tokens":1000}}`, want: transcript.Usage{Prompt: 1000, Cached: 1000, Completion: 10, Cost: (1000*0.5 + 10*2) / 1e6, CostKnown: true}},
		"more cached than prompt": {usage: `{"usage":{"prompt_tokens":10,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":600}}}`, want: transcript.Usage{Prompt: 10, Cached: 10, Cost: 5 / 1e6, CostKnown: true}},
		"floats and text":         {usage: `{"usage":{"prompt_tokens":10.0,"completion_tokens":"4","prompt_tokens_details":null}}`, want: transcript.Usage{Prompt: 10, Completion: 4, Cost: 18 / 1e6, CostKnown: true}},
		"negative and huge":       {usage: `{"usage":{"prompt_tokens":-10,"completion_tokens":9e300}}`, want: transcript.Usage{Prompt: 25, Completion: 2, Estimated: true, Cost: 29 / 1e6, CostKnown: true}},
		"none":                    {usage: `{"usage":null,"choices":[]}`, want: transcript.Usage{Prompt: 25, Completion: 2, Estimated: true, Cost: 29 / 1e6, CostKnown: true}},
		"timings of llama.cpp":    {usage: `{"choices":[],"timings":{"cache_n":20,"prompt_n":5,"predicted_n":3}}`, want: transcript.Usage{Prompt: 25, Cached: 20, Completion: 3, Cost: (5 + 10 + 6) / 1e6, CostKnown: true}},
		"openrouter's bill":       {provider: "openrouter", usage: `{"usage":{"prompt_tokens":10,"completion_tokens":4,"cost":0.25}}`, want: transcript.Usage{Prompt: 10, Completion: 4, Cost: 0.25, CostKnown: true}},
		"a bill of nobody known":  {provider: "openai", usage: `{"usage":{"prompt_tokens":10,"completion_tokens":4,"cost":0.25}}`, want: transcript.Usage{Prompt: 10, Completion: 4}},
		"openrouter without bill": {provider: "openrouter", usage: `{"usage":{"prompt_tokens":10,"completion_tokens":4,"cost":-1}}`, want: transcript.Usage{Prompt: 10, Completion: 4}},
	} {
		c := newTestChat(t, "https://models.example.com", func(cfg *config.Config) {
			cfg.Prices = map[string]config.Price{"m": {Prompt: 1, Cached: 0.5, Completion: 2}}
			if tt.provider != "" {
				cfg.Model.Provider, cfg.Prices = tt.provider, nil
			}
		})
		turn, err := readAll(c, strings.NewReader(data(hi, tt.usage)))
		if err != nil {
			t.Fatal(err)
		}
		got := turn.Usage
		if math.Abs(got.Cost-tt.want.Cost) > 1e-12 {
			t.Errorf("%s: cost %v, want %v", name, got.Cost, tt.want.Cost)
		}
		got.Cost = tt.want.Cost
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	var c *chat
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.String() != "/v1/chat/completions" || r.Header.Get("Content-Type") != "application/json" || r.ContentLength != int64(len(got)) || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		var request struct {
			Model    string
			Stream   bool
			Messages []json.RawMessage
		}
		if err := json.Unmarshal(got, &request); err != nil || request.Model != "m" || !request.Stream || len(request.Messages) != 1 {
			t.Errorf("%s: %v", got, err)
		}
		w.Header().Set("X-Request-Id", "req-7")
		_, _ = io.WriteString(w, data(`{"id":"c","model":"someone-else","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, "[DONE]"))
	}))
	defer srv.Close()
	c = newTestChat(t, srv.URL, nil)
	turn, err := c.Complete(t.Context(), hello, nil)
	if err != nil || turn.RequestID != "req-7" || turn.Model != "someone-else" || c.Name() != "custom/m" {
		t.Errorf("got %s", describe(turn, err))
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"data":[{"id":"whatever.gguf","meta":{"n_ctx":4096,"n_ctx_train":131072}}]}`:   4096,
		`{"data":[{"id":"m","max_model_len":8192},{"id":"n","max_model_len":1}]}`:        8192,
		`{"data":[{"id":"n","context_length":5},{"id":"m","context_length":200000}]}`:    200000,
		`{"data":[{"id":"n","max_context_length":5},{"id":"x","max_context_length":6}]}`: 0,
		`{"data":[{"id":"m","meta":null}]}`:                                              0,
		`{"data":[{"id":"m","meta":{"n_ctx":-5}}]}`:                                      0,
		`{"data":{}}`: 0,
		`<html>`:      0,
		``:            0,
		`{"models":[{"name":"x"}],"object":"list","data":[{"id":"m","meta":{"n_ctx":"2048"}}]}`:     2048,
		`{"data":[{"id":"m","meta":{"n_ctx":1e99},"max_model_len":null,"context_length":"large"}]}`: 0,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
			}
			_, _ = fmt.Fprint(w, body)
		}))
		if got := newTestChat(t, srv.URL, nil).Window(t.Context()); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
		srv.Close()
	}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }))
	defer broken.Close()
	if got := newTestChat(t, broken.URL, nil).Window(t.Context()); got != 0 {
		t.Errorf("500: %d", got)
	}
}

// Every kind of failure says what to do, in one line, whatever the endpoint said.
func TestErrorText(t *testing.T) {
	t.Parallel()
	c := newTestChat(t, "http://127.0.0.1:1", nil)
	for _, kind := range []Kind{Truncated, Length, Server, RateLimit, Auth, Protocol, Idle, ContextOverflow, Refused, Connection} {
		e := c.fail(kind, "bad\x1b[31m "+key+"\n\x00words "+strings.Repeat("ä", 5000)+key, nil)
		text := e.Error()
		if strings.Contains(text, key) || strings.ContainsAny(text, "\x1b\n\x00") || len([]rune(e.Message)) > maxWords || !strings.Contains(text, "; ") {
			t.Errorf("%s: %q", kind, text)
		}
	}
	at := maxWords - len(key)/2
	if e := c.fail(Server, strings.Repeat("x", at)+key, nil); strings.Contains(e.Message, key[:6]) {
		t.Errorf("a part of the key stays: %s", e.Message[at-5:])
	}
}

func FuzzComplaint(f *testing.F) {
	f.Add([]byte(`[{"error":{"code":400,"message":"x","status":"INVALID"}}]`))
	f.Add([]byte(`{"detail":[{"loc":["body",1],"msg":"extra"}]}`))
	f.Add([]byte(`{"error":{"message":{"detail":[[["a"]]]},"metadata":{"raw":"b"}}}`))
	f.Add([]byte("<html><b>502"))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := newTestChat(t, "http://127.0.0.1:1", nil)
		e := c.complain(500, body)
		if e.Kind == "" || strings.Contains(e.Error(), key) || strings.Contains(e.Message, "\n") || len([]rune(e.Message)) > maxWords {
			t.Errorf("%#v", e)
		}
	})
}

func FuzzBase(f *testing.F) {
	f.Add("http://127.0.0.1:8080/v1")
	f.Add("https://host/v1")
	f.Add("http://[::1%25eth0]/")
	f.Fuzz(func(t *testing.T, base string) {
		target, err := parseBase(base)
		if err == nil && !strings.HasPrefix(target.origin, "https://") && !target.own {
			t.Errorf("%q gives %+v", base, target)
		}
	})
}
