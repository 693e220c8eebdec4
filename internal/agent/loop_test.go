package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"issuesmith/internal/config"
	"issuesmith/internal/endpoint"
	"issuesmith/internal/transcript"
)

// The loop's own cost: benchSteps turns, each of which reads a different file of 9 KB, so that all of it stands in every later request.
const (
	benchSteps = 250
	benchBytes = 9 << 10
)

// benchFixture is a conversation over files to read; turn i reads the i-th.
func benchFixture(b testing.TB) *fixture {
	f := newFixture(b)
	for i := range benchSteps {
		line := fmt.Sprintf("file %d ", i) + strings.Repeat("z", 83) + "\n"
		content := strings.Repeat(line, benchBytes/(len(line)+3))
		must(b, os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("f%d.txt", i)), []byte(content), 0o600))
	}
	f.options.Progress = nil
	return f
}

func benchCall(i int) transcript.Call {
	if i >= benchSteps {
		return transcript.Call{ID: "last", Name: "submit", Arguments: submission}
	}
	return transcript.Call{ID: fmt.Sprintf("call%05d", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"f%d.txt"}`, i)}
}

// A meter notes, at every request, the time since the answer before and the size of the request.
type meter struct {
	steps   []time.Duration
	sizes   []int
	left    time.Time
	highest uint64
}

func (m *meter) arrive(size int) {
	if !m.left.IsZero() {
		m.steps = append(m.steps, time.Since(m.left))
		m.sizes = append(m.sizes, size)
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	m.highest = max(m.highest, sample[0].Value.Uint64())
}

func (m *meter) leave() { m.left = time.Now() }

// report gives the median step while requests are below 100 KB, the cost of each MB beyond, by the medians of the first
// and the last steps, and the highest heap.
func (m *meter) report(b *testing.B) {
	var small, large []time.Duration
	var sizes int
	for i, d := range m.steps {
		switch {
		case m.sizes[i] < 100_000:
			small = append(small, d)
		case i%benchSteps >= benchSteps-50:
			large = append(large, d)
			sizes += m.sizes[i]
		}
	}
	slices.Sort(small)
	slices.Sort(large)
	first, last := small[len(small)/2].Seconds()*1000, large[len(large)/2].Seconds()*1000
	megabytes := float64(sizes) / float64(len(large)) / 1e6
	b.ReportMetric(first, "ms/step<100KB")
	b.ReportMetric(max(0, last-first)/megabytes, "ms/MB")
	b.ReportMetric(float64(m.highest)/(1<<20), "MiB-heap")
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	b.ReportMetric(float64(used.Maxrss)/(1<<10), "MiB-peak") // of the whole process, the test's server included
	b.ReportMetric(0, "ns/op")
}

// An instant model answers at once and encodes nothing.
type instant struct {
	meter
	asked int
}

func (c *instant) Complete(_ context.Context, messages []endpoint.Message, _ []endpoint.Tool) (*endpoint.Turn, error) {
	size := 0
	for _, m := range messages {
		size += len(m.Content)
	}
	c.arrive(size)
	defer c.leave()
	call := benchCall(c.asked)
	c.asked++
	return &endpoint.Turn{Finish: "tool_calls", Message: endpoint.Message{Role: endpoint.Assistant, Calls: []transcript.Call{call}}}, nil
}

func (c *instant) Request([]endpoint.Message, []endpoint.Tool) ([]byte, error) { return nil, nil }
func (c *instant) Name() string                                                { return "instant/test" }
func (c *instant) Window(context.Context) int                                  { return 0 }

func BenchmarkLoop(b *testing.B) {
	all := &instant{}
	f := benchFixture(b)
	for b.Loop() {
		all.asked, all.left = 0, time.Time{}
		f.options.Client = all
		if r := f.run(Submitted); r.Calls != benchSteps+1 {
			b.Fatalf("%+v", r)
		}
	}
	all.report(b)
}

// benchServer is a chat server that answers at once.
type benchServer struct {
	mu    sync.Mutex
	asked int
	meter
}

func (s *benchServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.arrive(int(r.ContentLength))
	call := benchCall(s.asked)
	s.asked++
	chunk, err := json.Marshal(map[string]any{
		"id": "r", "object": "chat.completion.chunk", "model": "m",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "tool_calls", "delta": map[string]any{
			"role": "assistant", "tool_calls": []any{map[string]any{
				"index": 0, "id": call.ID, "type": "function", "function": map[string]string{"name": call.Name, "arguments": call.Arguments},
			}},
		}}},
		"usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s.leave()
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk) // a reader that is gone ends the benchmark by itself
}

func BenchmarkLoopEncoded(b *testing.B) {
	all := &benchServer{}
	server := httptest.NewServer(all)
	defer server.Close()
	f := benchFixture(b)
	for b.Loop() {
		all.asked, all.left = 0, time.Time{}
		client, err := endpoint.New(endpoint.Options{Config: &config.Config{Model: config.Model{Provider: "custom", Name: "m"}, ModelBase: server.URL + "/v1"}})
		must(b, err)
		f.options.Client = client
		if r := f.run(Submitted); r.Calls != benchSteps+1 {
			b.Fatalf("%+v", r)
		}
	}
	all.report(b)
}

// TestLoopGrowsLinearly holds that a step costs the same in a long conversation as in a short one.
func TestLoopGrowsLinearly(t *testing.T) {
	t.Parallel()
	client := &instant{}
	f := benchFixture(t)
	f.options.Client = client
	f.run(Submitted)
	early, late := slices.Clone(client.steps[:benchSteps/2]), slices.Clone(client.steps[benchSteps/2:])
	slices.Sort(early)
	slices.Sort(late)
	if a, b := early[len(early)/2], late[len(late)/2]; b > 3*a+2*time.Millisecond {
		t.Errorf("a step costs %s in the first half and %s in the second", a, b)
	}
}
