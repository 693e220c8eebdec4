package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	cases := map[string]struct {
		events string
		want   count
		holds  []string
	}{
		"passes and failures": {
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"why it failed\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.5}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
`, count{Passed: 1, Failed: 1, Skipped: 1}, []string{"why it failed", "FAIL p TestA"},
		},
		"a panic cuts a test off": {
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}
{"Action":"fail","Package":"p"}
`, count{Failed: 1}, []string{"panic: oh", "did not end"},
		},
		"a package that does not build": {
			`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1:1: undefined\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`, count{Failed: 1}, []string{"undefined"},
		},
		"words of the go command": {"go: cannot find module\n", count{}, []string{"cannot find module"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tally := newTally(&out, false)
			if err := tally.read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			if tally.count != c.want {
				t.Errorf("%+v, want %+v", tally.count, c.want)
			}
			for _, h := range c.holds {
				if !strings.Contains(out.String(), h) {
					t.Errorf("%q is missing:\n%s", h, out.String())
				}
			}
			if strings.Contains(out.String(), "quiet") {
				t.Error("output of a test that passed was shown")
			}
		})
	}
}

func TestSum(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	var out bytes.Buffer
	if err := printSum(&out, file, false); err != nil || out.String() != "0 passed, 1 failed\n" {
		t.Errorf("nothing ran: %q %v", out.String(), err)
	}
	for _, err := range []error{count{Passed: 3}.add(file, "a"), count{Passed: 2, Failed: 1, Skipped: 1}.add(file, "b"), addCheck(file, "lint", "0"), addCheck(file, "vuln", "3")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	out.Reset()
	if err := printSum(&out, file, false); err != nil || out.String() != "6 passed, 2 failed, 1 skipped\n" {
		t.Errorf("%q %v", out.String(), err)
	}
	out.Reset()
	if err := printSum(&out, file, true); err == nil || out.String() != "6 passed, 3 failed\n" {
		t.Errorf("with a skipped one: %q %v", out.String(), err)
	}
}
