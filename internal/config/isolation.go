package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Isolation is what commands may reach and use.
type Isolation struct {
	Sandbox      string   // strict, best-effort, off
	Network      []string // host:port that agent and test commands may reach
	SetupNetwork []string // host:port that setup commands may reach
	SetupOpen    bool     // setup commands may reach everything

	Memory    int64         // bytes of one command
	Processes int           // of one command
	Disk      int64         // bytes of worktree and private folders
	FileSize  int64         // bytes of one file
	OpenFiles int           // of one process
	CPU       time.Duration // processor time of one command
	Output    int64         // bytes that one command prints

	Toolchains []string // more folders to read
	Caches     []string // folders to read through a private copy
}

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
	tib = int64(1) << 40
)

func isolationSettings() []setting {
	return []setting{
		choice("sandbox", "strict", []string{"strict", "best-effort", "off"},
			"how commands are kept apart: strict refuses a place where a credential could be read or the network is open, best-effort runs and says what is missing, off must be asked for",
			func(c *Config) *string { return &c.Sandbox }),
		addresses("network", "none", "what agent and test commands may reach, such as service containers", "host:port lines",
			func(c *Config, all []string) { c.Network = all }, func(c *Config) any { return c.Network }),
		setupNetwork(),
		size("memory-limit", 4*gib, 64*mib, tib, "memory of one command", func(c *Config) *int64 { return &c.Memory }),
		whole("process-limit", 512, 8, 100_000, "processes of one command", func(c *Config) *int { return &c.Processes }),
		size("disk-limit", 4*gib, mib, 16*tib, "what worktree and private folders may hold together", func(c *Config) *int64 { return &c.Disk }),
		size("file-size-limit", gib, 64*kib, 16*tib, "one file that a command writes", func(c *Config) *int64 { return &c.FileSize }),
		whole("open-files-limit", 8192, 64, 1_048_576, "open files of one process", func(c *Config) *int { return &c.OpenFiles }),
		duration("cpu-limit", time.Hour, time.Second, 24*time.Hour, "processor time of one command", func(c *Config) *time.Duration { return &c.CPU }),
		size("output-limit", 128*mib, 64*kib, 16*gib, "what one command may print", func(c *Config) *int64 { return &c.Output }),
		folders("toolchains", "more folders that commands may read, beside those found on PATH and by the usual variables", func(c *Config) *[]string { return &c.Toolchains }),
		folders("caches", "the machine's caches (Go, npm, Composer, pip, Maven, Cargo) that commands may read, through a private copy", func(c *Config) *[]string { return &c.Caches }),
	}
}

// IsIsolation reports whether a setting has to do with how commands run, and nothing else.
func IsIsolation(name string) bool {
	return name == "test-env" || name == "command-timeout" ||
		slices.ContainsFunc(isolationSettings(), func(s setting) bool { return s.Name == name })
}

// lines are the items of a list, without empty ones and comments.
func lines(v value) []string {
	items := v.list
	if !v.isList {
		items = strings.Split(v.text, "\n")
	}
	var out []string
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "" && !isComment(item) {
			out = append(out, item)
		}
	}
	return out
}

func addresses(name, def, help, allowed string, set func(*Config, []string), show func(*Config) any) setting {
	s := setting{Setting: Setting{Name: name, Default: def, Range: allowed, Help: help, Input: true}, list: true, show: show}
	s.read = func(c *Config, v value) error {
		all, err := parseAddresses(lines(v))
		if err == nil {
			set(c, all)
		}
		return err
	}
	return s
}

func setupNetwork() setting {
	s := addresses("setup-network", "open", "what setup commands may reach", "open, none, or host:port lines", nil, func(c *Config) any {
		switch {
		case c.SetupOpen:
			return "open"
		case len(c.SetupNetwork) == 0:
			return "none"
		}
		return c.SetupNetwork
	})
	s.preset = "open"
	s.read = func(c *Config, v value) error {
		all := lines(v)
		c.SetupOpen, c.SetupNetwork = false, nil
		if len(all) == 1 && all[0] == "open" {
			c.SetupOpen = true
			return nil
		}
		if len(all) == 1 && all[0] == "none" {
			return nil
		}
		var err error
		c.SetupNetwork, err = parseAddresses(all)
		return err
	}
	return s
}

