package model

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A streamer writes chat completion chunks as server-sent events.
type streamer struct {
	w http.ResponseWriter
}

func stream(w http.ResponseWriter) streamer {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return streamer{w}
}

func (s streamer) event(choices []any, usage any) {
	chunk := map[string]any{"id": "scripted", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices}
	if usage != nil {
		chunk["usage"] = usage
	}
	data, err := json.Marshal(chunk)
	if err != nil {
		panic(fmt.Sprintf("model chunk: %v", err)) // values of this file
	}
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", data) // the client may be gone
}

func (s streamer) delta(delta map[string]any, finish any) {
	s.event([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
}

func (s streamer) flush() {
	_ = http.NewResponseController(s.w).Flush() // the client may be gone
}

// start sends the role and the text with the mark the next request is known by.
func (s streamer) start(turn Turn, ids []string) {
	s.delta(map[string]any{"role": "assistant", "content": turn.Text}, nil)
	if len(turn.Calls) == 0 {
		s.delta(map[string]any{"content": " (" + ids[0] + ")"}, nil)
	}
	for i, c := range turn.Calls {
		s.delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": ids[i], "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""},
		}}}, nil)
	}
}

func (s streamer) arguments(i int, part string) {
	s.delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": part}}}}, nil)
}

// rest sends the arguments in fragments, as real servers do.
func (s streamer) rest(turn Turn) {
	const fragment = 700
	for i, c := range turn.Calls {
		for args := []rune(c.arguments()); len(args) > 0; {
			n := min(fragment, len(args))
			s.arguments(i, string(args[:n]))
			args = args[n:]
		}
	}
}

// half sends the first half of the first call's arguments.
func (s streamer) half(turn Turn) {
	if len(turn.Calls) > 0 {
		args := []rune(turn.Calls[0].arguments())
		s.arguments(0, string(args[:len(args)/2]))
	}
}

func (s streamer) finish(reason string, turn Turn) {
	s.delta(map[string]any{}, reason)
	u := Usage{Prompt: 1000, Cached: 800, Completion: 50}
	if turn.Usage != nil {
		u = *turn.Usage
	}
	s.event([]any{}, map[string]any{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached},
	})
	_, _ = fmt.Fprint(s.w, "data: [DONE]\n\n") // the client may be gone
	s.flush()
}

func (s streamer) whole(turn Turn, ids []string) {
	s.start(turn, ids)
	s.rest(turn)
	reason := "stop"
	if len(turn.Calls) > 0 {
		reason = "tool_calls"
	}
	s.finish(reason, turn)
}

func writeJSON(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
