package gate

import (
	"testing"

	"issuesmith/internal/redact"
)

// BenchmarkPolicy judges 100 files with 10,000 added lines.
func BenchmarkPolicy(b *testing.B) {
	g := newGate(b)
	g.Rules = Rules{MaxFiles: 1000, MaxLines: 100000, Protected: []string{"secret/**", "*.key"}, Allowed: []string{"package.json"}}
	g.Redact = redact.New("canary-4711-secret", "another-known-value", "third-known-value")
	work(b, g, `mkdir app/many; for i in $(seq 100); do seq -f 'func line%.0f() { return compute("some argument", 12345) }' 100 > app/many/f$i.go; done`)
	c, err := g.Tree.Change(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if len(c.Files) != 100 || c.Lines() != 10000 {
		b.Fatalf("%d files, %d lines", len(c.Files), c.Lines())
	}
	for b.Loop() {
		found, err := g.Policy(c)
		if err != nil || len(found) > 0 {
			b.Fatalf("%v, %v", found, err)
		}
	}
}
