package redact

import (
	"fmt"
	"strings"
	"testing"
)

// ordinaryLog is 1 MiB of what builds and tests print.
func ordinaryLog() string {
	lines := []string{
		"2026-01-02T10:11:12Z INFO  server: listening on :8080 (pid 4711)",
		"ok  \tissuesmith/internal/worktree\t1.234s\tcoverage: 81.2% of statements",
		"--- FAIL: TestInvoice/total (0.02s)\n    invoice_test.go:42: got 11.90, want 12.00",
		"npm http fetch GET 200 https://registry.example.org/left-pad 123ms (cache miss)",
		"diff --git a/app/Services/Invoice.php b/app/Services/Invoice.php\nindex 0123456..89abcde 100644",
		"+        return $this->items->sum(fn (Item $i) => round($i->price * $i->count, 2));",
		"PHPUnit 11.5.2 by Sebastian Bergmann and contributors.\n\n...............F...............  32 / 99 (32%)",
		"func (s *Server) handle(w http.ResponseWriter, r *http.Request) { token := r.Header.Get(name); _ = token }",
		"  Compiling serde v1.0.200 (https://github.example/serde-rs/serde#0123456789abcdef)",
		"   at Object.<anonymous> (/home/user/project/test/index.test.js:17:23)",
	}
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "%s\n", lines[i%len(lines)])
	}
	return b.String()[:1<<20]
}

func tenValues() []string {
	var values []string
	for i := range 10 {
		values = append(values, fmt.Sprintf("%c%dQz-Canary/%x+%d", 'A'+i, i*7919, i*104729, i))
	}
	return values
}

func BenchmarkText(b *testing.B) {
	text := ordinaryLog()
	r := New(tenValues()...)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Text(text)
	}
}

func BenchmarkValues(b *testing.B) {
	text := ordinaryLog()
	r := New(tenValues()...)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Values(text)
	}
}

func BenchmarkAdd(b *testing.B) {
	values := tenValues()
	for b.Loop() {
		New(values...)
	}
}
