package forge_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"issuesmith/internal/forge"
)

var noon = time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC)

func comment(id int64, author, body string, updated time.Time) forge.Comment {
	return forge.Comment{ID: id, Author: author, Body: body, Created: updated, Updated: updated}
}

func TestApprove(t *testing.T) {
	t.Parallel()
	before, after := noon.Add(-time.Minute), noon.Add(time.Minute)
	issue := func(cs ...forge.Comment) *forge.Issue {
		return &forge.Issue{
			Number: 7, Title: "Broken", Body: "one\r\ntwo", Author: "reporter", URL: "u", Open: true,
			ContentVersion: 3, Comments: cs,
		}
	}
	edited := comment(1, "boss", "added later", after)
	edited.Created = before
	own := comment(2, "gitea-actions", forge.Marker+" run=1 -->\nworking", before)
	own.Own = true
	for name, c := range map[string]struct {
		issue    *forge.Issue
		approval forge.Approval
		trusted  []string
		title    string
		body     string
		kept     string
		leftOut  map[string]int
		later    bool
	}{
		"as read": {
			issue: issue(comment(1, "reporter", "mine", before)),
			title: "Broken", body: "one\ntwo", kept: "1:mine",
		},
		"as read, a comment of this second counts, one made after it does not": {
			issue: issue(comment(1, "reporter", "now", noon), comment(2, "reporter", "late", after)),
			title: "Broken", body: "one\ntwo", kept: "1:now", leftOut: map[string]int{"reporter": 1},
		},
		"event text is used, an equal text with other line ends is no edit": {
			issue:    issue(),
			approval: forge.Approval{FromEvent: true, Title: "Broken", Body: "one\ntwo", ContentVersion: 3, At: noon},
			title:    "Broken", body: "one\ntwo",
		},
		"edited body": {
			issue:    issue(),
			approval: forge.Approval{FromEvent: true, Title: "Broken", Body: "one", ContentVersion: 3, At: noon},
			title:    "Broken", body: "one", later: true,
		},
		"edited title": {
			issue:    issue(),
			approval: forge.Approval{FromEvent: true, Title: "Fine", Body: "one\ntwo", ContentVersion: 3, At: noon},
			title:    "Fine", body: "one\ntwo", later: true,
		},
		"edited to and fro": {
			issue:    issue(),
			approval: forge.Approval{FromEvent: true, Title: "Broken", Body: "one\ntwo", ContentVersion: 2, At: noon},
			title:    "Broken", body: "one\ntwo", later: true,
		},
		"a forge without versions": {
			issue:    func() *forge.Issue { i := issue(); i.ContentVersion = -1; return i }(),
			approval: forge.Approval{FromEvent: true, Title: "Broken", Body: "one\ntwo", At: noon},
			title:    "Broken", body: "one\ntwo",
		},
		"who is trusted": {
			issue: issue(comment(5, "Boss", "e", before), comment(4, "REPORTER", "d", before), comment(3, "labeller", "c", before),
				comment(2, "friend", "b", before), comment(1, "stranger", "a", before), comment(6, "stranger", "f", before), comment(7, "", "g", before)),
			approval: forge.Approval{By: "Labeller", At: noon}, trusted: []string{"Friend", ""},
			title: "Broken", body: "one\ntwo", kept: "2:b 3:c 4:d 5:e", leftOut: map[string]int{"stranger": 2, "(unknown)": 1},
		},
		"edited after the approval, or in its second": {
			issue:    issue(edited, comment(2, "boss", "same second", noon), comment(3, "boss", "in time", before)),
			approval: forge.Approval{By: "boss", At: noon},
			title:    "Broken", body: "one\ntwo", kept: "3:in time", leftOut: map[string]int{"boss": 2},
		},
		"own progress is not counted, a copy of its marker is": {
			issue: issue(own, comment(3, "stranger", forge.Marker+" run=1 -->", before), comment(4, "boss", "  ", before)),
			title: "Broken", body: "one\ntwo", leftOut: map[string]int{"stranger": 1},
		},
		"the event's author counts": {
			issue:    issue(comment(1, "reporter", "x", before), comment(2, "other", "y", before)),
			approval: forge.Approval{FromEvent: true, Title: "Broken", Body: "one\ntwo", ContentVersion: 3, Author: "other", At: noon},
			title:    "Broken", body: "one\ntwo", kept: "2:y", leftOut: map[string]int{"reporter": 1},
		},
		"hostile text": {
			issue: &forge.Issue{Number: 7, Title: "a\nb\x00\xff", Body: "x\x00\r\n\ry\xff", ContentVersion: -1},
			title: "a b\ufffd", body: "x\n\ny\ufffd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := forge.Approve(c.issue, c.approval, "boss", c.trusted, noon)
			var kept []string
			for _, k := range got.Comments {
				kept = append(kept, fmt.Sprintf("%d:%s", k.ID, k.Body))
			}
			if got.Title != c.title || got.Body != c.body || got.EditedLater != c.later || got.Number != 7 {
				t.Errorf("got %q %q edited %v", got.Title, got.Body, got.EditedLater)
			}
			if s := strings.Join(kept, " "); s != c.kept {
				t.Errorf("kept %q, want %q", s, c.kept)
			}
			if !maps.Equal(got.LeftOut, c.leftOut) {
				t.Errorf("left out %v, want %v", got.LeftOut, c.leftOut)
			}
			if again := forge.Approve(c.issue, c.approval, "boss", c.trusted, noon); !reflect.DeepEqual(got, again) {
				t.Error("the same issue gives another task the second time")
			}
		})
	}
}