// parseAddresses checks host:port lines and names every wrong one.
func parseAddresses(all []string) ([]string, error) {
	var wrong []error
	var out []string
	for _, text := range all {
		address, err := parseAddress(text)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%q %w", text, err))
		case !slices.Contains(out, address):
			out = append(out, address)
		}
	}
	return out, errors.Join(wrong...)
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

// parseAddress reads host:port; IPv6 stands in brackets.
func parseAddress(text string) (string, error) {
	if strings.Contains(text, "://") {
		return "", errors.New("must be host:port, without a scheme and a path")
	}
	if strings.Contains(text, "*") {
		return "", errors.New("must name one host and one port: there are no wildcards")
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", errors.New("has no port: write host:port")
	}
	host, port := text[:at], text[at+1:]
	if n, err := strconv.Atoi(port); err != nil || !wholeForm.MatchString(port) || n < 1 || n > 65535 {
		return "", errors.New("must end in a port, 1–65535")
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if address, err := netip.ParseAddr(inner); !ok || err != nil || !address.Is6() {
			return "", errors.New("must hold an IPv6 address in the brackets")
		}
		return text, nil
	}
	if strings.Contains(host, ":") {
		return "", errors.New("must have the IPv6 address in brackets: [::1]:3306")
	}
	if len(host) > 253 || !hostForm.MatchString(host) {
		return "", errors.New("must begin with a host's name or address")
	}
	return text, nil
}

func size(name string, preset, low, high int64, help string, at func(*Config) *int64) setting {
	s := setting{Setting: Setting{Name: name, Default: shortSize(preset), Range: shortSize(low) + "–" + shortSize(high), Help: help, Input: true}, preset: shortSize(preset)}
	s.read = func(c *Config, v value) (err error) {
		*at(c), err = parseSize(v.text, low, high)
		return err
	}
	s.show = func(c *Config) any { return shortSize(*at(c)) }
	return s
}

var sizeForm = regexp.MustCompile(`^([0-9]+) ?([KMGT])(iB|B)?$`)

// parseSize reads 512MiB, 4G or 4 GiB, all in powers of 1024.
func parseSize(text string, low, high int64) (int64, error) {
	between := shortSize(low) + "–" + shortSize(high)
	if plainForm.MatchString(text) {
		return 0, fmt.Errorf("has no unit: write %sMiB or %sGiB, %s", text, text, between)
	}
	match := sizeForm.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("must be a size like 512MiB or 4GiB, %s", between)
	}
	unit := map[string]int64{"K": kib, "M": mib, "G": gib, "T": tib}[match[2]]
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || n > high/unit || n*unit < low {
		return 0, fmt.Errorf("must be a size like 512MiB or 4GiB, %s", between)
	}
	return n * unit, nil
}

// shortSize is n in the largest unit that needs no fraction: 4GiB, 512MiB.
func shortSize(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"TiB", tib}, {"GiB", gib}, {"MiB", mib}, {"KiB", kib}} {
		if n >= unit.size && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// closedFolders hold credentials or everything; nobody means to open them whole.
var closedFolders = []string{"/", "/etc", "/root", "/home", "/var", "/run", "/tmp", "/proc", "/sys", "/dev", "/opt", "/boot", "/mnt", "/srv"}

func folders(name, help string, at func(*Config) *[]string) setting {
	s := setting{Setting: Setting{Name: name, Default: "none", Range: "folders, one a line, from /", Help: help, Input: true}, list: true}
	s.read = func(c *Config, v value) error {
		var wrong []error
		var out []string
		for _, folder := range lines(v) {
			switch clean := filepath.Clean(folder); {
			case !filepath.IsAbs(folder) || plain(folder) != nil:
				wrong = append(wrong, fmt.Errorf("%q must be a folder's path from /", folder))
			case slices.Contains(closedFolders, clean) || filepath.Dir(clean) == "/home":
				wrong = append(wrong, fmt.Errorf("%q holds more than tools: name the folder of the tool itself", folder))
			default:
				out = append(out, clean)
			}
		}
		*at(c) = out
		return errors.Join(wrong...)
	}
	s.show = func(c *Config) any { return *at(c) }
	return s
}
