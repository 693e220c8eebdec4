package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRead(t *testing.T) {
	t.Parallel()
	const good = `{"time":"2026-01-02T03:04:05Z","event":"note","data":{"text":"x"}}`
	for _, c := range []struct {
		name, in string
		events   int
		errs     []string
	}{
		{"empty", "", 0, nil},
		{"two", good + "\n" + good + "\n", 2, nil},
		{"unknown kind, more fields", strings.Replace(good, "note", "later", 1) + "\n" + strings.Replace(good, "{", `{"new":1,`, 1) + "\n", 2, nil},
		{"last line without newline", good + "\n" + good, 2, nil},
		{"last line cut", good + "\n" + good[:30], 1, nil},
		{"last line of zeros", good + "\n\x00\x00\x00", 1, nil},
		{"last line cut, with newline", good + "\n" + good[:30] + "\n", 1, []string{"line 2"}},
		{"broken in the middle", good + "\n{\n" + good + "\n", 2, []string{"line 2"}},
		{"broken twice", "x\n" + good + "\n[]\n" + good + "\n", 2, []string{"line 1", "line 3"}},
		{"no event", "{}\n", 0, []string{`line 1: no "event"`}},
		{"bad time", `{"time":"yesterday","event":"note"}` + "\n", 0, []string{"line 1"}},
		{"blank lines", "\n" + good + "\n \r\n" + good + "\r\n", 2, nil},
		{"too long", strings.Repeat("x", 100<<10) + "\n" + good + "\n", 1, []string{"line 1: longer than 64 MiB"}},
		{"too long and cut", good + "\n" + strings.Repeat("x", 100<<10), 1, nil},
	} {
		events, errs := 0, []string{}
		for e, err := range read(strings.NewReader(c.in), 90<<10) {
			if err != nil {
				errs = append(errs, err.Error())
				continue
			}
			if events++; e.Kind == "" {
				t.Errorf("%s: an event without kind", c.name)
			}
		}
		if events != c.events || len(errs) != len(c.errs) {
			t.Errorf("%s: %d events, errors %q", c.name, events, errs)
			continue
		}
		for i, want := range c.errs {
			if !strings.Contains(errs[i], want) {
				t.Errorf("%s: error %q, want %q", c.name, errs[i], want)
			}
		}
	}
}

func TestReadStopsAndFails(t *testing.T) {
	t.Parallel()
	const good = `{"time":"2026-01-02T03:04:05Z","event":"note","data":{"text":"x"}}` + "\n"
	for range Read(strings.NewReader(good + good)) {
		break // must not go on
	}
	broken := errors.New("broken disk")
	var events int
	var got error
	for _, err := range Read(io.MultiReader(strings.NewReader(good), iotest.ErrReader(broken))) {
		if err != nil {
			got = err
			continue
		}
		events++
	}
	if events != 1 || !errors.Is(got, broken) {
		t.Errorf("%d events, %v", events, got)
	}
	// An event stays what it is while the next ones are read.
	var first Event
	for e := range Read(strings.NewReader(good + strings.ReplaceAll(good, `"x"`, `"y"`))) {
		if first.Kind == "" {
			first = e
		}
	}
	if string(first.Data) != `{"text":"x"}` {
		t.Errorf("the first event became %s", first.Data)
	}
}

var update = flag.Bool("update", false, "write the golden files")

func TestShowGolden(t *testing.T) {
	t.Parallel()
	in, err := os.ReadFile(filepath.Join("testdata", "run.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Show(&out, bytes.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "run.txt")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("Show gives other text than %s (rewrite it with -update):\n%s", golden, out.String())
	}
}

func TestShowSurvives(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":[`, 500) + "1" + strings.Repeat("]}", 500)
	event := func(kind, data string) string {
		return `{"time":"2026-01-02T03:04:05Z","event":"` + kind + `","data":` + data + "}\n"
	}
	in := event("later", deep) + "broken\n" + event("model", `"not an object"`) + event("gate", `{"nothing":1}`) +
		event("note", `{"text":"\u001b]0;evil\u0007\u001b[31mred\r\nsecond"}`) + event("call", `{"name":"bash","arguments":"{\"command\":7"}`) +
		event("call", `{"name":"x\ny","arguments":"{\"a\":\"b\\nc\",\"d\":[1,null,{}]}"}`)
	var out bytes.Buffer
	err := Show(&out, strings.NewReader(in))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"! transcript line 2", "not an object", "nothing: 1", "note: red", "second", `{"command":7`, "@ x y", "d:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\a\r") || strings.Contains(out.String(), "evil") {
		t.Errorf("escapes came through: %q", out.String())
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := Show(full, strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), "show the transcript") {
		t.Errorf("full disk: %v", err)
	}
}

func TestShowIsolation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, isolation string
		want            []string // the lines between model and configuration
	}{
		{"none recorded", "", nil},
		{"nothing open", `,"isolation":{"level":"namespaces","layers":[{"name":"landlock files","state":"on"}],"open":[]}`, []string{"isolation: namespaces"}},
		{
			"refused", `,"isolation":{"level":"weak","open":["files can be read","the network is open"],"weak":["files can be read"]}`,
			[]string{"isolation: weak", "  not closed: files can be read", "  not closed: the network is open"},
		},
		{
			"hostile", `,"isolation":{"level":"\u001b[31mfull\nevil","open":["a\r\nb"]}`,
			[]string{"isolation: full evil", "  not closed: a b"},
		},
		{"text of an older version", `,"isolation":"processes only"`, nil},
		{"of another form", `,"isolation":{"level":7}`, nil},
		{"null", `,"isolation":null`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := `{"time":"2026-01-02T03:04:05Z","event":"run","data":{"model":"m","sandbox":"strict","config":{"key":"value"}` + c.isolation + "}}\n"
			var out bytes.Buffer
			if err := Show(&out, strings.NewReader(in)); err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(out.String(), "sandbox strict\n")
			got, _, found := strings.Cut(after, "  key: value\n")
			want := strings.Join(c.want, "\n")
			if !found || strings.TrimSuffix(got, "\n") != want {
				t.Errorf("shown:\n%s\nwant:\n%s", out.String(), want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	in, err := os.ReadFile(filepath.Join("testdata", "run.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(in)
	for _, line := range bytes.SplitAfter(in, []byte("\n")) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for e, err := range Read(bytes.NewReader(in)) {
			if err == nil && len(e.Data) > 0 && !json.Valid(e.Data) {
				t.Fatalf("event with broken data: %s", e.Data)
			}
		}
		var out bytes.Buffer
		_ = Show(&out, bytes.NewReader(in)) // broken lines are errors; a panic is not
		if bytes.ContainsAny(out.Bytes(), "\x1b\x07\r\x00") {
			t.Fatalf("control characters shown: %q", out.Bytes())
		}
	})
}

func FuzzMask(f *testing.F) {
	f.Add([]byte(`{"a":"hunter2-canary","b\"":["\\","x\u0041"],"hunter2-canary":1}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var v any
		if json.Unmarshal(in, &v) != nil {
			return
		}
		text, err := encode(v)
		if err != nil {
			return
		}
		masked := mask(text, strings.ToUpper)
		if !json.Valid(masked) {
			t.Fatalf("mask(%s) = %s", text, masked)
		}
		if same := mask(text, func(s string) string { return s }); !bytes.Equal(same, text) {
			t.Fatalf("mask changes %s to %s", text, same)
		}
	})
}
