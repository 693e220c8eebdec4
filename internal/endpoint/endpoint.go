// Package endpoint talks to a model: an OpenAI-compatible chat server, or a
// transcript that is replayed. Whatever shape a server sends, callers see a whole
// turn or a typed error, never half a turn.
package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"issuesmith/internal/config"
	"issuesmith/internal/transcript"
)

// A Role is who speaks.
type Role string

// The roles of the chat protocol.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// A Message of the conversation.
type Message struct {
	Role      Role
	Content   string
	Reasoning string            // kept for endpoints that demand it back
	Calls     []transcript.Call // assistant only
	CallID    string            // tool only: which call this answers
}

// A Tool the model may call; Schema is a JSON schema object, byte-stable.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage
}

// A Turn is one whole answer.
type Turn struct {
	Message    Message
	Finish     string // stop, tool_calls, length, …
	Usage      transcript.Usage
	FirstToken time.Duration
	Elapsed    time.Duration
	Model      string // what the endpoint says answered
	RequestID  string
}

// A Kind classes an error.
type Kind string

// The kinds of errors of model-endpoints.md.
const (
	Truncated       Kind = "truncated"
	Length          Kind = "length"
	Server          Kind = "server"
	RateLimit       Kind = "rate_limit"
	Auth            Kind = "auth"
	Protocol        Kind = "protocol"
	Idle            Kind = "idle"
	ContextOverflow Kind = "context_overflow"
	Refused         Kind = "refused"    // 400, 404, 422 and the like: permanent
	Connection      Kind = "connection" // could not be reached, or broke off
)

// An Error is why there is no turn. Message is the endpoint's own words, at most 1,000 characters.
type Error struct {
	Kind       Kind
	Status     int
	Message    string
	RetryAfter time.Duration
	Model      string // provider/name, for the person
	URL        string // origin only
	Err        error
}

func (e *Error) Error() string {
	return fmt.Sprintf("the model endpoint %s (%s): %s: %s", e.URL, e.Model, e.Kind, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// A Client asks a model. One conversation at a time; Complete keeps what it encoded of the messages
// before, so they must only be appended to between calls.
type Client interface {
	// Complete asks for one turn. Errors are *Error, or ctx's.
	Complete(ctx context.Context, messages []Message, tools []Tool) (*Turn, error)
	// Request is the body Complete would send, for --prompt-only.
	Request(messages []Message, tools []Tool) ([]byte, error)
	// Name is provider/name.
	Name() string
	// Window is the context size in tokens, 0 when unknown.
	Window(ctx context.Context) int
}

// Options for New.
type Options struct {
	Config *config.Config
	Wait   func(reason string, d time.Duration) // told before each wait for a retry; may be nil
}

// New returns the client of the configured model. replay/FILE answers from a transcript.
func New(o Options) (Client, error) { panic("not built") }
