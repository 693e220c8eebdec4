// Package tool holds what the model can do: one file a tool, its description beside it.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"issuesmith/internal/redact"
	"issuesmith/internal/sandbox"
	"issuesmith/internal/worktree"
)

// A Bench is what tools work on.
type Bench struct {
	Tree    *worktree.Tree
	Sandbox *sandbox.Sandbox
	Outputs string           // folder outside the worktree that keeps whole outputs
	Timeout time.Duration    // of one bash command
	Redact  *redact.Redactor // known values are taken out of every result
}

// A Result is what the model gets back; Text is bounded.
type Result struct {
	Text   string
	Failed bool        // the call could not be done, or the command failed
	Submit *Submission // set by submit only
	// Kept is the name Text gives to the whole output ("output/7"), "" when nothing was cut. It is
	// new at every call, so whoever compares results has to leave it out.
	Kept string
	// Changed says that the call itself changed a file (edit_file and write_file; what a command did is not known).
	Changed bool
}

// A Submission ends an attempt.
type Submission struct {
	Summary string   `json:"summary"`
	Tests   []string `json:"tests_run"`
}

// A Definition is a tool as the model is told of it.
type Definition struct {
	Name, Description string
	Schema            json.RawMessage
}

// A Set is the tools of a run. Not safe for concurrent use.
type Set struct {
	bench   Bench
	tools   []entry
	outputs int             // number of the newest kept output
	seen    map[string]bool // files the model has read or written, which write_file may replace
}

// An entry is a tool with what it does. An *argumentError from call means that the arguments
// were not what the schema says; any other error ends the run.
type entry struct {
	Definition
	call func(ctx context.Context, arguments string) (Result, error)
}

// NewSet returns the tools bash, read_file, search, edit_file, write_file, submit.
func NewSet(b Bench) *Set {
	s := &Set{bench: b, seen: make(map[string]bool)}
	s.tools = []entry{
		define("bash", bashText, bashSchema, s.bash),
		define("read_file", readFileText, readFileSchema, s.readFile),
		define("search", searchText, searchSchema, s.search),
		define("edit_file", editFileText, editFileSchema, s.editFile),
		define("write_file", writeFileText, writeFileSchema, s.writeFile),
		define("submit", submitText, submitSchema, s.submit),
	}
	return s
}

// define joins a tool's description with a function that takes decoded arguments.
func define[A checked](name, text, schema string, do func(context.Context, A) (Result, error)) entry {
	return entry{
		Definition: Definition{Name: name, Description: strings.TrimSpace(text), Schema: json.RawMessage(schema)},
		call: func(ctx context.Context, arguments string) (Result, error) {
			a, err := decode[A](arguments)
			if err != nil {
				return Result{}, err
			}
			return do(ctx, a)
		},
	}
}

// Definitions lists the tools in a fixed order.
func (s *Set) Definitions() []Definition {
	list := make([]Definition, len(s.tools))
	for i, t := range s.tools {
		list[i] = t.Definition
	}
	return list
}

// Call runs one call. Bad names and malformed arguments are Results that explain themselves with the schema
// (valid=false); an error means the run must stop (ctx ended, disk full, sandbox broken).
func (s *Set) Call(ctx context.Context, name, arguments string) (r Result, valid bool, err error) {
	if err := ctx.Err(); err != nil {
		return Result{}, false, err
	}
	for _, t := range s.tools {
		if t.Name != name {
			continue
		}
		r, err = t.call(ctx, arguments)
		if bad, ok := isArgumentError(err); ok {
			text := fmt.Sprintf("%s was not run: %s\nIts arguments are one JSON object of this schema: %s", name, bad.problem, t.Schema)
			return s.finish(failed("%s", text)), false, nil
		}
		if err != nil {
			return Result{}, true, fmt.Errorf("tool %s: %w", name, err)
		}
		return s.finish(r), true, nil
	}
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	r = failed("there is no tool %q. The tools are: %s.", cutLine(name, 64), strings.Join(names, ", "))
	return s.finish(r), false, nil
}

// finish is the one way out for a result: cleaned and bounded, whatever a tool put into it.
func (s *Set) finish(r Result) Result {
	r.Text = cutMiddle(s.Clean(r.Text), maxResult/2, maxResult/2, "")
	return r
}

// Clean makes text fit for a request: known secret values out, valid UTF-8, no NUL bytes.
func (s *Set) Clean(text string) string {
	text = printable(text)
	if s.bench.Redact != nil {
		text = s.bench.Redact.Values(text)
	}
	return text
}

// failed is a result that says what went wrong and what to do.
func failed(format string, a ...any) Result {
	return Result{Text: fmt.Sprintf(format, a...), Failed: true}
}
