package config

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each wrong line is named with its own place; the right ones between them do not hide it.
func TestEveryWrongAddressIsTold(t *testing.T) {
	t.Parallel()
	s := sources(step())
	s.FileName = "repo.yml"
	s.File = []byte("network:\n  - db:3306\n  - cache\n  - http://mail:25\n  - db:3306\nsetup-network: [proxy:3128, '*:443']\ncaches:\n  - /opt/a\n  - b\n")
	want := []string{
		`repo.yml:3: network = "cache": has no port: write host:port`,
		`repo.yml:4: network = "http://mail:25": must be host:port, without a scheme and a path`,
		`repo.yml:5: network = "db:3306": is given twice`,
		`repo.yml:6: setup-network = "*:443": must name one host and one port: there are no wildcards`,
		`repo.yml:9: caches = "b": must be the absolute path of a folder`,
	}
	if got := problems(t, s); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Isolation is checked by itself for the command that needs nothing else.
func TestIsIsolation(t *testing.T) {
	t.Parallel()
	for _, s := range Settings() {
		foreign := slices.Contains([]string{"token", "model", "test-commands", "setup-commands", "mode", "log-level", "run-timeout"}, s.Name)
		if foreign && IsIsolation(s.Name) {
			t.Errorf("%s has nothing to do with how commands run", s.Name)
		}
	}
	for _, name := range []string{"sandbox", "network", "setup-network", "memory-limit", "output-limit", "caches", "test-env", "command-timeout"} {
		if !IsIsolation(name) {
			t.Errorf("%s is not one", name)
		}
	}
}

// What is accepted names one destination, in one form.
func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{
		"db:3306", "DB.:1", "[::1]:80", "[::ffff:1.2.3.4]:5", "10.0.0.7:65535", "a:0", "a:1:2", "[::1%lo]:1", "0x7f.1:80", "127.1:80",
		"*:1", "a b:1", "a\n:1", "é:1", "[]:1", "[:1", "]:1", ":", "a..b:1", "0.0.0.0:1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := parseAddress(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" || address != "" {
				t.Errorf("%q: %q, %v", text, address, err)
			}
			return
		}
		host, port, err := net.SplitHostPort(address)
		n, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil || n == 0 || host == "" || strings.ContainsAny(host, "*/%@ \t\r\n\x00") {
			t.Fatalf("%q was read as %q", text, address)
		}
		if ip, err := netip.ParseAddr(host); err == nil && (ip.IsUnspecified() || ip.Is4In6()) {
			t.Fatalf("%q was read as %q, which is no destination in its one form", text, address)
		}
		if again, err := parseAddress(address); err != nil || again != address {
			t.Fatalf("%q was read as %q, and that as %q, %v", text, address, again, err)
		}
	})
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"4GiB", "2G", "512 MiB", "1", "-1G", "9223372036854775807T", "00001K", "1.5G", "1g"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseSize(text, mib, 4*gib)
		if err != nil {
			return
		}
		if n < mib || n > 4*gib {
			t.Fatalf("%q is %d", text, n)
		}
		if again, err := parseSize(shortSize(n), mib, 4*gib); err != nil || again != n {
			t.Fatalf("%q is %d, written as %s, which is %d, %v", text, n, shortSize(n), again, err)
		}
	})
}
