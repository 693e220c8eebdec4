package endpoint

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Kind classes an error.
type Kind string

// The kinds of errors.
const (
	Truncated       Kind = "truncated"        // the answer ended without a finish reason
	Length          Kind = "length"           // the output limit cut a call
	Server          Kind = "server"           // 408, 409, 425, 5xx, or an error inside the stream
	RateLimit       Kind = "rate_limit"       // 429
	Auth            Kind = "auth"             // 401, 403, or no key at all
	Protocol        Kind = "protocol"         // not an answer of the chat protocol
	Idle            Kind = "idle"             // silent for longer than the timeouts allow
	ContextOverflow Kind = "context_overflow" // the conversation is longer than the model's window
	Refused         Kind = "refused"          // 400, 404, 422 and the like: permanent
	Connection      Kind = "connection"       // could not be reached, or broke off
)

// An Error is why there is no turn. Message is the endpoint's own words where it said any, at
// most 1,000 characters, without control characters and without the API key.
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
	var b strings.Builder
	b.WriteString("the model endpoint")
	for _, part := range []string{e.URL, "(" + e.Model + ")"} {
		if part != "" && part != "()" {
			b.WriteString(" " + part)
		}
	}
	fmt.Fprintf(&b, ": %s", e.Kind)
	if e.Status != 0 {
		fmt.Fprintf(&b, ", status %d", e.Status)
	}
	b.WriteString(": " + strings.TrimSuffix(e.Message, "."))
	if advice := e.advice(); advice != "" {
		b.WriteString("; " + advice)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// advice is what the person can do now.
func (e *Error) advice() string {
	provider, _, _ := strings.Cut(e.Model, "/")
	if provider == replayName {
		return ""
	}
	switch e.Kind {
	case Auth:
		if p, ok := providerOf(provider); ok && p.KeyVariable != "" {
			return "check model-api-key (or " + p.KeyVariable + ")"
		}
		return "check model-api-key"
	case RateLimit:
		return "wait and queue the issue again, or choose another model"
	case Connection:
		return "check model-base-url and that the server is running"
	case Idle:
		return "the limits are first-token-timeout and token-timeout"
	case Refused:
		return "check the model's name and model-base-url"
	case Protocol:
		return "check that model-base-url is the server's OpenAI-compatible address, usually one that ends in /v1"
	case ContextOverflow:
		return "set context-limit to the model's window"
	case Truncated, Server:
		return "queue the issue again, or look into the server's log"
	case Length:
		return "raise the server's limit on output tokens"
	}
	return ""
}

// again says whether the same request may succeed later.
func (e *Error) again() bool {
	switch e.Kind {
	case Server, RateLimit, Connection, Idle, Truncated:
		return true
	}
	return false
}

// A complaint is what an endpoint says went wrong.
type complaint struct{ text, kind, code string }

// classify finds the kind of a failure from its status (0 inside a stream) and words.
func classify(status int, c complaint) Kind {
	text := strings.ToLower(c.text + " " + c.kind + " " + c.code)
	switch {
	case overflows(status, text):
		return ContextOverflow
	case says(text, permanent):
		return Refused
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Auth
	case status == http.StatusTooManyRequests:
		return RateLimit
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return Server
	case status >= 300:
		return Refused
	case says(text, []string{"rate_limit", "rate limit", "too many requests"}):
		return RateLimit
	case says(text, []string{"authentication", "unauthorized", "invalid_api_key"}):
		return Auth
	case strings.Contains(text, "invalid_request"):
		return Refused
	}
	return Server
}

// permanent are failures that come with a status (500, 429) that looks worth a retry:
// llama.cpp's answer to an image, and OpenAI's to an empty account.
var permanent = []string{"image input is not supported", "insufficient_quota"}

// overflow are the wordings of a conversation that is too long, in lower case: OpenAI, Mistral,
// vLLM, llama.cpp, Anthropic, Gemini, OpenRouter, Bedrock, Ollama, xAI, Kimi, Zhipu.
var overflow = []string{
	"context_length_exceeded", "exceed_context_size", "maximum context length", "context window",
	"model context length", "context size", "context limit", "prompt is too long", "prompt too long",
	"input is too long", "too many tokens", "too large for model", "reduce the length",
	"maximum prompt length", "token count exceeds", "exceeds the maximum number of tokens",
	"exceeded model token limit", "longer than the maximum model length", "exceeds the context",
	"exceeds the model's context", "range of input length", "string_above_max_length",
	"request_too_large", "prompt 超长",
}

func overflows(status int, text string) bool {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false // "too many tokens, please wait" is a rate limit
	}
	return says(text, overflow) && !says(text, []string{"rate limit", "throttl", "per minute"})
}

func says(text string, wordings []string) bool {
	for _, w := range wordings {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
