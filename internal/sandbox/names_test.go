package sandbox

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPublishNames(t *testing.T) {
	t.Parallel()
	targets := []target{
		{Name: "db", Address: netip.MustParseAddrPort("172.18.0.2:3306")},
		{Name: "db", Address: netip.MustParseAddrPort("172.18.0.2:3307")},
		{Name: "cache", Address: netip.MustParseAddrPort("[fd00::2]:6379")},
		{Name: "10.0.0.1", Address: netip.MustParseAddrPort("10.0.0.1:80")},
	}
	file := filepath.Join(t.TempDir(), "hosts")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("127.0.0.1 localhost\n172.18.0.9 db # an old one\n#172.18.0.2 db")
	if notes := publishNames(file, targets, true); len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
	want := "127.0.0.1 localhost\n172.18.0.9 db # an old one\n#172.18.0.2 db\n172.18.0.2\tdb # by issuesmith\nfd00::2\tcache # by issuesmith\n"
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("got\n%s", got)
	}
	_ = publishNames(file, targets, true)
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("the second time:\n%s", got)
	}

	write("127.0.0.1 localhost\n")
	notes := strings.Join(publishNames(file, targets, false), "\n")
	if !strings.Contains(notes, "db does not resolve for commands: they can use 172.18.0.2:3306") || strings.Contains(notes, "10.0.0.1") {
		t.Errorf("on a host: %s", notes)
	}
	if got, _ := os.ReadFile(file); string(got) != "127.0.0.1 localhost\n" {
		t.Errorf("the host's file was written: %s", got)
	}
}

func TestResolveSaysWhatItFound(t *testing.T) {
	t.Parallel()
	targets, names := resolve([]string{"127.0.0.1:80", "[::1]:81", "localhost:82", "nowhere.invalid:83", "::ffff:10.0.0.1:84", "[::ffff:10.0.0.1]:85"})
	has := func(address string) bool {
		for _, t := range targets {
			if t.Address.String() == address {
				return true
			}
		}
		return false
	}
	for _, want := range []string{"127.0.0.1:80", "[::1]:81", "127.0.0.1:82", "10.0.0.1:85"} {
		if !has(want) {
			t.Errorf("%s is missing in %v", want, targets)
		}
	}
	text := strings.Join(names, "\n")
	if !strings.Contains(text, "nowhere.invalid:83: does not resolve here") || !strings.Contains(text, "localhost:82: 127.0.0.1:82") {
		t.Errorf("names:\n%s", text)
	}
}
