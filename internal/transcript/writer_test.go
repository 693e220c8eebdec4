package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"issuesmith/internal/redact"
)

const canary = "hunter2-canary"

func create(t *testing.T, r *redact.Redactor) *Writer {
	t.Helper()
	w, err := Create(filepath.Join(t.TempDir(), "a", "b", "transcript.jsonl"), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func readAll(t *testing.T, path string) []Event {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []Event
	for e, err := range Read(f) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func TestCreate(t *testing.T) {
	t.Parallel()
	w := create(t, redact.New())
	info, err := os.Stat(w.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Dir(w.Path())); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	if _, err := Create(w.Path(), redact.New()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(link, redact.New()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a link: %v", err)
	}
}

func TestNilWriter(t *testing.T) {
	t.Parallel()
	var w *Writer
	if w.Path() != "" || w.Write(KindNote, 1, 1, Note{}) != nil || w.Close() != nil {
		t.Error("a nil writer does something")
	}
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	w := create(t, redact.New())
	want := Model{
		RequestID: "r1", Model: "m", Content: "a <b> & \u2028 \"c\"\n\x00\xff", Finish: "tool_calls",
		Calls: []Call{{ID: "1", Name: "bash", Arguments: `{"command":"ls \"x\""}`}},
		Usage: Usage{Prompt: 1, Cached: 2, Completion: 3, Cost: 0.5, CostKnown: true},
	}
	before := time.Now()
	if err := w.Write(KindModel, 2, 7, want); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(KindGate, 2, 0, map[string]any{"passed": false}); err != nil {
		t.Fatal(err)
	}
	events := readAll(t, w.Path()) // nothing is buffered
	if len(events) != 2 || events[0].Attempt != 2 || events[0].Step != 7 || events[0].Time.Before(before.Add(-time.Second)) {
		t.Fatalf("got %+v", events)
	}
	got, err := Decode[Model](events[0])
	want.Content = "a <b> & \u2028 \"c\"\n\x00\uFFFD"
	if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v\nwant %+v (%v)", got, want, err)
	}
	if _, err := Decode[Model](Event{Kind: KindNote, Data: json.RawMessage(`[]`)}); err == nil || !strings.Contains(err.Error(), "note") {
		t.Errorf("decoding something else: %v", err)
	}
	raw, err := os.ReadFile(w.Path())
	if err != nil || !bytes.Contains(raw, []byte("a <b> &")) {
		t.Errorf("HTML escaped, or %v: %s", err, raw)
	}
}

type selfMade struct{}

func (selfMade) MarshalJSON() ([]byte, error) { return []byte(`{"own":"` + canary + `"}`), nil }

func TestEveryStringIsRedacted(t *testing.T) {
	t.Parallel()
	r := redact.New(canary, "arguments", "quo\"te\\canary")
	w := create(t, r)
	type nested struct {
		Any  any
		Raw  json.RawMessage
		Self selfMade
		Ptr  *string
		Map  map[string][]string
		Err  error `json:",omitempty"`
	}
	text := "x " + canary + " y"
	data := nested{
		Any: []any{canary, map[string]any{"deep": "\n" + canary, canary: 1}, 12.5, nil, true},
		Raw: json.RawMessage(`{"k": "` + canary + `", "n": [1, "quo\"te\\canary"], "u": "hunter2\u002dcanary"}`),
		Ptr: &text, Map: map[string][]string{"k " + canary: {canary}},
	}
	for _, kind := range []Kind{KindModel, KindNote, "other"} {
		if err := w.Write(kind, 1, 1, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(KindCall, 1, 2, ToolCall{Name: "bash", Arguments: `{"command":"echo ` + canary + `"}`}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	if r.Holds(strings.ReplaceAll(string(raw), `"arguments":`, "")) || bytes.Contains(raw, []byte("canary")) {
		t.Fatalf("a value came through:\n%s", raw)
	}
	events := readAll(t, w.Path())
	call, err := Decode[ToolCall](events[3])
	if err != nil || call.Arguments != `{"command":"echo [redacted]"}` {
		t.Errorf("call %+v, %v", call, err)
	}
	var back nested
	if err := json.Unmarshal(events[0].Data, &back); err != nil || *back.Ptr != "x [redacted] y" ||
		string(back.Raw) != `{"k":"[redacted]","n":[1,"[redacted]"],"u":"[redacted]"}` {
		t.Errorf("%s, %v", events[0].Data, err)
	}
}

func TestPatternsOnlyForPeople(t *testing.T) {
	t.Parallel()
	r := redact.New()
	w := create(t, r)
	const guess = "password=abcd1234efgh \x1b[1mbold\r\n"
	for kind, want := range map[Kind]string{
		KindModel: guess, KindResult: guess, KindCall: guess, KindPrompt: guess, KindAttempt: guess, KindRun: guess,
		KindGate: "password=[redacted] bold\n", KindPublish: "password=[redacted] bold\n",
		KindNote: "password=[redacted] bold\n", KindEnd: "password=[redacted] bold\n",
	} {
		if err := w.Write(kind, 0, 0, Note{Text: guess}); err != nil {
			t.Fatal(err)
		}
		events := readAll(t, w.Path())
		got, err := Decode[Note](events[len(events)-1])
		if err != nil || got.Text != want {
			t.Errorf("%s: %q, %v", kind, got.Text, err)
		}
	}
	r.Add(canary) // known from here on
	if err := w.Write(KindResult, 0, 0, Note{Text: canary}); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(w.Path()); err != nil || bytes.Contains(raw, []byte(canary)) {
		t.Error("a value added later came through", err)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{path: "/dev/full", redact: redact.New(), limit: maxLine, file: full}
	for range 2 {
		if err := w.Write(KindNote, 0, 0, Note{Text: "x"}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v", err)
		}
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Close gives %v", err)
	}
}

func TestBadDataIsNotKept(t *testing.T) {
	t.Parallel()
	w := create(t, redact.New())
	w.limit = 9000
	if err := w.Write(KindNote, 0, 0, func() {}); err == nil {
		t.Error("a function was written")
	}
	if err := w.Write(KindNote, 0, 0, json.RawMessage(`{"broken`)); err == nil {
		t.Error("broken JSON was written")
	}
	if err := w.Write(KindNote, 0, 0, Note{Text: strings.Repeat("x", 9000)}); err == nil {
		t.Error("a line over the cap was written")
	}
	if err := w.Write(KindNote, 0, 0, Note{Text: "good"}); err != nil {
		t.Error(err)
	}
	if n := len(readAll(t, w.Path())); n != 1 {
		t.Errorf("%d events", n)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Errorf("closing fails: %v", err)
		}
	}
	if err := w.Write(KindNote, 0, 0, Note{}); err == nil {
		t.Error("written after Close")
	}
}

func TestConcurrentWritesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := create(t, redact.New())
	w.last = time.Now().Add(time.Hour).UTC() // the clock was set back since
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if err := w.Write(KindNote, g, i, Note{Text: strings.Repeat("long ", 2000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	events := readAll(t, w.Path())
	next := map[int]int{}
	last := time.Time{}
	for _, e := range events {
		if e.Time.Before(last) || e.Step != next[e.Attempt] {
			t.Fatalf("out of order: %d.%d at %v after %v", e.Attempt, e.Step, e.Time, last)
		}
		last = e.Time
		next[e.Attempt]++
	}
	if len(events) != 400 {
		t.Errorf("%d events", len(events))
	}
}

// TestKilledWriter kills a process in the middle of writing: every event whose
// writing it reported is there, and nothing is broken.
func TestKilledWriter(t *testing.T) {
	const inChild = "TRANSCRIPT_TEST_PATH"
	if path := os.Getenv(inChild); path != "" {
		w, err := Create(path, redact.New())
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; ; i++ {
			if err := w.Write(KindNote, 0, i, Note{Text: strings.Repeat("x", 9000)}); err != nil {
				t.Fatal(err)
			}
			fmt.Println("written", i)
		}
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
	cmd.Env = append(os.Environ(), inChild+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reported := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "written %d", &reported); err == nil && reported == 200 {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	events := readAll(t, path)
	if len(events) < reported || reported < 200 {
		t.Fatalf("%d events, %d reported", len(events), reported)
	}
}

func BenchmarkWrite9KB(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "t.jsonl"), redact.New("hunter2-canary-1", "hunter2-canary-2", "0123456789abcdef0123456789abcdef01234567"))
	if err != nil {
		b.Fatal(err)
	}
	result := ToolResult{ID: "call_1", Output: strings.Repeat("ok  \tissuesmith/internal/worktree\t1.234s  \"quoted\" <tag>\n", 9<<10/58)}
	b.SetBytes(int64(len(result.Output)))
	for b.Loop() {
		if err := w.Write(KindResult, 1, 1, result); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
