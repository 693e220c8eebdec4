package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSockets(t *testing.T) {
	t.Parallel()
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	for _, q := range []struct {
		name                  string
		domain, kind, proto   uint64
		closed, withDatagrams uint32
	}{
		{"unix stream", unix.AF_UNIX, unix.SOCK_STREAM | flags, 0, retAllow, retAllow},
		{"unix seqpacket", unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, retAllow, retAllow},
		{"unix datagram", unix.AF_UNIX, unix.SOCK_DGRAM | flags, 0, retPerm, retPerm},
		{"unix raw, which is datagram", unix.AF_UNIX, unix.SOCK_RAW, 0, retPerm, retPerm},
		{"tcp", unix.AF_INET, unix.SOCK_STREAM | flags, unix.IPPROTO_TCP, retAllow, retAllow},
		{"tcp by default", unix.AF_INET6, unix.SOCK_STREAM, 0, retAllow, retAllow},
		{"tcp with dirt", dirt | unix.AF_INET, dirt | unix.SOCK_STREAM, dirt, retAllow, retAllow},
		{"multipath tcp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, retNoProtocol, retNoProtocol},
		{"multipath tcp with dirt", unix.AF_INET6, unix.SOCK_STREAM, dirt | unix.IPPROTO_MPTCP, retNoProtocol, retNoProtocol},
		{"sctp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, retNoProtocol, retNoProtocol},
		{"smc", unix.AF_SMC, unix.SOCK_STREAM, 0, retNoFamily, retNoFamily},
		{"udp by default", unix.AF_INET, unix.SOCK_DGRAM | flags, 0, retNoProtocol, retAllow},
		{"udp", unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP, retNoProtocol, retAllow},
		{"udp-lite", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, retNoProtocol, retNoProtocol},
		{"ping", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, retNoProtocol, retNoProtocol},
		{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP, retNoProtocol, retNoProtocol},
		{"no type", unix.AF_INET, flags, 0, retNoProtocol, retNoProtocol},
		{"route", unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE, retNoFamily, retAllow},
		{"route as datagram", unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_ROUTE, retNoFamily, retAllow},
		{"route as stream", unix.AF_NETLINK, unix.SOCK_STREAM, unix.NETLINK_ROUTE, retNoFamily, retNoType},
		{"audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, retNoFamily, retNoProtocol},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0, retNoFamily, retNoFamily},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0, retNoFamily, retNoFamily},
		{"crypto", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, retNoFamily, retNoFamily},
		{"no family", unix.AF_UNSPEC, unix.SOCK_STREAM, 0, retNoFamily, retNoFamily},
	} {
		for _, a := range arches(t) {
			if got := newVM(t, a, filterOptions{Broker: true}).call("socket", q.domain, q.kind, q.proto); got != q.closed {
				t.Errorf("%s, %s: %#x, want %#x", a.name, q.name, got, q.closed)
			}
			if got := newVM(t, a, filterOptions{Datagrams: true}).call("socket", q.domain, q.kind, q.proto); got != q.withDatagrams {
				t.Errorf("%s, %s with datagrams: %#x, want %#x", a.name, q.name, got, q.withDatagrams)
			}
		}
	}
}

// FuzzSocket looks for a socket that is retAllow and not in the list below, as the kernel would understand the arguments.
func FuzzSocket(f *testing.F) {
	for domain := range uint64(48) {
		f.Add(domain, domain%7, domain%3*6, domain%2 == 0)
	}
	f.Add(uint64(unix.AF_INET), uint64(unix.SOCK_STREAM), uint64(unix.IPPROTO_MPTCP), false)
	f.Add(uint64(unix.AF_UNIX), uint64(unix.SOCK_DGRAM), uint64(0), true)
	all := arches(f)
	f.Fuzz(func(t *testing.T, domain, kind, proto uint64, datagrams bool) {
		type socket struct{ domain, kind, proto int32 }
		s := socket{int32(uint32(domain)), int32(uint32(kind)) & 0xf, int32(uint32(proto))}
		if s.domain == unix.AF_INET6 {
			s.domain = unix.AF_INET
		}
		inList := map[socket]bool{
			{unix.AF_INET, unix.SOCK_STREAM, 0}: true, {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}: true,
			{unix.AF_INET, unix.SOCK_DGRAM, 0}: datagrams, {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP}: datagrams,
			{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}: datagrams, {unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_ROUTE}: datagrams,
		}[s]
		// The kernel knows the protocols 0 and AF_UNIX of local sockets and refuses others itself.
		inList = inList || s.domain == unix.AF_UNIX && (s.kind == unix.SOCK_STREAM || s.kind == unix.SOCK_SEQPACKET)
		for _, a := range all {
			v := newVM(t, a, filterOptions{Broker: true, Datagrams: datagrams})
			if got := v.call("socket", domain, kind, proto); (got == retAllow) != inList {
				t.Errorf("%s: socket(%#x, %#x, %#x) = %#x", a.name, domain, kind, proto, got)
			}
			pair := s.domain == unix.AF_UNIX && inList
			if got := v.call("socketpair", domain, kind, proto); (got == retAllow) != pair {
				t.Errorf("%s: socketpair(%#x, %#x, %#x) = %#x", a.name, domain, kind, proto, got)
			}
		}
	})
}

// FuzzUpperHalf looks for a call whose answer changes with what the kernel cuts off.
func FuzzUpperHalf(f *testing.F) {
	all := arches(f)
	f.Add(uint16(0), uint64(0), uint64(0), uint64(0), uint64(0), uint32(1))
	for name, c := range calls {
		if name != "prlimit64" {
			f.Add(uint16(c.amd64&0xffff), uint64(unix.AF_INET), uint64(unix.SOCK_STREAM), uint64(0), uint64(unix.MSG_FASTOPEN), uint32(0xdeadbeef))
		}
	}
	f.Fuzz(func(t *testing.T, number uint16, a0, a1, a2, a3 uint64, upper uint32) {
		for _, a := range all {
			if uint32(number) == a.numbers["prlimit64"] { // its pointers count whole
				continue
			}
			v := newVM(t, a, filterOptions{Broker: true})
			low := func(n uint64) uint64 { return n & 0xffffffff }
			with := func(n uint64) uint64 { return low(n) | uint64(upper)<<32 }
			clean := v.answer(a.audit, uint32(number), low(a0), low(a1), low(a2), low(a3))
			if got := v.answer(a.audit, uint32(number), with(a0), with(a1), with(a2), with(a3)); got != clean {
				t.Errorf("%s: call %d(%#x, %#x, %#x, %#x) = %#x, and %#x with %#x above", a.name, number, a0, a1, a2, a3, clean, got, upper)
			}
		}
	})
}
