package sandbox

import "testing"

// BenchmarkBrokerConnect is one connect over loopback, plain and through the broker, each with the socket's making and closing.
func BenchmarkBrokerConnect(b *testing.B) {
	at, got := serveOn(b, "tcp4", "127.0.0.1:0")
	go func() {
		for range got {
			continue
		}
	}()
	raw := sockaddr4("127.0.0.1", at.Port())
	connect := func(b *testing.B) {
		for b.Loop() {
			fd, err := connectRaw(raw)
			if err != nil {
				b.Error(err)
				return
			}
			closeSocket(fd)
		}
	}
	targets := []target{{"db", at}}
	b.Run("plain", connect)
	for name, broker := range map[string]*broker{
		"isolated": {isolated: true}, "shared": {members: us}, "listed": {targets: targets, dial: dialTargets(targets)}, "open": {open: true},
	} {
		b.Run(name, func(b *testing.B) { brokered(b, broker, func() { connect(b) }) })
	}
}
