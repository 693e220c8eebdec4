package actions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Event is what matters of the payload.
type Event struct {
	Name           string
	Action         string
	Issue          int // 0 when none
	Title, Body    string
	Author         string
	ContentVersion int
	IsPull         bool
	Added          []string // labels added by this event, all forms
	Labels         []string // labels on the issue as the payload has them; may be empty although there are some
	Sender         string
	Updated        time.Time
	Input          string // workflow_dispatch: input "issue" as it came
}

// payloadLimit is in bytes: GitHub's own limit of a payload.
const payloadLimit = 25 << 20

type (
	labelled struct {
		Name string `json:"name"`
	}
	person struct {
		Login string `json:"login"`
	}
	payload struct {
		Action  string `json:"action"`
		Number  int    `json:"number"`
		Changes struct {
			Added []labelled `json:"added_labels"` // Gitea
		} `json:"changes"`
		Label *labelled `json:"label"` // one an event, as on GitHub
		Issue *struct {
			Number         int             `json:"number"`
			Title          string          `json:"title"`
			Body           string          `json:"body"`
			ContentVersion int             `json:"content_version"`
			Labels         []labelled      `json:"labels"`
			PullRequest    json.RawMessage `json:"pull_request"`
			Updated        string          `json:"updated_at"`
			User           person          `json:"user"`
		} `json:"issue"`
		PullRequest json.RawMessage            `json:"pull_request"`
		Sender      person                     `json:"sender"`
		Inputs      map[string]json.RawMessage `json:"inputs"`
	}
)

// ParseEvent reads a payload; at most 25 MiB.
func ParseEvent(name string, r io.Reader) (*Event, error) { return parseEvent(name, r, payloadLimit) }

func parseEvent(name string, r io.Reader, limit int) (*Event, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("reading the event: %w", err)
	}
	if len(data) > limit {
		return nil, fmt.Errorf("the event is longer than %d bytes", limit)
	}
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("the event %q is not the JSON that was expected: %w", name, err)
	}
	e := &Event{
		Name: name, Action: p.Action, Issue: p.Number, Sender: p.Sender.Login,
		IsPull: present(p.PullRequest) || strings.HasPrefix(name, "pull_request"),
		Input:  input(p.Inputs["issue"]),
	}
	for _, l := range p.Changes.Added {
		e.Added = addName(e.Added, l.Name)
	}
	// An unlabeled event names its label in the same place.
	if p.Label != nil && p.Action != "unlabeled" && p.Action != "label_cleared" {
		e.Added = addName(e.Added, p.Label.Name)
	}
	if p.Issue == nil {
		return e, checkNumber(e)
	}
	e.Issue = p.Issue.Number
	e.Title, e.Body, e.Author = p.Issue.Title, p.Issue.Body, p.Issue.User.Login
	e.ContentVersion = p.Issue.ContentVersion
	e.IsPull = e.IsPull || present(p.Issue.PullRequest)
	for _, l := range p.Issue.Labels {
		e.Labels = addName(e.Labels, l.Name)
	}
	// A time that cannot be read is one that is not known: callers then ask the forge.
	e.Updated, _ = time.Parse(time.RFC3339, p.Issue.Updated)
	return e, checkNumber(e)
}

func checkNumber(e *Event) error {
	if e.Issue < 0 {
		return fmt.Errorf("the event %q names the issue %d, which cannot be", e.Name, e.Issue)
	}
	return nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// input is a dispatch's value: a string on Gitea, elsewhere it may be a number.
func input(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return strings.Trim(string(raw), " \t\r\n")
}

func addName(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// ParseIssue reads the number of an issue that a person gave. A dispatch's inputs
// arrive as they were typed, "7; rm -rf /" included, and forges check none of them.
func ParseIssue(text string) (int, error) {
	wrong := fmt.Errorf("the issue must be given as a positive number like 7, not %s", short(text))
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, errors.New("no issue was given: name its number, like 7")
	}
	if text[0] == '0' || strings.Trim(text, "0123456789") != "" {
		return 0, wrong
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, wrong
	}
	return int(n), nil
}

func short(text string) string {
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return strconv.Quote(text)
}
