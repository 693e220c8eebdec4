package actions

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The payloads are real ones of Gitea 1.26.
func TestPayloads(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	first := Event{Name: "issues", Action: "label_updated", Issue: 1, Title: "first", Body: "do it", Author: "owner", Sender: "owner"}
	with := func(added, labels []string, updated string) Event {
		e := first
		e.Added, e.Labels, e.Updated = added, labels, at(updated)
		return e
	}
	want := map[string]Event{
		"add-one-queued":    with([]string{"ai:queued"}, []string{"ai:queued"}, "2026-11-30T16:44:40Z"),
		"add-same-again":    with([]string{"ai:queued"}, []string{"ai:queued"}, "2026-11-30T16:44:40Z"),
		"add-other-bug":     with([]string{"bug"}, []string{"ai:queued", "bug"}, "2026-11-30T16:44:48Z"),
		"add-two":           with([]string{"ai:queued", "bug"}, []string{"ai:queued", "bug"}, "2026-11-30T16:44:56Z"),
		"delete-queued":     with(nil, []string{"bug"}, "2026-11-30T16:44:51Z"),
		"put-queued-bug":    with([]string{"ai:queued", "bug"}, nil, "2026-11-30T16:45:01Z"), // labels empty in the payload
		"put-running":       with([]string{"ai:running"}, nil, "2026-11-30T16:44:58Z"),
		"label-by-name":     with([]string{"ai:running"}, []string{"ai:queued", "ai:running", "bug"}, "2026-11-30T16:45:07Z"),
		"create-with-label": {Name: "issues", Action: "opened", Issue: 2, Title: "created with label", Author: "owner", Sender: "owner", Labels: []string{"ai:queued"}, Updated: at("2026-11-30T16:45:04Z")},
		"dispatch":          {Name: "workflow_dispatch", Sender: "owner", Input: "42"},
	}
	files, err := filepath.Glob("testdata/events/*.json")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d payloads, %d expected: %v", len(files), len(want), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		expected := want[name]
		got, err := ParseEvent(expected.Name, bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "create-with-label" {
			expected.Title, expected.Body = got.Title, got.Body
		}
		if !reflect.DeepEqual(*got, expected) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, expected)
		}
	}
}

func TestOtherPayloads(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		ok         func(*Event) bool
	}{
		{"issues", `{"action":"labeled","label":{"name":"ai:queued"},"issue":{"number":7}}`, func(e *Event) bool { return reflect.DeepEqual(e.Added, []string{"ai:queued"}) && e.Issue == 7 }},
		{"issues", `{"action":"unlabeled","label":{"name":"ai:queued"},"issue":{"number":7}}`, func(e *Event) bool { return e.Added == nil }},
		{"issues", `{"action":"label_updated","label":{"name":"a"},"changes":{"added_labels":[{"name":"a"},{"name":"b"},{"name":""}]},"issue":{"number":7}}`, func(e *Event) bool { return reflect.DeepEqual(e.Added, []string{"a", "b"}) }},
		{"issues", `{"issue":{"number":7,"pull_request":{"merged":false},"content_version":3}}`, func(e *Event) bool { return e.IsPull && e.ContentVersion == 3 }},
		{"pull_request", `{"number":7,"pull_request":{"id":1}}`, func(e *Event) bool { return e.IsPull && e.Issue == 7 }},
		{"schedule", `{"schedule":"17 * * * *"}`, func(e *Event) bool { return e.Issue == 0 && !e.IsPull }},
		{"workflow_dispatch", `{"inputs":{"issue":"7; rm -rf /"}}`, func(e *Event) bool { return e.Input == "7; rm -rf /" }},
		{"workflow_dispatch", `{"inputs":{"issue":42}}`, func(e *Event) bool { return e.Input == "42" }},
		{"workflow_dispatch", `{"inputs":null}`, func(e *Event) bool { return e.Input == "" }},
		{"issues", `{"issue":{"number":7,"updated_at":"yesterday","user":null}}`, func(e *Event) bool { return e.Updated.IsZero() && e.Author == "" }},
		{"issues", "{\"issue\":{\"number\":7,\"body\":\"a\\u0000b\xff\"}}", func(e *Event) bool { return e.Body == "a\x00b\ufffd" }},
	} {
		e, err := ParseEvent(test.name, strings.NewReader(test.text))
		if err != nil || !test.ok(e) {
			t.Errorf("%s: %+v, %v", test.text, e, err)
		}
	}
	for _, text := range []string{"", "x", "[]", `{"issue":{"number":"7"}}`, `{"issue":{"number":-1}}`, `{"number":-1}`, `{} {}`} {
		if e, err := ParseEvent("issues", strings.NewReader(text)); err == nil {
			t.Errorf("%q is read as %+v", text, e)
		}
	}
	if _, err := parseEvent("issues", strings.NewReader(`{"a":1}`), 7); err != nil {
		t.Errorf("a payload of the limit: %v", err)
	}
	if _, err := parseEvent("issues", strings.NewReader(`{"a":1} `), 7); err == nil || !strings.Contains(err.Error(), "longer than 7 bytes") {
		t.Errorf("a long payload: %v", err)
	}
}

func TestParseIssue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"7": 7, " 42\n": 42, "2147483647": 2147483647} {
		if n, err := ParseIssue(text); n != want || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", " ", "0", "-7", "+7", "07", "7; rm -rf /", "7 8", "#7", "7.0", "7e1", "0x7", "٧", "2147483648", "99999999999999999999", "7\n8", strings.Repeat("9", 1000)} {
		if n, err := ParseIssue(text); err == nil || n != 0 || len(err.Error()) > 200 || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	for _, text := range []string{`{"issue":{"number":7,"labels":[{"name":"a"}]},"changes":{"added_labels":null}}`, `{"inputs":{"issue":[1]}}`, `{"label":null,"pull_request":0}`} {
		f.Add("issues", text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if e, err := ParseEvent(name, strings.NewReader(text)); err == nil && (e.Issue < 0 || e.Name != name) {
			t.Errorf("%+v", e)
		}
		if n, err := ParseIssue(text); err == nil && n < 1 {
			t.Errorf("issue %d of %q", n, text)
		}
	})
}
