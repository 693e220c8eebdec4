package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDefinitionsAreSoundAndStable(t *testing.T) {
	t.Parallel()
	var names []string
	size := 0
	for _, d := range NewSet(Bench{}).Definitions() {
		names = append(names, d.Name)
		size += len(d.Name) + len(d.Description) + len(d.Schema)
		var schema struct {
			Type       string
			Properties map[string]struct{ Type string }
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(d.Schema, &schema); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if schema.Type != "object" || schema.Additional == nil || *schema.Additional || len(d.Description) < 50 {
			t.Errorf("%s: schema %s, description %q", d.Name, d.Schema, d.Description)
		}
		for _, r := range schema.Required {
			if schema.Properties[r].Type == "" {
				t.Errorf("%s: %q is required and not described", d.Name, r)
			}
		}
	}
	if want := []string{"bash", "read_file", "search", "edit_file", "write_file", "submit"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	if size > 3500 {
		t.Errorf("the definitions are %d bytes long: every request carries them", size)
	}
}

func TestMalformedCallsExplainThemselves(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{"a.txt": "one\n"})
	for _, c := range []struct{ name, arguments, says string }{
		{"read_file", `{"path":"a.txt"`, "end too early"},
		{"read_file", `{"path":"a.txt",}`, "not valid JSON"},
		{"read_file", `{"path":"a.txt"} {"path":"b"}`, "something follows"},
		{"read_file", `{"path":"a.txt","pages":2}`, `unknown field "pages"`},
		{"read_file", `{"path":7}`, `"path" must be of type string, not number`},
		{"read_file", `{"path":"a.txt","start":"x"}`, `"start" must be of type integer, not string`},
		{"read_file", `{"path":"a.txt","start":1e99}`, `"start" must be of type integer`},
		{"read_file", `"a.txt"`, "not a JSON object"},
		{"read_file", `null`, "not a JSON object"},
		{"read_file", ``, `"path" is missing`},
		{"read_file", strings.Repeat("[", 100000), "not a JSON object"},
		{"read_file", `{"path":` + strings.Repeat("[", 100000), "not valid JSON"},
		{"bash", `{}`, `"command" is missing`},
		{"search", `{"pattern":""}`, `"pattern" is missing`},
		{"search", `{"pattern":"a","context":99}`, "0 to 10"},
		{"edit_file", `{"path":"a.txt","edits":[]}`, `"edits" is missing`},
		{"edit_file", `{"path":"a.txt","edits":[{"old":"one"}]}`, `edit 1 lacks`},
		{"edit_file", `{"path":"a.txt","old":"one"}`, "belong together"},
		{"edit_file", `{"path":"a.txt","edits":"[]"}`, `"edits" must be of type array`},
		{"write_file", `{"path":"b.txt"}`, `"content" is missing`},
		{"submit", `{"tests_run":[]}`, `"summary" is missing`},
		{"write_file", args("path", "b.txt", "content", strings.Repeat("x", MaxArguments)), "smaller pieces"},
	} {
		r, valid, err := s.Call(t.Context(), c.name, c.arguments)
		if valid || err != nil || !r.Failed || !strings.Contains(r.Text, c.says) || !strings.Contains(r.Text, `"additionalProperties":false`) {
			t.Errorf("%s %.60s: valid %t, error %v, %.300s", c.name, c.arguments, valid, err, r.Text)
		}
		if len(r.Text) > 2000 {
			t.Errorf("%s %.60s: the explanation is %d bytes long", c.name, c.arguments, len(r.Text))
		}
	}
	r, valid, err := s.Call(t.Context(), "rm_rf"+strings.Repeat("!", 1000), "{}")
	if valid || err != nil || !strings.Contains(r.Text, "edit_file, write_file, submit") || len(r.Text) > 300 {
		t.Errorf("unknown tool: valid %t, error %v, %s", valid, err, r.Text)
	}
	if _, err := os.Stat(s.bench.Tree.Dir() + "/b.txt"); err == nil {
		t.Error("a malformed call made a file")
	}
}

func TestEndedContextEndsTheRun(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, d := range s.Definitions() {
		if _, _, err := s.Call(ctx, d.Name, `{"command":"true"}`); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestSubmitIsBoundedAndClean(t *testing.T) {
	t.Parallel()
	s := newSet(t, nil)
	many := make([]string, 500)
	for i := range many {
		many[i] = strings.Repeat("t", 1000)
	}
	many[0] = "  go test ./... " + canary
	r := call(t, s, "submit", args("summary", "Fixed \x00 with "+canary+strings.Repeat("s", 9000), "tests_run", many))
	if r.Submit == nil || len(r.Submit.Tests) != maxTests || len(r.Submit.Summary) > maxSummary+50 || len(r.Submit.Tests[1]) > maxTest+50 {
		t.Fatalf("%+v", r)
	}
	if text := r.Submit.Summary + r.Submit.Tests[0]; strings.Contains(text, canary) || strings.Contains(text, "\x00") {
		t.Errorf("not clean: %.200s", text)
	}
}

func FuzzCall(f *testing.F) {
	f.Add("bash", `{"command":""}`)
	f.Add("read_file", `{"path":"a/../../etc/passwd","start":-1}`)
	f.Add("read_file", "{\"path\":\"\xff\"}")
	f.Add("search", `{"pattern":"(","glob":"[","context":3}`)
	f.Add("search", `{"pattern":"(a*)*$","path":"."}`)
	f.Add("edit_file", `{"path":"a.txt","edits":[{"old":"o","new":""},{"old":"n","new":"\u0000"}]}`)
	f.Add("edit_file", `{"path":"a.txt","old":"o","new":"e"}`)
	f.Add("write_file", `{"path":"x/.GIT/config","content":""}`)
	f.Add("submit", `{"summary":"s","tests_run":null}`)
	s := newSet(f, map[string]string{"a.txt": "one\ntwo\r\n", "b/c.md": "\xEF\xBB\xBFthree"})
	f.Fuzz(func(t *testing.T, name, arguments string) {
		if name == "bash" {
			if _, err := decode[bashArguments](arguments); err == nil {
				return // what a command may do is the sandbox's business
			}
		}
		r, valid, err := s.Call(t.Context(), name, arguments)
		if err != nil {
			t.Fatalf("%s %q: %v", name, arguments, err)
		}
		if r.Text == "" || !utf8.ValidString(r.Text) || strings.Contains(r.Text, "\x00") || len(r.Text) > maxResult+300 || !valid && !r.Failed {
			t.Fatalf("%s %q: valid %t, %+v", name, arguments, valid, r)
		}
	})
}
