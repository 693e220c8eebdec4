package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"issuesmith/internal/endpoint"
	"issuesmith/internal/tool"
	"issuesmith/internal/transcript"
)

func TestAConversation(t *testing.T) {
	t.Parallel()
	priced := transcript.Usage{Prompt: 100, Cached: 60, Completion: 10, Cost: 0.25, CostKnown: true}
	f := newFixture(
		t,
		reply{text: "I look.", calls: do("read_file", `{"path":"a.txt"}`, "bash", `{"command":"cat a.txt | wc -l"}`).calls, usage: priced},
		reply{calls: do("edit_file", `{"path":"a.txt","edits":[{"old":"two","new":"2"}]}`).calls, usage: priced},
		reply{calls: do("submit", submission).calls, usage: priced},
	)
	r := f.run(Submitted)
	if r.Calls != 3 || r.Usage.Prompt != 300 || r.Usage.Cached != 180 || r.Usage.Completion != 30 || r.Usage.Cost != 0.75 || !r.Usage.CostKnown {
		t.Errorf("%+v", r)
	}
	if r.Submission.Summary != "done" || len(r.Submission.Tests) != 1 || r.Detail != "submitted after 3 model calls" {
		t.Errorf("%+v", r)
	}
	if data, err := os.ReadFile(filepath.Join(f.dir, "a.txt")); err != nil || string(data) != "one\n2\n" {
		t.Errorf("a.txt is %q (%v)", data, err)
	}
	if got := f.answers(); len(got) != 3 || got[0] != "1\tone\n2\ttwo\n" || got[1] != "exit 0\n2\n" || !strings.HasPrefix(got[2], "changed a.txt") {
		t.Errorf("answers %q", got)
	}
	if len(f.events) != 3 || f.events[0].Doing != "bash: cat a.txt | wc -l" || f.events[2].Step != 3 || f.events[1].Usage.Cost != 0.5 {
		t.Errorf("progress %+v", f.events)
	}
	var kinds []string
	events, _ := f.transcript()
	for _, e := range events {
		kinds = append(kinds, fmt.Sprintf("%s%d", e.Kind, e.Step))
		if e.Attempt != 2 {
			t.Errorf("attempt %d recorded", e.Attempt)
		}
	}
	if got := strings.Join(kinds, " "); got != "prompt0 model1 call1 result1 call1 result1 model2 call2 result2 model3 call3 result3" {
		t.Errorf("recorded %s", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	dollar := func(path string) reply {
		r := look(path)
		r.usage = transcript.Usage{Cost: 1, CostKnown: true}
		return r
	}
	soon := func() time.Time { return time.Now().Add(300 * time.Millisecond) }
	for name, c := range map[string]struct {
		limits  func() Limits
		replies []reply
		reason  Reason
		calls   int
		detail  string
	}{
		"steps":            {func() Limits { return Limits{Steps: 2} }, []reply{look("1"), look("2"), look("3")}, StepLimit, 2, "2 of 2 model calls used"},
		"cost":             {func() Limits { return Limits{Cost: 1.5} }, []reply{dollar("1"), dollar("2"), dollar("3")}, CostLimit, 2, "2.0000 of 1.5000 USD"},
		"time is over":     {func() Limits { return Limits{Deadline: time.Now().Add(-1)} }, nil, TimeLimit, 0, "agent-timeout reached"},
		"while it asks":    {func() Limits { return Limits{Deadline: soon(), DeadlineIs: "agent-timeout"} }, []reply{look("1"), {wait: true}}, TimeLimit, 1, "agent-timeout reached after 1"},
		"while it acts":    {func() Limits { return Limits{Deadline: soon(), DeadlineIs: "run-timeout"} }, []reply{bash("sleep 60")}, RunLimit, 1, "run-timeout reached"},
		"cost not known":   {func() Limits { return Limits{Cost: 1, Steps: 1} }, []reply{look("1")}, StepLimit, 1, "1 of 1 model calls used; the cost of 1 model calls is not known"},
		"no limits at all": {func() Limits { return Limits{} }, []reply{look("1"), do("submit", submission)}, Submitted, 2, "submitted after 2 model calls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, c.replies...)
			f.options.Limits = c.limits()
			r := f.run(c.reason)
			if r.Calls != c.calls || !strings.Contains(r.Detail, c.detail) {
				t.Errorf("%+v", r)
			}
			if r.Elapsed > 20*time.Second {
				t.Errorf("took %s", r.Elapsed)
			}
			events, _ := f.transcript()
			open := 0
			for _, e := range events {
				switch e.Kind {
				case transcript.KindCall:
					open++
				case transcript.KindResult:
					open--
				}
			}
			if open != 0 {
				t.Errorf("%d calls have no recorded result", open)
			}
		})
	}
}

func TestCancelIsAnError(t *testing.T) {
	t.Parallel()
	for name, replies := range map[string][]reply{"asking": {look("1"), {wait: true}}, "acting": {look("1"), bash("sleep 60")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, replies...)
			f.options.Limits.Deadline = time.Now().Add(time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			f.options.Progress = func(Progress) { time.AfterFunc(200*time.Millisecond, cancel) }
			r, err := Run(ctx, f.options)
			if !errors.Is(err, context.Canceled) || r == nil || r.Calls < 1 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func TestTurnsWithoutAValidCall(t *testing.T) {
	t.Parallel()
	text, unknown, malformed := reply{text: "I think.", finish: "stop"}, do("rm", `{}`), do("bash", `{"cmd":"ls"`)
	f := newFixture(t, text, unknown, malformed)
	f.run(NoCall)
	if got := f.answers(); len(got) != 2 || !strings.Contains(got[0], "no tool call") || !strings.Contains(got[1], `no tool "rm"`) {
		t.Errorf("answers %q", got)
	}
	// A valid call in between begins the count anew, also one whose command fails.
	f = newFixture(t, text, unknown, bash("exit 1"), malformed, text, reply{text: "", finish: "length"}, bash("never run"))
	if r := f.run(NoCall); r.Calls != 6 {
		t.Errorf("%+v", r)
	}
	// A valid call beside a malformed one counts.
	mixed := do("bash", `{"cmd"`, "read_file", `{"path":"a.txt"}`, "bash", `[]`)
	f = newFixture(t, mixed, mixed, mixed, mixed, do("submit", submission))
	f.run(Submitted)
}

func TestNoProgress(t *testing.T) {
	t.Parallel()
	same := look("missing.txt")
	other := func(i int) reply { return look(fmt.Sprintf("missing%d.txt", i)) }
	edit := func(i int) reply {
		return do("edit_file", fmt.Sprintf(`{"path":"a.txt","edits":[{"old":"one%s","new":"one%s"}]}`, strings.Repeat("x", i), strings.Repeat("x", i+1)))
	}
	flood := bash("seq 1 9000")
	for name, c := range map[string]struct {
		replies []reply
		reason  Reason
	}{
		"five in a row":          {[]reply{same, same, same, same, same, same}, NoProgress},
		"five in nine":           {[]reply{same, other(1), same, other(2), same, other(3), same, other(4), same, same}, NoProgress},
		"five in ten":            {[]reply{same, other(1), same, other(2), same, other(3), same, other(4), other(5), same, same}, NoProgress},
		"five in eleven":         {[]reply{same, other(1), same, other(2), same, other(3), same, other(4), other(5), other(6), same, do("submit", submission)}, Submitted},
		"four":                   {[]reply{same, same, same, same, do("submit", submission)}, Submitted},
		"another result":         {[]reply{bash("date +%N"), bash("date +%N"), bash("date +%N"), bash("date +%N"), bash("date +%N"), do("submit", submission)}, Submitted},
		"an edit between":        {[]reply{same, edit(0), same, edit(1), same, edit(2), same, edit(3), same, do("submit", submission)}, Submitted},
		"a failing edit between": {[]reply{same, edit(7), same, edit(8), same, edit(9), same, edit(7), same, do("submit", submission)}, NoProgress},
		"kept outputs":           {[]reply{flood, flood, flood, flood, flood, do("submit", submission)}, NoProgress},
		"within one turn": {[]reply{do("read_file", `{"path":"a.txt"}`, "read_file", `{"path":"a.txt"}`, "read_file", `{"path":"a.txt"}`,
			"read_file", `{"path":"a.txt"}`, "read_file", `{"path":"a.txt"}`)}, NoProgress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newFixture(t, c.replies...).run(c.reason)
		})
	}
}

func TestCallsOfATurnRunInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, do("bash", `{"command":"echo 1 >> log"}`, "bash", `{"command":"echo 2 >> log; cat log"}`, "submit", submission, "bash", `{"command":"echo 3 >> log"}`, "submit", `{"summary":"other","tests_run":[]}`))
	if r := f.run(Submitted); r.Submission.Summary != "done" {
		t.Errorf("%+v", r)
	}
	if data, err := os.ReadFile(filepath.Join(f.dir, "log")); err != nil || string(data) != "1\n2\n" {
		t.Errorf("the log is %q (%v)", data, err)
	}
	_, record := f.transcript()
	if n := strings.Count(record, "not run: submit came before it"); n != 2 {
		t.Errorf("%d calls answered as not run", n)
	}

	many := reply{}
	for i := range 100 {
		many.calls = append(many.calls, look(fmt.Sprintf("missing%d.txt", i)).calls...)
	}
	f = newFixture(t, many, do("submit", submission))
	f.run(Submitted)
	if got := f.answers(); len(got) != 100 || !strings.Contains(got[maxCalls], "not run") || strings.Contains(got[maxCalls-1], "not run") {
		t.Errorf("%d answers", len(got))
	}
}

func TestARefusedSubmitDoesNotEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, do("submit", `{"tests_run":[]}`), do("submit", submission))
	if r := f.run(Submitted); r.Calls != 2 {
		t.Errorf("%+v", r)
	}
}

