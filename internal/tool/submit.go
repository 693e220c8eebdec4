package tool

import (
	"context"
	_ "embed"
	"strings"
)

//go:embed submit.md
var submitText string

const submitSchema = `{"type":"object","properties":{"summary":{"type":"string","description":"cause, change and test in a few sentences, for the reviewer"},"tests_run":{"type":"array","items":{"type":"string"},"description":"test commands you ran, with their outcome"}},"required":["summary","tests_run"],"additionalProperties":false}`

const (
	maxSummary = 4000 // bytes: what a pull request shows
	maxTests   = 50
	maxTest    = 300 // bytes
)

type submitArguments Submission

func (a submitArguments) problem() string {
	if strings.TrimSpace(a.Summary) == "" {
		return `"summary" is missing or empty.`
	}
	return ""
}

func (s *Set) submit(_ context.Context, a submitArguments) (Result, error) {
	sub := Submission{Summary: cutLine(strings.TrimSpace(s.Clean(a.Summary)), maxSummary)}
	for _, t := range a.Tests[:min(len(a.Tests), maxTests)] {
		if t = strings.TrimSpace(s.Clean(t)); t != "" {
			sub.Tests = append(sub.Tests, cutLine(t, maxTest))
		}
	}
	return Result{Text: "submitted", Submit: &sub}, nil
}
