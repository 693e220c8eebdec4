package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"issuesmith/internal/config"
)

// A chat is the client of an OpenAI-compatible server.
type chat struct {
	provider Provider
	model    string
	target   target
	key      string

	http    *http.Client
	first   time.Duration // no byte before the first token
	next    time.Duration // no data between tokens
	tries   int
	backoff func(try int) time.Duration
	tell    func(reason string, d time.Duration)

	price  config.Price
	priced bool
	billed bool // the endpoint says itself what a turn cost (OpenRouter)

	conversation conversation
	ids          int // made up so far
}

func newChat(o Options) (*chat, error) {
	cfg := o.Config
	provider, ok := providerOf(cfg.Model.Provider)
	if !ok {
		return nil, fmt.Errorf("model: no provider %q; write provider/name, for example mistral/devstral-latest", cfg.Model.Provider)
	}
	base := cfg.ModelBase
	if base == "" {
		base = provider.BaseURL
	}
	if base == "" {
		return nil, fmt.Errorf("model: provider %s needs model-base-url", provider.Name)
	}
	target, err := parseBase(base)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(cfg.ModelKey)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("model-api-key holds characters that no key has; give the bare key")
	}
	c := &chat{
		provider: provider, model: cfg.Model.Name, target: target, key: key,
		http:  newHTTP(target.origin),
		first: orElse(cfg.FirstToken, 5*time.Minute),
		next:  orElse(cfg.BetweenTokens, time.Minute),
		tries: maxTries, backoff: backoff, tell: o.Wait,
		billed: provider.Name == "openrouter",
		conversation: conversation{
			model:     cfg.Model.Name,
			reasoning: provider.Name == "deepseek",
			// Mistral refuses the field (422, extra_forbidden) and sends the usage unasked.
			usage:      provider.Name != "mistral",
			signatures: make(map[string]json.RawMessage),
		},
	}
	c.price, c.priced = PriceOf(cfg)
	return c, nil
}

func orElse(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// Name is provider/name.
func (c *chat) Name() string { return c.provider.Name + "/" + c.model }

// Request is the body Complete would send.
func (c *chat) Request(messages []Message, tools []Tool) ([]byte, error) {
	body, err := c.conversation.encode(messages, tools)
	return append([]byte(nil), body...), err
}

// Complete asks for one turn.
func (c *chat) Complete(ctx context.Context, messages []Message, tools []Tool) (*Turn, error) {
	if c.key == "" && c.provider.KeyVariable != "" && !c.target.own {
		return nil, c.fail(Auth, "there is no API key", nil)
	}
	for try := 1; ; try++ {
		body, err := c.conversation.encode(messages, tools)
		if err != nil {
			return nil, c.fail(Refused, err.Error(), err)
		}
		turn, begun, failure := c.ask(ctx, body)
		if failure == nil {
			return turn, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.conversation.usage && failure.Kind == Refused && strings.Contains(failure.Message, "stream_options") {
			// A server as strict as Mistral's: it sends usage unasked, or we estimate.
			c.conversation.usage, c.conversation.tail = false, nil
			try--
			continue
		}
		if begun || !c.wait(ctx, failure, try) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, failure
		}
	}
}

// fail makes an error of this endpoint. words may hold anything.
func (c *chat) fail(kind Kind, words string, err error) *Error {
	return &Error{Kind: kind, Message: plain(words, c.key), Model: c.Name(), URL: c.target.origin, Err: err}
}

// newID makes up the id of a call that came without: nine letters and digits, which is the only
// form Mistral takes back.
func (c *chat) newID() string {
	c.ids++
	return fmt.Sprintf("c%08d", c.ids)
}
