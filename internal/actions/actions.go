// Package actions is the runner's side: the workflow step's variables, the event,
// outputs, log commands and the step summary. Only this package and app know about workflows.
package actions

import (
	"strconv"
	"strings"
)

// A Step is what a workflow step's environment says. Zero outside a step.
type Step struct {
	Active     bool   // GITHUB_ACTIONS=true
	EventName  string // issues, workflow_dispatch, schedule, …
	EventPath  string
	Workspace  string
	Temp       string // RUNNER_TEMP
	RunID      string
	RunAttempt int
	ServerURL  string
	Repository string
	Ref        string // refs/heads/main, refs/pull/7/head
	Actor      string
	RunURL     string // page of the run, "" when unknown
}

// FromEnv reads the step. Only GITHUB_ and RUNNER_ names are looked at: Gitea's runner
// sets them as well, and act knows no others.
func FromEnv(getenv func(string) string) Step {
	if getenv("GITHUB_ACTIONS") != "true" {
		return Step{}
	}
	s := Step{
		Active:     true,
		EventName:  getenv("GITHUB_EVENT_NAME"),
		EventPath:  getenv("GITHUB_EVENT_PATH"),
		Workspace:  getenv("GITHUB_WORKSPACE"),
		Temp:       getenv("RUNNER_TEMP"),
		RunID:      getenv("GITHUB_RUN_ID"),
		ServerURL:  strings.TrimRight(getenv("GITHUB_SERVER_URL"), "/"),
		Repository: getenv("GITHUB_REPOSITORY"),
		Ref:        getenv("GITHUB_REF"),
		Actor:      getenv("GITHUB_ACTOR"),
	}
	if n, err := strconv.Atoi(getenv("GITHUB_RUN_ATTEMPT")); err == nil && n > 0 {
		s.RunAttempt = n
	}
	// act has no page, a run id of 1, and may have a clone URL for the repository.
	if s.ServerURL != "" && s.RunID != "" && strings.Count(s.Repository, "/") == 1 {
		s.RunURL = s.ServerURL + "/" + s.Repository + "/actions/runs/" + s.RunID
	}
	return s
}
