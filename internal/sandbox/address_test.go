package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// sockaddr4 and the like are addresses as programs write them.
func sockaddr4(ip string, port uint16) []byte {
	raw := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
	raw = binary.BigEndian.AppendUint16(raw, port)
	return append(append(raw, netip.MustParseAddr(ip).AsSlice()...), make([]byte, 8)...)
}

func sockaddr6(ip string, port uint16, scope uint32) []byte {
	raw := binary.NativeEndian.AppendUint16(nil, unix.AF_INET6)
	raw = binary.BigEndian.AppendUint16(raw, port)
	whole := netip.MustParseAddr(ip).As16()
	raw = append(append(raw, 1, 2, 3, 4), whole[:]...) // flow information is nobody's business
	return binary.NativeEndian.AppendUint32(raw, scope)
}

func sockaddrUnix(path string) []byte {
	return append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), path...)
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		raw  []byte
		want string
		err  error
	}{
		{"IPv4", sockaddr4("192.0.2.1", 443), "192.0.2.1:443", nil},
		{"IPv4, longer than needed", append(sockaddr4("192.0.2.1", 443), "more"...), "192.0.2.1:443", nil},
		{"IPv4, short", sockaddr4("192.0.2.1", 443)[:15], "", unix.EINVAL},
		{"all of IPv4", sockaddr4("0.0.0.0", 80), "127.0.0.1:80", nil},
		{"IPv6", sockaddr6("2001:db8::1", 443, 0), "[2001:db8::1]:443", nil},
		{"IPv6 without scope", sockaddr6("2001:db8::1", 443, 0)[:24], "[2001:db8::1]:443", nil},
		{"IPv6, short", sockaddr6("2001:db8::1", 443, 0)[:23], "", unix.EINVAL},
		{"scope of a global address", sockaddr6("2001:db8::1", 443, 7), "[2001:db8::1]:443", nil},
		{"scope of a link", sockaddr6("fe80::1", 443, 7), "[fe80::1%7]:443", nil},
		{"link without scope", sockaddr6("fe80::1", 443, 7)[:24], "[fe80::1]:443", nil},
		{"all of IPv6", sockaddr6("::", 80, 0), "[::1]:80", nil},
		{"IPv4-mapped", sockaddr6("::ffff:192.0.2.1", 443, 0), "192.0.2.1:443", nil},
		{"all of IPv4, mapped", sockaddr6("::ffff:0.0.0.0", 443, 0), "127.0.0.1:443", nil},
		{"IPv4-compatible is IPv6", sockaddr6("::127.0.0.1", 443, 0), "[::7f00:1]:443", nil},
		{"path", sockaddrUnix("/a/b"), "/a/b", nil},
		{"path with an end", sockaddrUnix("/a/b\x00/c"), "/a/b", nil},
		{"longest path", sockaddrUnix(strings.Repeat("x", 108)), strings.Repeat("x", 108), nil},
		{"path too long", sockaddrUnix(strings.Repeat("x", 109)), "", unix.EINVAL},
		{"path of any bytes", sockaddrUnix("/a\n\x1b[2J\u202e\xff"), `/a\n\x1b[2J\u202e\xff`, nil},
		{"abstract", sockaddrUnix("\x00name\x00"), `@name\x00`, nil},
		{"unnamed", sockaddrUnix(""), "", unix.EINVAL},
		{"none", binary.NativeEndian.AppendUint16(nil, unix.AF_UNSPEC), "", nil},
		{"netlink", append(binary.NativeEndian.AppendUint16(nil, unix.AF_NETLINK), make([]byte, 10)...), "", unix.EACCES},
		{"vsock", append(binary.NativeEndian.AppendUint16(nil, unix.AF_VSOCK), make([]byte, 14)...), "", unix.EACCES},
		{"empty", nil, "", unix.EINVAL},
		{"half a family", []byte{2}, "", unix.EINVAL},
		{"longer than any", append(sockaddr4("192.0.2.1", 443), make([]byte, 128)...), "", unix.EINVAL},
	} {
		a, err := parseAddress(c.raw)
		if a.String() != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: parsed as %q, %v; want %q, %v", c.name, a, err, c.want, c.err)
		}
	}
}

// fuzzTargets are the list of the fuzz test.
var fuzzTargets = []target{
	{"db", netip.MustParseAddrPort("192.0.2.1:5432")},
	{"local", netip.MustParseAddrPort("127.0.0.1:3306")},
	{"six", netip.MustParseAddrPort("[2001:db8::1]:443")},
}

// FuzzAddress holds the decision against a second, plainer reading of the bytes: nothing is let through but what is listed.
func FuzzAddress(f *testing.F) {
	for _, raw := range [][]byte{
		sockaddr4("192.0.2.1", 5432), sockaddr4("127.0.0.1", 3306), sockaddr4("0.0.0.0", 3306), sockaddr4("192.0.2.2", 5432),
		sockaddr6("2001:db8::1", 443, 0), sockaddr6("::ffff:192.0.2.1", 5432, 0), sockaddr6("::", 1, 0), sockaddr6("fe80::1", 1, 2),
		sockaddrUnix("/tmp/x"), sockaddrUnix("\x00x"),
		{0, 0},
		{16, 0, 1, 2},
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		a, err := parseAddress(raw)
		_ = a.String()
		if !bytes.Equal(raw, before) {
			t.Fatal("parsing has changed the bytes")
		}
		if err != nil {
			if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EACCES) {
				t.Fatalf("%x: %v", raw, err)
			}
			return
		}
		b := &broker{targets: fuzzTargets}
		route, i := b.route(a)
		family, ip, port := plainly(raw)
		switch route {
		case routeNone:
			if ip.IsValid() && listedPlainly(ip, port) {
				t.Fatalf("%x: a listed address is refused", raw)
			}
		case routeTarget:
			if want := fuzzTargets[i].Address; ip != want.Addr() || port != want.Port() || !listedPlainly(ip, port) {
				t.Fatalf("%x: leads to %s", raw, want)
			}
		case routeInside:
			if !ip.IsLoopback() || a.inet != netip.AddrPortFrom(ip, port) {
				t.Fatalf("%x: is no loopback address", raw)
			}
			if domain, to := a.sockaddr(); domain != family || to == nil {
				t.Fatalf("%x: a socket of family %d", raw, domain)
			}
		case routePath:
			if family != unix.AF_UNIX {
				t.Fatalf("%x: is no path", raw)
			}
		case routeOpen:
			t.Fatalf("%x: let through", raw)
		}
	})
}

// plainly reads an address by its offsets.
func plainly(raw []byte) (family int, ip netip.Addr, port uint16) {
	family = int(binary.NativeEndian.Uint16(raw))
	switch family {
	case unix.AF_INET:
		ip, _ = netip.AddrFromSlice(raw[4:8])
	case unix.AF_INET6:
		ip, _ = netip.AddrFromSlice(raw[8:24])
		ip = ip.Unmap()
	default:
		return family, ip, 0
	}
	port = uint16(raw[2])<<8 | uint16(raw[3])
	if ip.IsUnspecified() {
		ip = map[bool]netip.Addr{true: netip.MustParseAddr("127.0.0.1"), false: netip.MustParseAddr("::1")}[ip.Is4()]
	}
	return family, ip, port
}

func listedPlainly(ip netip.Addr, port uint16) bool {
	for _, t := range fuzzTargets {
		if t.Address.Addr() == ip && t.Address.Port() == port {
			return true
		}
	}
	return false
}
