// Package endpoint talks to a model: an OpenAI-compatible chat server, or a
// transcript that is replayed. Whatever shape a server sends, callers see a whole
// turn or a typed error, never half a turn.
//
// The way of one turn: conversation (encode.go) makes the request's bytes, chat
// (client.go) sends them and waits between tries (retry.go), eventReader (events.go)
// cuts the answer into JSON texts, chunk (chunk.go) reads each of them in every known
// shape, and assembly (assemble.go) puts them together.
package endpoint

import (
	"context"
	"encoding/json"
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
	FirstToken time.Duration // from the request of the try that succeeded
	Elapsed    time.Duration // of that try, to the end of the turn
	Model      string        // what the endpoint says answered
	RequestID  string
}

// A Client asks a model. One conversation at a time; what Complete encoded of the messages
// before is kept, so a conversation that is only appended to costs its new messages alone. Any
// other change is noticed and encoded again.
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
func New(o Options) (Client, error) {
	if o.Config.Model.Provider == replayName {
		return openReplay(o.Config.Model.Name)
	}
	return newChat(o)
}