func TestEndpointFailure(t *testing.T) {
	t.Parallel()
	failure := &endpoint.Error{Kind: endpoint.RateLimit, Status: 429, Message: "slow down", Model: "script/test"}
	f := newFixture(t, bash("echo 1"), reply{err: failure})
	r := f.run(Endpoint)
	if !errors.Is(r.Err, failure) || r.Calls != 1 {
		t.Errorf("%+v", r)
	}
	events, record := f.transcript()
	if last := events[len(events)-1]; last.Kind != transcript.KindModel || last.Step != 2 || !strings.Contains(record, `"error_kind":"rate_limit"`) {
		t.Errorf("the last event is %s of step %d", last.Kind, last.Step)
	}
}

func TestAFullDiskIsAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, bash("echo 1"))
	must(t, f.options.Transcript.Close())
	if _, err := Run(t.Context(), f.options); err == nil || !strings.Contains(err.Error(), "transcript") {
		t.Errorf("error %v", err)
	}
}

func TestBudgetIsToldInPassing(t *testing.T) {
	t.Parallel()
	var replies []reply
	for i := range 9 {
		replies = append(replies, do("read_file", fmt.Sprintf(`{"path":"f%d"}`, i), "search", fmt.Sprintf(`{"pattern":"f%d"}`, i)))
	}
	replies[4] = reply{text: "No call.", finish: "stop"}
	f := newFixture(t, append(replies, do("submit", submission))...)
	f.options.Limits.Steps = 10
	f.run(Submitted)
	told := map[int]string{}
	for i, a := range f.answers() {
		if _, note, ok := strings.Cut(a, "[Budget: "); ok {
			told[i] = note
		}
	}
	// Answers 0–7 are of four turns with two calls, 8 is of the turn without, then two a turn again.
	if len(told) != 3 || !strings.HasPrefix(told[8], "5 of 10") || !strings.HasPrefix(told[14], "2 of 10") || !strings.HasPrefix(told[16], "1 model call is left. Call submit now.") {
		t.Errorf("told %v", told)
	}
}

