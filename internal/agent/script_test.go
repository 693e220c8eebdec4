package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"

	"issuesmith/internal/endpoint"
	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/tool"
	"issuesmith/internal/transcript"
	"issuesmith/internal/worktree"
)

// canary is a known secret of the tests' runs.
const canary = "canary-4f7c19d2e8"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A reply is one scripted turn: what the model says, or what goes wrong.
type reply struct {
	text   string
	calls  []transcript.Call
	usage  transcript.Usage
	finish string
	err    error
	wait   bool // until the request is cancelled
}

// A script is a Client that gives its replies in order, and an error once they are used up. It holds that history is
// only ever appended to.
type script struct {
	t       testing.TB
	replies []reply
	asked   int
	last    []endpoint.Message
	tools   []endpoint.Tool
}

func (s *script) Complete(ctx context.Context, messages []endpoint.Message, tools []endpoint.Tool) (*endpoint.Turn, error) {
	if len(messages) < len(s.last) || len(s.last) > 0 && !reflect.DeepEqual(s.last, messages[:len(s.last)]) {
		s.t.Errorf("request %d: the history is not the one before with something added", s.asked+1)
	}
	if s.asked > 0 && !reflect.DeepEqual(s.tools, tools) {
		s.t.Errorf("request %d: other tools than before", s.asked+1)
	}
	answered := make(map[string]bool)
	for _, m := range messages {
		answered[m.CallID] = true
	}
	for _, m := range messages {
		for _, c := range m.Calls {
			if !answered[c.ID] {
				s.t.Errorf("request %d: call %s has no answer", s.asked+1, c.ID)
			}
		}
	}
	s.last, s.tools = append([]endpoint.Message{}, messages...), tools
	if s.asked >= len(s.replies) {
		return nil, &endpoint.Error{Kind: endpoint.Protocol, Message: fmt.Sprintf("the script has only %d replies", len(s.replies))}
	}
	r := s.replies[s.asked]
	s.asked++
	if r.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	if r.finish == "" {
		r.finish = "tool_calls"
	}
	m := endpoint.Message{Role: endpoint.Assistant, Content: r.text}
	for i, c := range r.calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("c%d-%d", s.asked, i+1)
		}
		m.Calls = append(m.Calls, c)
	}
	return &endpoint.Turn{Message: m, Finish: r.finish, Usage: r.usage, Model: "scripted", RequestID: fmt.Sprintf("r%d", s.asked)}, nil
}

func (s *script) Request([]endpoint.Message, []endpoint.Tool) ([]byte, error) {
	s.t.Error("Request is not for Run")
	return nil, nil
}
func (s *script) Name() string               { return "script/test" }
func (s *script) Window(context.Context) int { return 0 }

// do is a turn with calls: name, arguments, name, arguments, …
func do(pairs ...string) reply {
	var r reply
	for i := 0; i < len(pairs); i += 2 {
		r.calls = append(r.calls, transcript.Call{Name: pairs[i], Arguments: pairs[i+1]})
	}
	return r
}

// fields is JSON of names and values.
func fields(pairs ...string) string {
	m := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func bash(command string) reply { return do("bash", fields("command", command)) }

// look is a turn that costs no process; each path gives its own answer.
func look(path string) reply { return do("read_file", fields("path", path)) }

const submission = `{"summary":"done","tests_run":["go test: ok"]}`

// A fixture is one conversation: real tools over a real worktree, a real transcript, a scripted model.
type fixture struct {
	t       testing.TB
	script  *script
	options Options
	dir     string
	record  string
	events  []Progress
}

func newFixture(t testing.TB, replies ...reply) *fixture {
	t.Helper()
	f := &fixture{t: t, script: &script{t: t, replies: replies}}
	base, err := os.MkdirTemp("", "agent-test-")
	must(t, err)
	must(t, os.Chmod(base, 0o755)) // #nosec G302 -- the commands' user has to get in
	owner := sandbox.DropOwner()
	repo := filepath.Join(base, "repo")
	commit(t, repo, "a.txt", "one\ntwo\n")
	r, err := worktree.Open(repo)
	must(t, err)
	head, err := r.Head()
	must(t, err)
	tree, err := r.Checkout(t.Context(), head.Commit, filepath.Join(base, "tree"), worktree.Options{UID: owner.UID, GID: owner.GID, Chown: owner.Drop})
	must(t, err)
	box, err := sandbox.New(sandbox.Options{Dir: tree.Dir(), Home: filepath.Join(base, "home"), Tmp: filepath.Join(base, "tmp"), Path: os.Getenv("PATH")})
	must(t, err)
	secrets := redact.New(canary)
	f.dir, f.record = tree.Dir(), filepath.Join(base, "transcript.jsonl")
	record, err := transcript.Create(f.record, secrets)
	must(t, err)
	f.options = Options{
		Client: f.script,
		Tools: tool.NewSet(tool.Bench{
			Tree: tree, Sandbox: box, Outputs: filepath.Join(base, "outputs"), Timeout: 30 * time.Second, Redact: secrets,
		}),
		Brief:      Brief{Number: 7, Title: "A title", Body: "A body"},
		Attempt:    2,
		Transcript: record,
		Progress:   func(p Progress) { f.events = append(f.events, p) },
	}
	t.Cleanup(func() {
		_ = record.Close() // one test breaks it
		must(t, box.Close())
		must(t, tree.Close())
		must(t, os.RemoveAll(base))
	})
	return f
}

func commit(t testing.TB, dir, name, content string) {
	t.Helper()
	repo, err := git.PlainInit(dir, false)
	must(t, err)
	w, err := repo.Worktree()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	_, err = w.Add(name)
	must(t, err)
	_, err = w.Commit("base", &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@example.org", When: time.Unix(1, 0)}})
	must(t, err)
}

// run holds the conversation, which must end without an error, for the given reason.
func (f *fixture) run(want Reason) *Result {
	f.t.Helper()
	r, err := Run(f.t.Context(), f.options)
	if err != nil {
		f.t.Fatal(err)
	}
	if r.Reason != want || r.Detail == "" {
		f.t.Fatalf("ended by %q (%s), want %q", r.Reason, r.Detail, want)
	}
	return r
}

// answers are the texts that the model got after its turns, in the last request's history.
func (f *fixture) answers() []string {
	var list []string
	for _, m := range f.script.last[2:] {
		if m.Role != endpoint.Assistant {
			list = append(list, m.Content)
		}
	}
	return list
}

// transcript returns the recorded events.
func (f *fixture) transcript() (events []transcript.Event, text string) {
	f.t.Helper()
	data, err := os.ReadFile(f.record)
	must(f.t, err)
	for e, err := range transcript.Read(strings.NewReader(string(data))) {
		must(f.t, err)
		events = append(events, e)
	}
	return events, string(data)
}
