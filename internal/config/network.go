package config

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// network is what agent and test commands may reach. They never get all of it: a list is what keeps a secret inside.
func network() setting {
	s := setting{
		Setting: Setting{Name: "network", Default: "none", Range: "host:port lines", Input: true, Help: "what agent and test commands may reach, such as service containers"},
		list:    true, show: func(c *Config) any { return c.Network },
	}
	s.read = func(c *Config, v value) (err error) {
		c.Network = nil
		switch soleWord(v) {
		case "none":
			return nil
		case "open":
			return errors.New("cannot be open: list what agent and test commands need as host:port; setup-network can be open")
		}
		c.Network, err = readAddresses(v)
		return err
	}
	return s
}

// setupNetwork is what setup commands may reach: they run before the agent, on code of the base branch.
func setupNetwork() setting {
	s := setting{
		Setting: Setting{Name: "setup-network", Default: "open", Range: "open, none, or host:port lines", Input: true, Help: "what setup commands may reach"},
		list:    true, preset: "open",
	}
	s.read = func(c *Config, v value) (err error) {
		c.SetupOpen, c.SetupNetwork = false, nil
		switch soleWord(v) {
		case "open":
			c.SetupOpen = true
			return nil
		case "none":
			return nil
		}
		c.SetupNetwork, err = readAddresses(v)
		return err
	}
	s.show = func(c *Config) any {
		switch {
		case c.SetupOpen:
			return "open"
		case len(c.SetupNetwork) == 0:
			return "none"
		}
		return c.SetupNetwork
	}
	return s
}

// soleWord is the only item of a list, "" when there are more or none.
func soleWord(v value) string {
	if all := v.lines(); len(all) == 1 {
		return all[0]
	}
	return ""
}

// readAddresses reads host:port lines and names every wrong one.
func readAddresses(v value) ([]string, error) {
	var mistakes []error
	var out []string
	for i, text := range v.lines() {
		address, err := parseAddress(text)
		if err == nil && slices.Contains(out, address) {
			err = errors.New("is given twice")
		}
		if err != nil {
			mistakes = append(mistakes, &itemError{v.lineOf(i), text, err.Error()})
			continue
		}
		out = append(out, address)
	}
	return out, errors.Join(mistakes...)
}

var (
	hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
	// Resolvers read a name that ends so as an IPv4 address, in forms of which a person meant none.
	numberForm = regexp.MustCompile(`(^|\.)(0[xX][0-9A-Fa-f]*|[0-9]+)$`)
)

// parseAddress reads host:port, with an IPv6 address in brackets, and returns it in the one form that the same
// destination always has.
func parseAddress(text string) (string, error) {
	switch {
	case strings.Contains(text, "://"):
		return "", errors.New("must be host:port, without a scheme and a path")
	case strings.ContainsAny(text, "*?"):
		return "", errors.New("must name one host and one port: there are no wildcards")
	case strings.Contains(text, "/"):
		return "", errors.New("must be host:port, without a path or a network mask")
	case strings.Contains(text, "@"):
		return "", errors.New("must be host:port, without a user name")
	case strings.ContainsAny(text, " \t,;"):
		return "", errors.New("holds a blank, a comma or a semicolon: write one host:port a line")
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 || strings.HasSuffix(text, "]") {
		return "", errors.New("has no port: write host:port")
	}
	host, port := text[:at], text[at+1:]
	if n, err := strconv.Atoi(port); err != nil || !wholeForm.MatchString(port) || n < 1 || n > 65535 {
		return "", errors.New("must end in a port, 1–65535")
	}
	host, err := parseHost(host)
	if err != nil {
		return "", err
	}
	return host + ":" + port, nil
}

func parseHost(host string) (string, error) {
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		inner, closed := strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		if !closed || err != nil || !address.Is6() || address.Zone() != "" {
			return "", errors.New("must hold an IPv6 address in the brackets, without a zone")
		}
		if address = address.Unmap(); address.Is4() {
			return usable(address, address.String())
		}
		return usable(address, "["+address.String()+"]")
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Is4() {
		return usable(address, host)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case strings.Contains(host, ":"):
		return "", errors.New("must have the IPv6 address in brackets: [::1]:3306")
	case numberForm.MatchString(host):
		return "", errors.New("must begin with a host's name or a whole IPv4 address, like 10.0.0.7")
	case len(host) > 253 || !hostForm.MatchString(host):
		return "", errors.New("must begin with a host's name or address")
	}
	return host, nil
}

// usable refuses addresses that name no host.
func usable(address netip.Addr, text string) (string, error) {
	if address.IsUnspecified() || address.IsMulticast() || address == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return "", errors.New("must begin with the address of one host")
	}
	return text, nil
}
