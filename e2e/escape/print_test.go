package escape

import (
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	table := NewTable("a", "b")
	table.Add(2, "works in one place", "a", Outcome{Refused, "EPERM"})
	table.Add(2, "works in one place", "b", Outcome{ByPlace, "EPERM"})
	table.Add(1, "works nowhere", "a", Outcome{ByPlace, "ENOSYS"})
	table.Add(1, "works nowhere", "b", Outcome{ByPlace, "ENOSYS"})
	table.Add(3, "got out", "a", Outcome{Escaped, "the output holds a secret"})
	bad, notRun := table.Settle()
	if len(bad) != 1 || !strings.HasPrefix(bad[0], "3 got out, a: ESCAPED") {
		t.Errorf("bad: %q", bad)
	}
	if !slices.Equal(notRun, []string{"3 got out, b"}) {
		t.Errorf("not run: %q", notRun)
	}
	var words []string
	for _, l := range table.lines {
		words = append(words, l.outcomes["b"].Word)
	}
	if !slices.Equal(words, []string{Untested, ByPlace, ""}) {
		t.Errorf("outcomes: %q", words)
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	before := map[string]string{"same": "1", "changed": "1", "gone": "1"}
	got := differences(before, map[string]string{"same": "1", "changed": "2", "new": "1"})
	slices.Sort(got)
	if want := []string{"changed changed: 1 → 2", "gone is gone", "new is new"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestVerdict: what the world outside saw counts more than what an attempt says of itself.
func TestVerdict(t *testing.T) {
	t.Parallel()
	open := []string{"chmod of files outside"}
	for name, c := range map[string]struct {
		attempt Attempt
		trial   trial
		want    string
	}{
		"refused":                    {Attempt{}, trial{word: "refused"}, Refused},
		"done, without effect":       {Attempt{}, trial{word: "done"}, Refused},
		"says it got out":            {Attempt{}, trial{word: "escaped"}, Escaped},
		"refused, but seen outside":  {Attempt{}, trial{word: "refused", evidence: []string{"a file"}}, Escaped},
		"got out, reported":          {Attempt{Open: "chmod"}, trial{word: "escaped"}, Reported},
		"got out, something else is": {Attempt{Open: "utime"}, trial{word: "escaped"}, Escaped},
		"did not run":                {Attempt{}, trial{}, Failed},
		"killed with its executor":   {Attempt{Killed: true}, trial{ran: ran{exit: 137}}, Refused},
		"killed by its limit":        {Attempt{Limit: "cpu-limit"}, trial{ran: ran{output: "stopped by cpu-limit"}}, Refused},
		"killed, limit not named":    {Attempt{Limit: "cpu-limit"}, trial{}, Failed},
		"nothing to try":             {Attempt{}, trial{word: "untested"}, Untested},
	} {
		if got := (&Scene{}).verdict(&c.attempt, &c.trial, open); got.Word != c.want {
			t.Errorf("%s: %q, want %q", name, got.Word, c.want)
		}
	}
}
