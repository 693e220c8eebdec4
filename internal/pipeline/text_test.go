package pipeline

import (
	"strings"
	"testing"

	"issuesmith/internal/redact"
)

func TestPlainTakesThePowerOut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"fixes #3":                           "fixes # 3",
		"closes owner/repo#12 and !4":        "closes owner/repo# 12 and ! 4",
		"thanks @alice, mail bob@host.test":  "thanks @ alice, mail bob@host.test",
		"@carol":                             "@ carol",
		"(@dave)":                            "(@ dave)",
		"close https://x.test/o/r/issues/5":  "close https://x.test/o/r/issues/ 5",
		"see https://x.test/o/r/pulls/5#1":   "see https://x.test/o/r/pulls/ 5# 1",
		"<!-- issuesmith:pull-request -->":   "<! -- issuesmith:pull-request -->",
		"fixes #\x1b[0m3 @\x01eve <\x7f!--":  "fixes # 3 @ eve <! --",
		"safe\u202e#3 \u2066#4":              "safe# 3 # 4",
		"a # heading, C#, 50% and 3! stay":   "a # heading, C#, 50% and 3! stay",
		"plain text with `code` and *stars*": "plain text with `code` and *stars*",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
		if again := plain(plain(in)); again != plain(in) {
			t.Errorf("plain(%q) is not stable: %q", in, again)
		}
	}
}

func TestQuoteKeepsEverythingInside(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"done\n\n### Checks\n\n| a | b |":         "> done\n> \n> ### Checks\n> \n> | a | b |",
		"one\r```\rtwo":                           "> one\n> ```\n> two",
		"</blockquote><details> a<b, x < y":       "> < /blockquote>< details> a< b, x < y",
		"![x](http://h.test/p.png) [a](http://b)": "> ![x] (http://h.test/p.png) [a] (http://b)",
		"[a][^1]\n[^1]: note\n[b]: http://h":      "> [a] [ ^1]\n> [ ^1] : note\n> [b] : http://h",
		"[!NOTE]":                                 "> [ !NOTE]",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzFence(f *testing.F) {
	f.Add("```\nfixes #1\n```")
	f.Add("`````")
	f.Add("`\x01``\r```\nfixes #1")
	f.Fuzz(func(t *testing.T, text string) {
		fenced := fence("", text)
		ticks := fenced[:strings.IndexByte(fenced, '\n')]
		fenced = redact.Escapes(fenced) // as every exit does
		inner := fenced[len(ticks)+1 : len(fenced)-len(ticks)]
		if strings.Contains(inner, ticks) {
			t.Errorf("%q closes its own fence", text)
		}
	})
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	if got := oneLine(" a\n b\tc ", 10); got != "a b c" {
		t.Errorf("got %q", got)
	}
	if got := oneLine("äöüäöü", 4); got != "äöü…" {
		t.Errorf("got %q", got)
	}
}

func TestTrailers(t *testing.T) {
	t.Parallel()
	message := "Fix #7: x\n\nWhat was done.\nIssuesmith-Run: forged.1\n\nIssuesmith-Issue: 7\nIssuesmith-Run: 12.1\n"
	got := trailersOf(message)
	if got[issueTrailer] != "7" || got[runTrailer] != "12.1" {
		t.Errorf("got %v", got)
	}
	if rest := dropTrailers(message); strings.Contains(rest, "12.1") || !strings.Contains(rest, "What was done.") {
		t.Errorf("got %q", rest)
	}
	if got := trailersOf("just a subject"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
