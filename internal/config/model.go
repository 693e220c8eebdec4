package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A provider is a way to reach a model.
type provider struct {
	name   string
	key    string // variable that holds its key, "" when it has none
	hosted bool   // on the internet: answers nobody without a key
}

var providers = []provider{
	{name: "mistral", key: "MISTRAL_API_KEY", hosted: true},
	{name: "openai", key: "OPENAI_API_KEY", hosted: true},
	{name: "openrouter", key: "OPENROUTER_API_KEY", hosted: true},
	{name: "anthropic", key: "ANTHROPIC_API_KEY", hosted: true},
	{name: "gemini", key: "GEMINI_API_KEY", hosted: true},
	{name: "deepseek", key: "DEEPSEEK_API_KEY", hosted: true},
	{name: "ollama"},
	{name: "vllm"},
	{name: "llamacpp"},
	{name: "custom"},
	{name: "replay"},
}

func providerNames() []string {
	out := make([]string, len(providers))
	for i, p := range providers {
		out[i] = p.name
	}
	return out
}

func findProvider(name string) (provider, bool) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// parseModel splits provider/name at the first slash: names have slashes of their
// own (openrouter/a/b), and replay's are files.
func parseModel(text string) (Model, error) {
	if err := plain(text); err != nil {
		return Model{}, err
	}
	before, name, found := strings.Cut(text, "/")
	if before == "ollama_chat" { // the name of the older worker's library for it
		before = "ollama"
	}
	if _, known := findProvider(before); !known {
		all := strings.Join(providerNames(), ", ")
		if !found {
			return Model{}, fmt.Errorf("must be provider/name, the provider one of %s", all)
		}
		return Model{}, fmt.Errorf("%s is not a provider%s; there are %s", quote(before), nearest(before, providerNames()), all)
	}
	if name == "" || strings.ContainsAny(name, " \t") {
		return Model{}, fmt.Errorf("must be provider/name: there is no usable name after %s", before)
	}
	return Model{Provider: before, Name: name}, nil
}

var errURL = errors.New("must be a URL like https://host/path, or http:// where the host is loopback, a private address or a service name (one word)")

// parseURL holds the rule for where a token or key may go: https, or http where the
// host is near; nothing in the URL that could carry a secret or redirect it.
func parseURL(text string) (string, error) {
	if err := plain(text); err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "" {
		return "", errURL
	}
	switch {
	case u.User != nil:
		return "", errors.New("must not hold a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return "", errors.New("must not have a query or fragment: only scheme, host, port and path")
	case u.Scheme == "https", u.Scheme == "http" && Near(u.Hostname()):
		return strings.TrimRight(u.String(), "/"), nil
	case u.Scheme == "http":
		return "", errors.New("http is allowed only where the host is loopback, a private address or a service name (one word): use https")
	}
	return "", errURL
}

// serviceName starts with a letter: resolvers take "2130706433" and "0x7f000001" for
// addresses, public ones too.
var serviceName = regexp.MustCompile(`^[a-z]([a-z0-9_-]*[a-z0-9])?$`)

// Near reports whether a host is loopback, private, or a service name of a job's
// network: where plain http stays between machines of the same owner.
func Near(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		address = address.Unmap()
		return address.Zone() == "" && (address.IsLoopback() || address.IsPrivate())
	}
	host = strings.ToLower(host)
	return serviceName.MatchString(host) || strings.HasSuffix(host, ".localhost") && !strings.HasPrefix(host, ".")
}

func nearURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && Near(u.Hostname())
}

// checkModel is what model, base URL and key must be together.
func (l *loader) checkModel() {
	c := l.config
	p, known := findProvider(c.Model.Provider)
	if !known {
		return // told already
	}
	if p.name == "custom" && c.ModelBase == "" && !l.failed["model-base-url"] {
		l.add(Problem{Key: "model-base-url", Message: "is required by a custom/… model: the address of the endpoint, like https://host/v1"})
	}
	if p.hosted && c.ModelKey == "" && !l.sources.NoModel && !l.failed["model-api-key"] && !nearURL(c.ModelBase) {
		l.add(Problem{Key: "model-api-key", Message: fmt.Sprintf(
			"%s wants a key: give the input model-api-key from a secret of the repository, or the variable %s", p.name, p.key)})
	}
}