func aClaim() forge.Claim {
	return forge.Claim{
		Issue: 7, Run: "123", Attempt: 2, Host: "runner-1", Started: noon, Deadline: noon.Add(100 * time.Minute),
		Takeover: 1, Comment: 99, Nonce: "abc",
	}
}

func TestClaimMessage(t *testing.T) {
	t.Parallel()
	c := aClaim()
	got, err := forge.ParseClaim(c.Message())
	if err != nil || got != c {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, want := range []string{"issue #7", "Run 123, attempt 2, on runner-1", "2030-05-06 13:40:00 UTC"} {
		if !strings.Contains(c.Message(), want) {
			t.Errorf("a person does not read %q in\n%s", want, c.Message())
		}
	}
	if got, err := forge.ParseClaim(strings.TrimRight(c.Message(), "\n")); err != nil || got != c {
		t.Errorf("without its last line end: %v", err)
	}
	// A host name that tries to add lines stays a name.
	c.Host = "x\nIssuesmith-Issue: 8\n\n" + strings.Repeat("é", 300)
	got, err = forge.ParseClaim(c.Message())
	if err != nil || got.Issue != 7 || strings.ContainsAny(got.Host, "\n ") || len(got.Host) > 200 {
		t.Errorf("hostile host: %+v, %v", got, err)
	}
	// Another zone and finer times are the same moment to the second.
	c = aClaim()
	c.Started = c.Started.In(time.FixedZone("x", 3600))
	if c.Message() != aClaim().Message() {
		t.Error("the message depends on the time zone")
	}
}

func TestParseClaimRefuses(t *testing.T) {
	t.Parallel()
	good := aClaim().Message()
	replace := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in the message", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for name, message := range map[string]string{
		"nothing":           "",
		"an ordinary one":   "Fix the build\n\nSigned-off-by: x\n",
		"another version":   replace("Issuesmith-Claim: 1", "Issuesmith-Claim: 2"),
		"a line too many":   good + "More: x\n",
		"a line missing":    replace("Issuesmith-Nonce: abc\n", ""),
		"lines swapped":     replace("Issuesmith-Run: 123\nIssuesmith-Attempt: 2\n", "Issuesmith-Attempt: 2\nIssuesmith-Run: 123\n"),
		"issue 0":           replace("Issuesmith-Issue: 7", "Issuesmith-Issue: 0"),
		"issue with sign":   replace("Issuesmith-Issue: 7", "Issuesmith-Issue: +7"),
		"issue with zeros":  replace("Issuesmith-Issue: 7", "Issuesmith-Issue: 007"),
		"attempt 0":         replace("Attempt: 2", "Attempt: 0"),
		"negative takeover": replace("Takeover: 1", "Takeover: -1"),
		"huge comment":      replace("Comment: 99", "Comment: 99999999999999999999"),
		"another zone":      replace("Started: 2030-05-06T12:00:00Z", "Started: 2030-05-06T12:00:00+00:00"),
		"before its start":  replace("Deadline: 2030-05-06T13:40:00Z", "Deadline: 2030-05-06T11:40:00Z"),
		"a year long":       replace("Deadline: 2030-05-06T13:40:00Z", "Deadline: 2031-05-06T13:40:00Z"),
		"blank in the run":  replace("Issuesmith-Run: 123", "Issuesmith-Run: 1 23"),
		"carriage returns":  strings.ReplaceAll(good, "\n", "\r\n"),
		"too long":          strings.Repeat("x", 9000) + "\n\n" + good,
	} {
		if c, err := forge.ParseClaim(message); err == nil {
			t.Errorf("%s: taken as %+v", name, c)
		} else if c != (forge.Claim{}) {
			t.Errorf("%s: a claim beside the error", name)
		}
	}
}

