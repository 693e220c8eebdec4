package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"issuesmith/internal/config"
)

// newTestChat is a client of url that retries without waiting.
func newTestChat(t testing.TB, url string, change func(*config.Config)) *chat {
	t.Helper()
	cfg := &config.Config{
		Model:         config.Model{Provider: "custom", Name: "m"},
		ModelBase:     url + "/v1",
		ModelKey:      "canary-key-0123456789",
		FirstToken:    10 * time.Second,
		BetweenTokens: 10 * time.Second,
	}
	if change != nil {
		change(cfg)
	}
	c, err := newChat(Options{Config: cfg})
	if err != nil {
		t.Fatal(err)
	}
	c.backoff = func(int) time.Duration { return time.Millisecond }
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

var hello = []Message{{Role: User, Content: "hello"}}

// An expected reading of one recorded answer.
type expected struct {
	Status      int
	ContentType string `json:"content_type"`
	Calls       []struct {
		Name         string
		Arguments    json.RawMessage
		ArgumentsRaw string `json:"arguments_raw"`
	}
	Content, Reasoning string
	Error              Kind
	Usage              *struct{ Prompt, Completion, Cached int }
}

func recordings(t testing.TB) map[string]expected {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sse", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]expected
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func body(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "sse", name+".body"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// check compares what a client made of an answer with what is expected.
func (want expected) check(turn *Turn, err error) string {
	if want.Error != "" {
		var e *Error
		switch {
		case !errors.As(err, &e):
			return "got " + describe(turn, err) + ", want an error of kind " + string(want.Error)
		case e.Kind != want.Error || turn != nil:
			return "got " + describe(turn, err) + ", want kind " + string(want.Error)
		case e.Message == "":
			return "an error without words"
		}
		return ""
	}
	if err != nil {
		return err.Error()
	}
	m := turn.Message
	if m.Role != Assistant || m.Content != want.Content || m.Reasoning != want.Reasoning || len(m.Calls) != len(want.Calls) || turn.Finish == "" {
		return "got " + describe(turn, err)
	}
	seen := map[string]bool{}
	for i, call := range m.Calls {
		if call.ID == "" || seen[call.ID] {
			return "ids: " + describe(turn, err)
		}
		seen[call.ID] = true
		if call.Name != want.Calls[i].Name || !sameArguments(call.Arguments, want.Calls[i].Arguments, want.Calls[i].ArgumentsRaw) {
			return "call: " + describe(turn, err)
		}
	}
	u := turn.Usage
	if want.Usage == nil {
		if !u.Estimated || u.Prompt == 0 {
			return "usage should be an estimate: " + describe(turn, err)
		}
	} else if u.Estimated || u.Prompt != want.Usage.Prompt || u.Completion != want.Usage.Completion || u.Cached != want.Usage.Cached {
		return "usage: " + describe(turn, err)
	}
	return ""
}

func sameArguments(got string, want json.RawMessage, raw string) bool {
	if raw != "" {
		return got == raw
	}
	var a, b any
	return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal(want, &b) == nil && reflect.DeepEqual(a, b)
}

func describe(turn *Turn, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	text, _ := json.Marshal(turn)
	return string(text)
}

// Every recorded shape through a real server: whole, cut in two at every byte, and byte by byte.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	if len(all) < 25 {
		t.Fatalf("only %d recordings", len(all))
	}
	for name, want := range all {
		text := body(t, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var place atomic.Int64 // where the answer is cut; negative: everywhere
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", want.ContentType)
				w.WriteHeader(want.Status)
				cut := int(place.Load())
				if cut < 0 {
					for i := range text {
						_, _ = w.Write(text[i : i+1])
						w.(http.Flusher).Flush()
					}
					return
				}
				_, _ = w.Write(text[:cut])
				w.(http.Flusher).Flush()
				_, _ = w.Write(text[cut:])
			}))
			defer srv.Close()
			c := newTestChat(t, srv.URL, nil)
			c.tries = 1
			ask := func(how string) {
				t.Helper()
				if problem := want.check(c.Complete(t.Context(), hello, nil)); problem != "" {
					t.Fatalf("%s: %s", how, problem)
				}
			}
			ask("whole")
			stride := 1
			if testing.Short() || len(text) > 2000 {
				stride = 7
			}
			for cut := 1; cut < len(text); cut += stride {
				place.Store(int64(cut))
				ask("cut after " + string(text[:cut]))
			}
			place.Store(-1)
			ask("byte by byte")
		})
	}
}

