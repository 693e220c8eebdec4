package endpoint

import (
	"strings"

	"issuesmith/internal/config"
	"issuesmith/internal/transcript"
)

// prices are USD per million tokens, by provider and the name its API knows. They are the
// vendors' list prices of October 2026 (mistral.ai/pricing, openai.com/api/pricing,
// claude.com/pricing, ai.google.dev/gemini-api/docs/pricing, api-docs.deepseek.com) as the model
// catalogue of github.com/earendil-works/pi of 2026-10-09 lists them. Only names whose price was found there:
// every other hosted model's cost is unknown until the repository file prices it. Where a price
// depends on the hour (DeepSeek) it is the higher one; prices that rise with very long
// prompts (Gemini above 200,000 tokens) are the usual ones.
var prices = map[string]config.Price{
	"mistral/devstral-latest":        {Prompt: 0.40, Cached: 0.04, Completion: 2},
	"mistral/devstral-medium-latest": {Prompt: 0.40, Cached: 0.04, Completion: 2},
	"mistral/devstral-medium-2507":   {Prompt: 0.40, Cached: 0.04, Completion: 2},
	"mistral/devstral-2512":          {Prompt: 0.40, Cached: 0.04, Completion: 2},
	"mistral/devstral-small-2507":    {Prompt: 0.10, Cached: 0.01, Completion: 0.30},
	"mistral/codestral-latest":       {Prompt: 0.30, Cached: 0.03, Completion: 0.90},
	"mistral/mistral-large-2512":     {Prompt: 0.50, Cached: 0.05, Completion: 1.50},
	"mistral/mistral-large-latest":   {Prompt: 0.50, Cached: 0.05, Completion: 1.50},
	"mistral/mistral-medium-2508":    {Prompt: 0.40, Cached: 0.04, Completion: 2},
	"mistral/mistral-medium-latest":  {Prompt: 1.50, Cached: 0.15, Completion: 7.50},
	"mistral/mistral-small-latest":   {Prompt: 0.15, Cached: 0.015, Completion: 0.60},

	"openai/gpt-4.1":      {Prompt: 2, Cached: 0.50, Completion: 8},
	"openai/gpt-4.1-mini": {Prompt: 0.40, Cached: 0.10, Completion: 1.60},
	"openai/gpt-4.1-nano": {Prompt: 0.10, Cached: 0.025, Completion: 0.40},
	"openai/gpt-4o":       {Prompt: 2.50, Cached: 1.25, Completion: 10},
	"openai/gpt-4o-mini":  {Prompt: 0.15, Cached: 0.075, Completion: 0.60},
	"openai/gpt-5":        {Prompt: 1.25, Cached: 0.125, Completion: 10},
	"openai/gpt-5-mini":   {Prompt: 0.25, Cached: 0.025, Completion: 2},
	"openai/gpt-5-nano":   {Prompt: 0.05, Cached: 0.005, Completion: 0.40},
	"openai/gpt-5.1":      {Prompt: 1.25, Cached: 0.125, Completion: 10},
	"openai/gpt-5.2":      {Prompt: 1.75, Cached: 0.175, Completion: 14},

	"anthropic/claude-opus-4-5":   {Prompt: 5, Cached: 0.50, Completion: 25},
	"anthropic/claude-sonnet-4-5": {Prompt: 3, Cached: 0.30, Completion: 15},
	"anthropic/claude-sonnet-4-6": {Prompt: 3, Cached: 0.30, Completion: 15},
	"anthropic/claude-haiku-4-5":  {Prompt: 1, Cached: 0.10, Completion: 5},

	"gemini/gemini-2.5-pro":        {Prompt: 1.25, Cached: 0.125, Completion: 10},
	"gemini/gemini-2.5-flash":      {Prompt: 0.30, Cached: 0.03, Completion: 2.50},
	"gemini/gemini-2.5-flash-lite": {Prompt: 0.10, Cached: 0.01, Completion: 0.40},

	"deepseek/deepseek-flash":  {Prompt: 0.30, Cached: 0.006, Completion: 1.20},
	"deepseek/deepseek-v4-pro": {Prompt: 1.32, Cached: 0.044, Completion: 3.96},
}

// PriceOf finds the price of the configured model: of the repository file (by provider/name, then
// by name), else 0 for local providers and for servers on loopback or private addresses, else
// from the table above. False: unknown, and cost-limit cannot hold.
func PriceOf(c *config.Config) (config.Price, bool) {
	name := c.Model.Provider + "/" + c.Model.Name
	for _, key := range []string{name, c.Model.Name} {
		if p, ok := c.Prices[key]; ok {
			return p, true
		}
	}
	provider, ok := providerOf(c.Model.Provider)
	if ok && provider.Local {
		return config.Price{}, true
	}
	if c.ModelBase != "" {
		if t, err := parseBase(c.ModelBase); err == nil && t.own {
			return config.Price{}, true
		}
	}
	if p, ok := prices[name]; ok {
		return p, true
	}
	p, ok := prices[undated(name)]
	return p, ok
}

// undated takes the date off a snapshot's name: gpt-4.1-2025-04-14, claude-sonnet-4-5-20250929.
func undated(name string) string {
	for _, form := range []string{"-dddd-dd-dd", "-dddddddd"} {
		at := len(name) - len(form)
		if at > 0 && strings.Map(digitsToD, name[at:]) == form {
			return name[:at]
		}
	}
	return name
}

func digitsToD(r rune) rune {
	if r >= '0' && r <= '9' {
		return 'd'
	}
	return r
}

// bytesPerToken is the estimate where an endpoint counts nothing: four bytes of request or
// answer to a token, which is near for English and code and too many for most other text.
const bytesPerToken = 4

// account counts a turn. requestBytes is the size of its request.
func (c *chat) account(a *assembly, m Message, requestBytes int) transcript.Usage {
	var u transcript.Usage
	switch {
	case a.usage != nil:
		cached := max(a.usage.Details.Cached.tokens(), a.usage.CacheHit.tokens())
		u = transcript.Usage{Prompt: a.usage.Prompt.tokens(), Cached: cached, Completion: a.usage.Completion.tokens()}
	case a.timings != nil && a.timings.Predicted.given:
		cached := a.timings.Cached.tokens()
		u = transcript.Usage{Prompt: cached + a.timings.Prompt.tokens(), Cached: cached, Completion: a.timings.Predicted.tokens()}
	default:
		size := len(m.Content) + len(m.Reasoning)
		for _, call := range m.Calls {
			size += len(call.Name) + len(call.Arguments)
		}
		u = transcript.Usage{
			Prompt:     (requestBytes + bytesPerToken - 1) / bytesPerToken,
			Completion: (size + bytesPerToken - 1) / bytesPerToken,
			Estimated:  true,
		}
	}
	u.Cached = min(u.Cached, u.Prompt)
	switch {
	case c.priced:
		u.Cost = (float64(u.Prompt-u.Cached)*c.price.Prompt + float64(u.Cached)*c.price.Cached +
			float64(u.Completion)*c.price.Completion) / 1e6
		u.CostKnown = true
	case c.billed && a.usage != nil && a.usage.Cost.given:
		u.Cost, u.CostKnown = a.usage.Cost.value, true
	}
	return u
}