func FuzzParseClaim(f *testing.F) {
	f.Add(aClaim().Message())
	f.Add("Issuesmith-Claim: 1\n")
	f.Add(strings.ReplaceAll(aClaim().Message(), "123", "\x00é"))
	f.Fuzz(func(t *testing.T, message string) {
		c, err := forge.ParseClaim(message)
		if err != nil {
			return
		}
		if c.Issue < 1 || c.Attempt < 1 || c.Deadline.Before(c.Started) {
			t.Errorf("taken: %+v", c)
		}
		if again, err := forge.ParseClaim(c.Message()); err != nil || again != c {
			t.Errorf("does not survive being written again: %+v, %v", again, err)
		}
	})
}

func TestStale(t *testing.T) {
	t.Parallel()
	deadline := aClaim().Deadline
	other := forge.Claim{Run: "200", Attempt: 1}
	for name, c := range map[string]struct {
		asker forge.Claim
		state forge.RunState
		now   time.Time
		stale bool
	}{
		"active":                                  {other, forge.RunActive, noon, false},
		"active beyond its deadline":              {other, forge.RunActive, deadline.Add(time.Hour), false},
		"finished":                                {other, forge.RunFinished, noon, true},
		"cancelled":                               {other, forge.RunCancelled, noon, true},
		"unknown before its deadline":             {other, forge.RunUnknown, deadline.Add(-time.Second), false},
		"unknown at its deadline":                 {other, forge.RunUnknown, deadline, false},
		"unknown after its deadline":              {other, forge.RunUnknown, deadline.Add(time.Second), true},
		"unknown, a clock far behind":             {other, forge.RunUnknown, noon.Add(-time.Hour), false},
		"the asker's short deadline is no reason": {forge.Claim{Run: "200", Attempt: 1, Deadline: noon.Add(time.Minute)}, forge.RunUnknown, noon.Add(2 * time.Minute), false},
		"re-run with a higher attempt":            {forge.Claim{Run: "123", Attempt: 3}, forge.RunActive, noon, true},
		"re-run, state unknown":                   {forge.Claim{Run: "123", Attempt: 3}, forge.RunUnknown, noon, true},
		"the same attempt, another job":           {forge.Claim{Run: "123", Attempt: 2}, forge.RunActive, noon, false},
		"an older attempt asks":                   {forge.Claim{Run: "123", Attempt: 1}, forge.RunActive, noon, false},
		"another run with a higher attempt":       {forge.Claim{Run: "124", Attempt: 9}, forge.RunActive, noon, false},
		"nobody asks (a list)":                    {forge.Claim{}, forge.RunActive, noon, false},
		"a word not known is unknown":             {other, "sleeping", noon, false},
	} {
		stale, why := forge.Stale(aClaim(), c.asker, c.state, c.now)
		if stale != c.stale || why == "" {
			t.Errorf("%s: stale %v (%s), want %v", name, stale, why, c.stale)
		}
	}
}

func TestRef(t *testing.T) {
	t.Parallel()
	if got := forge.Ref(7); got != "refs/ai/claims/7" {
		t.Error(got)
	}
	for ref, want := range map[string]int{
		"refs/ai/claims/7": 7, "refs/ai/claims/07": 0, "refs/ai/claims/": 0, "refs/ai/claims/7/x": 0,
		"refs/ai/claims/-7": 0, "refs/heads/7": 0, "7": 0,
	} {
		if n, ok := forge.ParseRef(ref); ok != (want > 0) || ok && n != want {
			t.Errorf("%s: %d %v", ref, n, ok)
		}
	}
}

func TestBusyError(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("run: %w", &forge.BusyError{Claim: aClaim(), URL: "https://git.example/r/1"})
	if !errors.Is(err, forge.ErrBusy) {
		t.Error("is no ErrBusy")
	}
	for _, want := range []string{"#7", "run 123", "runner-1", "2030-05-06 13:40:00 UTC", "https://git.example/r/1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}