// The same without a network, where a cut really is a cut.
func TestRecordedAnswersEveryCut(t *testing.T) {
	t.Parallel()
	c := newTestChat(t, "http://127.0.0.1:1", nil)
	for name, want := range recordings(t) {
		if want.Status != http.StatusOK {
			continue
		}
		text := string(body(t, name))
		for cut := 0; cut < len(text); cut += 1 + len(text)/2000 {
			r := io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:]))
			if problem := want.check(readAll(c, r)); problem != "" {
				t.Errorf("%s cut at %d: %s", name, cut, problem)
				break
			}
		}
		if problem := want.check(readAll(c, iotest.OneByteReader(strings.NewReader(text)))); problem != "" {
			t.Errorf("%s byte by byte: %s", name, problem)
		}
		if problem := want.check(readAll(c, iotest.DataErrReader(strings.NewReader(text)))); problem != "" {
			t.Errorf("%s with its end: %s", name, problem)
		}
	}
}

// readAll reads an answer as ask does.
func readAll(c *chat, r io.Reader) (*Turn, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	k := startClock(cancel, time.Minute, time.Minute)
	defer k.timer.Stop()
	var a assembly
	first, failure := c.read(ctx, k, newEventReader(r), &a, time.Now())
	if failure != nil {
		return nil, failure
	}
	return c.turn(&a, http.Header{}, 100, min(first, 1), time.Second), nil
}

