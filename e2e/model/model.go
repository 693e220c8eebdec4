// Package model is the one fake of the end-to-end tests: a chat server that speaks
// OpenAI's wire format and says what a script tells it. It keeps every request, can
// fail in every way real servers were seen to fail, and answers with an error, and a
// failed test, to whatever the script does not foresee.
package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Server answers for any number of scripts, each below a path of its own.
type Server struct {
	URL string

	http    *http.Server
	mu      sync.Mutex
	scripts map[string]*Script
}

// A Script is what the model says in one test.
type Script struct {
	Base string // what model-base-url gets
	Key  string // what model-api-key must be; others get 401

	mu            sync.Mutex
	conversations []*conversation
	requests      []Request
	mistakes      []string
}

type conversation struct {
	Conversation
	taken bool
	asked []int // requests per turn so far
}

// A Request is one chat request as it came.
type Request struct {
	Conversation, Turn int // from 0; -1 when the script knows no answer
	Prompt             string
	Body               []byte
	Key                string
}

// Start starts the server on a free loopback port.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + l.Addr().String(), scripts: map[string]*Script{}}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(l) }() // ends by Close
	return s, nil
}

// Close ends the server.
func (s *Server) Close() { _ = s.http.Close() }

// Script puts a script under a name that was not used before. At the end of a test its
// Problems are to be looked at.
func (s *Server) Script(name, key string, conversations ...Conversation) (*Script, error) {
	script := &Script{Base: s.URL + "/" + name + "/v1", Key: key}
	script.Add(conversations...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scripts[name] != nil {
		return nil, fmt.Errorf("model: script %s exists", name)
	}
	s.scripts[name] = script
	return script, nil
}

// Add appends conversations.
func (s *Script) Add(conversations ...Conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conversations {
		s.conversations = append(s.conversations, &conversation{Conversation: c, asked: make([]int, len(c.Turns))})
	}
}

// Requests returns all requests so far.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Problems lists requests the script did not foresee and turns that were never said.
func (s *Script) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := append([]string(nil), s.mistakes...)
	for i, c := range s.conversations {
		if c.Cut {
			continue
		}
		for t, asked := range c.asked {
			if asked <= len(c.Turns[t].Fail) {
				problems = append(problems, fmt.Sprintf("conversation %d turn %d was asked for %d times, so never said", i, t, asked))
				break
			}
		}
	}
	return problems
}

// mark is how a turn is known again in the next request: nine letters and digits, so
// that it is a valid call id everywhere.
var mark = regexp.MustCompile(`c(\d\d)t(\d\d\d)k\d`)

func marks(conversation, turn, calls int) []string {
	ids := make([]string, max(calls, 1))
	for i := range ids {
		ids[i] = fmt.Sprintf("c%02dt%03dk%d", conversation, turn, i)
	}
	return ids
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	script := s.scripts[name]
	s.mu.Unlock()
	if script == nil {
		http.Error(w, "no script named "+name, http.StatusInternalServerError)
		return
	}
	switch {
	case r.Method == http.MethodPost && rest == "v1/chat/completions":
		script.chat(w, r)
	case r.Method == http.MethodGet && rest == "v1/models":
		w.Header().Set("Content-Type", "application/json")
		writeJSON(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": "scripted", "object": "model", "max_model_len": 200000}}})
	default:
		// What servers without a feature say; clients may probe for it.
		http.NotFound(w, r)
	}
}

func (s *Script) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.Key != "" && key != s.Key {
		Status(http.StatusUnauthorized, "wrong key")(w, r, Turn{}, nil)
		return
	}
	req, turn, failure, err := s.find(body, key)
	if err != nil {
		// 422 is not tried again; the script's problems tell more.
		Status(http.StatusUnprocessableEntity, "not in the script")(w, r, Turn{}, nil)
		return
	}
	if turn.Before != nil {
		turn.Before(req)
	}
	ids := marks(req.Conversation, req.Turn, len(turn.Calls))
	if failure != nil {
		failure(w, r, turn, ids)
		return
	}
	stream(w).whole(turn, ids)
}

// message is what is read of a request.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// find tells which turn of which conversation a request asks for: the first one of a
// conversation not yet begun when the model has said nothing yet, else the one after
// the turn whose mark the last answer carries.
func (s *Script) find(body []byte, key string) (Request, Turn, Failure, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req := Request{Conversation: -1, Turn: -1, Body: body, Key: key}
	var in struct {
		Messages []message `json:"messages"`
	}
	err := json.Unmarshal(body, &in)
	if err == nil {
		req.Prompt, err = s.place(&req, in.Messages)
	}
	s.requests = append(s.requests, req)
	if err != nil {
		s.mistakes = append(s.mistakes, err.Error())
		return req, Turn{}, nil, err
	}
	c := s.conversations[req.Conversation]
	turn := c.Turns[req.Turn]
	asked := c.asked[req.Turn]
	c.asked[req.Turn]++
	if asked < len(turn.Fail) {
		return req, turn, turn.Fail[asked], nil
	}
	return req, turn, nil, nil
}

func (s *Script) place(req *Request, messages []message) (string, error) {
	var prompt strings.Builder
	last := ""
	for _, m := range messages {
		if m.Role == "assistant" {
			last = string(m.Content) + string(m.ToolCalls)
		} else if last == "" {
			prompt.WriteString(text(m.Content) + "\n")
		}
	}
	if last == "" {
		for i, c := range s.conversations {
			// The first turn again counts as a retry while its failures last.
			retry := c.taken && len(c.asked) > 0 && c.asked[0] <= len(c.Turns[0].Fail) && c.asked[0] > 0
			if (!c.taken || retry) && len(c.Turns) > 0 && (c.When == nil || c.When(prompt.String())) {
				c.taken = true
				req.Conversation, req.Turn = i, 0
				return prompt.String(), nil
			}
		}
		return prompt.String(), fmt.Errorf("a conversation the script does not have was begun:\n%.2000s", prompt.String())
	}
	found := mark.FindAllStringSubmatch(last, -1)
	if len(found) == 0 {
		return prompt.String(), fmt.Errorf("the last answer in the request is none of the script's: %.500s", last)
	}
	c, _ := strconv.Atoi(found[len(found)-1][1]) // digits by the expression
	t, _ := strconv.Atoi(found[len(found)-1][2])
	if c >= len(s.conversations) || t+1 >= len(s.conversations[c].Turns) {
		return prompt.String(), fmt.Errorf("conversation %d was asked on after its last turn %d: %.3000s", c, t, tail(messages))
	}
	req.Conversation, req.Turn = c, t+1
	return prompt.String(), nil
}

func tail(messages []message) string {
	var out strings.Builder
	for _, m := range messages[max(0, len(messages)-3):] {
		fmt.Fprintf(&out, "\n%s: %s", m.Role, text(m.Content))
	}
	return out.String()
}

// text is a message's content, given as a string or in parts.
func text(raw json.RawMessage) string {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return plain
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var out []string
	for _, p := range parts {
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n")
}
