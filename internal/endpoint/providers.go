package endpoint

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"issuesmith/internal/config"
)

// A Provider is a kind of endpoint that a model's name can begin with.
type Provider struct {
	Name        string
	BaseURL     string // "" has to be given with model-base-url
	KeyVariable string // environment variable of the API key, "" when it needs none
	Local       bool   // runs on hardware of one's own: costs 0
}

const replayName = "replay"

// Providers are those that are known, in the order in which they are shown.
func Providers() []Provider {
	return []Provider{
		{Name: "mistral", BaseURL: "https://api.mistral.ai/v1", KeyVariable: "MISTRAL_API_KEY"},
		{Name: "openai", BaseURL: "https://api.openai.com/v1", KeyVariable: "OPENAI_API_KEY"},
		{Name: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyVariable: "OPENROUTER_API_KEY"},
		{Name: "anthropic", BaseURL: "https://api.anthropic.com/v1", KeyVariable: "ANTHROPIC_API_KEY"},
		{Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", KeyVariable: "GEMINI_API_KEY"},
		{Name: "deepseek", BaseURL: "https://api.deepseek.com/v1", KeyVariable: "DEEPSEEK_API_KEY"},
		{Name: "ollama", BaseURL: "http://127.0.0.1:11434/v1", Local: true},
		{Name: "vllm", BaseURL: "http://127.0.0.1:8000/v1", Local: true},
		{Name: "llamacpp", BaseURL: "http://127.0.0.1:8080/v1", Local: true},
		{Name: "custom"},
		{Name: replayName, Local: true},
	}
}

func providerOf(name string) (Provider, bool) {
	all := Providers()
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return all[i], true
}

// A target is where requests and the key may go.
type target struct {
	base   string // without a slash at the end
	origin string
	own    bool // loopback or private: nobody sends a bill
}

// parseBase checks a base URL: https, or http where the host is loopback, private or a service
// name. The configuration has checked the same; a key must not depend on one check alone.
func parseBase(base string) (target, error) {
	u, err := url.Parse(base)
	if err != nil {
		return target{}, fmt.Errorf("model-base-url is not a URL; write it as https://host/v1") // err quotes it, secrets and all
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return target{}, fmt.Errorf("model-base-url has to begin with https:// (or http:// for a server of one's own) and a host")
	case u.User != nil:
		return target{}, fmt.Errorf("model-base-url must not hold a user or password; give the key as model-api-key")
	case u.RawQuery != "" || u.Fragment != "":
		return target{}, fmt.Errorf("model-base-url must not hold a query or fragment")
	}
	own := config.Near(u.Hostname())
	if u.Scheme == "http" && !own {
		return target{}, fmt.Errorf("model-base-url %s: http would send the key in the clear; use https, or http to a loopback, private or service address only", originOf(u))
	}
	return target{base: strings.TrimRight(u.String(), "/"), origin: originOf(u), own: own}, nil
}

func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}