func data(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString("data: " + s + "\n\n")
	}
	return b.String()
}

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// callChunk is a chunk with one fragment of a call, whose members are given.
func callChunk(members string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[{` + members + `}]}}]}`
}

func TestShapesBeyondTheRecorded(t *testing.T) {
	t.Parallel()
	hi := `{"choices":[{"index":0,"delta":{"content":"hi"}}]}`
	for name, tt := range map[string]struct {
		body    string
		content string
		calls   []string // name arguments
		kind    Kind
		words   string
	}{
		"byte order mark":               {body: "\uFEFF" + data(hi, stop), content: "hi"},
		"blank lines before":            {body: "\n\r\n" + data(hi, stop), content: "hi"},
		"no space after data":           {body: "data:" + hi + "\n\ndata:" + stop + "\n\n", content: "hi"},
		"no blank line between events":  {body: "data: " + hi + "\ndata: " + stop + "\ndata: [DONE]\n", content: "hi"},
		"junk after done":               {body: data(hi, stop, "[DONE]", `{"bad`), content: "hi"},
		"json lines":                    {body: hi + "\n" + stop + "\n", content: "hi"},
		"printed over lines":            {body: "{\n \"choices\": [\n  {\"message\": {\"content\": \"hi\"},\n  \"finish_reason\": \"stop\"}\n ]\n}\n", content: "hi"},
		"message repeats the deltas":    {body: data(hi, `{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`), content: "hi"},
		"a second choice":               {body: data(hi, `{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"}]}`, stop), content: "hi"},
		"empty finish reasons":          {body: data(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":""}]}`, stop), content: "hi"},
		"numbers as text":               {body: data(`{"id":7,"choices":[{"index":"0","delta":{"content":"hi"}}]}`, stop), content: "hi"},
		"azure's first chunk":           {body: data(`{"choices":[],"prompt_filter_results":[]}`, hi, stop), content: "hi"},
		"null error":                    {body: data(`{"error":null,"choices":[{"index":0,"delta":{"content":"hi"}}]}`, stop), content: "hi"},
		"only comments":                 {body: ": one\n\n: two\n\n", kind: Truncated},
		"nothing":                       {kind: Truncated},
		"done without a finish":         {body: data(hi, "[DONE]"), kind: Truncated},
		"cut inside an event":           {body: data(hi) + `data: {"choices":[{"index":0,"finish_re`, kind: Truncated},
		"cut after the finish":          {body: data(hi, stop) + `data: {"usage`, content: "hi"},
		"event of half a JSON":          {body: "data: {\"choices\":[\n\n" + data(stop), kind: Protocol},
		"data that is no JSON":          {body: data("Internal Server Error"), kind: Protocol, words: "Internal Server Error"},
		"broken JSON":                   {body: data(`{"choices":[}]}`), kind: Protocol},
		"choices of the wrong type":     {body: data(`{"choices":{"a":1}}`), kind: Protocol},
		"plain text":                    {body: "upstream connect error\n", kind: Truncated},
		"error line of llama.cpp":       {body: data(hi) + "error: {\"code\":500,\"message\":\"slot gone\",\"type\":\"server_error\"}\n\n", kind: Server, words: "slot gone"},
		"error event":                   {body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", kind: Server, words: "Overloaded"},
		"error event that is text":      {body: "event: error\ndata: out of memory\n\n", kind: Server, words: "out of memory"},
		"error as a string":             {body: data(`{"error":"model runner has stopped"}`), kind: Server, words: "model runner has stopped"},
		"error with a number":           {body: data(`{"error":{"message":"slow down","code":429}}`), kind: RateLimit, words: "slow down"},
		"error in a document":           {body: `{"detail":"Not Found"}`, kind: Server, words: "Not Found"},
		"openrouter's upstream words":   {body: data(`{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"{\"message\":\"real cause\"}"}}}`), kind: Server, words: "real cause"},
		"overflow inside the stream":    {body: data(`{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), kind: ContextOverflow},
		"finish reason error":           {body: data(`{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), kind: Server},
		"finish reason abort":           {body: data(hi, `{"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}`), kind: Truncated},
		"model_length outside a call":   {body: data(hi, `{"choices":[{"index":0,"delta":{},"finish_reason":"model_length"}]}`), content: "hi"},
		"length after a whole call":     {body: data(callChunk(`"id":"a","function":{"name":"bash","arguments":"{}"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`), calls: []string{"bash {}"}},
		"filter inside a call":          {body: data(callChunk(`"id":"a","function":{"name":"bash","arguments":"{"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`), kind: Truncated},
		"arguments repeated at the end": {body: data(callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"{\"a\":"}`), callChunk(`"index":0,"function":{"arguments":"1}"}`), callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"{\"a\":1}"}`), stop), calls: []string{`bash {"a":1}`}},
		"placeholder arguments first":   {body: data(callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"{}"}`), callChunk(`"index":0,"function":{"arguments":"{\"a\":"}`), callChunk(`"index":0,"function":{"arguments":"1}"}`), stop), calls: []string{`bash {"a":1}`}},
		"a new id with every fragment":  {body: data(callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"{\"a\":"}`), callChunk(`"index":0,"id":"b","function":{"name":null,"arguments":"1}"}`), stop), calls: []string{`bash {"a":1}`}},
		"the name with every fragment":  {body: data(callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"{\"a\":"}`), callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"1}"}`), stop), calls: []string{`bash {"a":1}`}},
		"the id later than the name":    {body: data(callChunk(`"index":0,"function":{"name":"bash","arguments":""}`), callChunk(`"index":0,"id":"a","function":{"arguments":"{\"a\":1}"}`), stop), calls: []string{`bash {"a":1}`}},
		"neither ids nor indexes":       {body: data(callChunk(`"function":{"name":"bash","arguments":"{\"a\":"}`), callChunk(`"function":{"arguments":"1}"}`), callChunk(`"function":{"name":"bash","arguments":"{\"b\":2}"}`), callChunk(`"function":{"name":"submit","arguments":""}`), stop), calls: []string{`bash {"a":1}`, `bash {"b":2}`, "submit {}"}},
		"interleaved fragments":         {body: data(callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"{\"a\":"}`), callChunk(`"index":1,"id":"b","function":{"name":"bash","arguments":"{\"b\":"}`), callChunk(`"index":0,"function":{"arguments":"1}"}`), callChunk(`"index":1,"function":{"arguments":"2}"}`), stop), calls: []string{`bash {"a":1}`, `bash {"b":2}`}},
		"one id for every call":         {body: data(callChunk(`"index":0,"id":"call","function":{"name":"bash","arguments":"{\"a\":1}"}`), callChunk(`"index":1,"id":"call","function":{"name":"bash","arguments":"{\"b\":2}"}`), stop), calls: []string{`bash {"a":1}`, `bash {"b":2}`}},
		"braces inside strings":         {body: data(callChunk(`"index":0,"id":"a","function":{"name":"bash","arguments":"{\"a\":\"}{\\\"\"}"}`), stop), calls: []string{`bash {"a":"}{\""}`}},
		"a call without a name":         {body: data(callChunk(`"index":0,"id":"a","function":{"arguments":"{}"}`), stop), kind: Protocol},
		"an id full of spaces":          {body: data(callChunk(`"index":0,"id":"a b\n","function":{"name":"bash","arguments":"{}"}`), stop), calls: []string{"bash {}"}},
		"a flood of calls":              {body: floodOfCalls(300), kind: Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestChat(t, "http://127.0.0.1:1", nil)
			turn, err := readAll(c, strings.NewReader(tt.body))
			if tt.kind != "" {
				var e *Error
				if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Message, tt.words) {
					t.Fatalf("got %s, want kind %s with %q", describe(turn, err), tt.kind, tt.words)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, call := range turn.Message.Calls {
				calls = append(calls, call.Name+" "+call.Arguments)
				if !usableID(call.ID) {
					t.Errorf("id %q", call.ID)
				}
			}
			if turn.Message.Content != tt.content || !reflect.DeepEqual(calls, tt.calls) {
				t.Errorf("got %s", describe(turn, err))
			}
		})
	}
}

func floodOfCalls(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(data(callChunk(`"index":` + string(rune('0'+i%10)) + `,"id":"id-` + strings.Repeat("x", i) + `","function":{"name":"bash","arguments":"{}"}`)))
	}
	return b.String()
}

func TestLimitsOfAnAnswer(t *testing.T) {
	t.Parallel()
	if most := newEventReader(nil).most; most.line != 16<<20 || most.body != 64<<20 {
		t.Errorf("limits %+v", most)
	}
	filler := strings.Repeat("x", 50_000)
	for name, r := range map[string]io.Reader{
		"a line":      io.MultiReader(strings.NewReader("data: {"), endless{'a'}),
		"an event":    io.MultiReader(strings.NewReader("data: {\"a\":\"\n"), repeated("data: "+filler+"\n")),
		"a body":      repeated(": comment\n"),
		"a document":  io.MultiReader(strings.NewReader("{"), repeated(filler+"\n")),
		"no newlines": endless{'x'},
	} {
		events := newEventReader(r)
		events.most = limits{line: 1 << 20, body: 4 << 20}
		var err error
		for err == nil {
			_, err = events.next()
		}
		if !errors.Is(err, errNotChat) || !strings.Contains(err.Error(), "more than") || events.read > 4<<20+64<<10 {
			t.Errorf("%s without end: %v after %d bytes", name, err, events.read)
		}
	}
	c := newTestChat(t, "http://127.0.0.1:1", nil)
	long := strings.Repeat("y", 3<<20)
	turn, err := readAll(c, strings.NewReader(data(`{"choices":[{"index":0,"delta":{"content":"`+long+`"}}]}`, stop)))
	if err != nil || turn.Message.Content != long {
		t.Errorf("a line of 3 MiB: %v", err)
	}
}

type endless struct{ c byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.c
	}
	return len(p), nil
}

type repeater struct {
	text string
	at   int
}

func repeated(s string) io.Reader { return &repeater{text: s} }

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func TestReasoningKeptApart(t *testing.T) {
	t.Parallel()
	c := newTestChat(t, "http://127.0.0.1:1", nil)
	turn, err := readAll(c, strings.NewReader(data(
		`{"model":"other","choices":[{"index":0,"delta":{"reasoning":"same","reasoning_content":"same"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":"more"},{"type":"text","text":"said"}]}}]}`, stop)))
	if err != nil {
		t.Fatal(err)
	}
	if turn.Message.Reasoning != "samemore" || turn.Message.Content != "said" || turn.Model != "other" {
		t.Errorf("got %s", describe(turn, err))
	}
}