func TestHostileTurnsStayHarmless(t *testing.T) {
	t.Parallel()
	huge := `{"path":"b.txt","content":"` + strings.Repeat("x", tool.MaxArguments) + `"}`
	f := newFixture(
		t,
		do("write_file", huge, "bash", `{"command":"echo ok"}`),
		reply{text: "the key is " + canary + "\x00\xff", calls: do("bash", `{"command":"echo `+canary+`"}`, "bad name!\n", `{"a":`, "bash", `{"command":"echo 2"}`).calls},
		reply{text: " ", finish: "stop"},
		do("submit", submission),
	)
	f.run(Submitted)
	size := 0
	for i, m := range f.script.last {
		size += len(m.Content)
		if strings.Contains(m.Content, canary) || strings.Contains(m.Content, "\x00") || !utf8.ValidString(m.Content) {
			t.Errorf("message %d: %.200q", i, m.Content)
		}
		if m.Role == endpoint.Assistant && strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
			t.Errorf("message %d is an empty answer", i)
		}
		for _, c := range m.Calls {
			size += len(c.Arguments)
			if strings.Contains(c.Arguments, canary) || !toolName.MatchString(c.Name) || !strings.HasPrefix(c.Arguments, "{") || !strings.HasSuffix(c.Arguments, "}") {
				t.Errorf("message %d: call %s %.100s", i, c.Name, c.Arguments)
			}
		}
	}
	if size > 20_000 {
		t.Errorf("the history is %d bytes long", size)
	}
	if _, record := f.transcript(); strings.Contains(record, canary) {
		t.Error("the transcript holds the canary")
	}
	if _, err := os.Stat(filepath.Join(f.dir, "b.txt")); err == nil {
		t.Error("arguments that are too long made a file")
	}
}

func TestTheSetIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	a, b := Tools(tool.NewSet(tool.Bench{}).Definitions()), Tools(tool.NewSet(tool.Bench{}).Definitions())
	if fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 6 || a[0].Name != "bash" || len(a[0].Schema) == 0 {
		t.Errorf("%v", a)
	}
}
