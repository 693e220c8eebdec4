package endpoint

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A chunk is one JSON text of an answer: a chunk of a stream or a whole completion. Only
// what is needed is decoded, by types that take every form seen so far, so that a float where
// an integer should be, or a null, never costs a turn.
type chunk struct {
	ID      text            `json:"id"`
	Object  text            `json:"object"`
	Model   text            `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings *timings        `json:"timings"` // llama.cpp
	Error   json.RawMessage `json:"error"`
	Detail  json.RawMessage `json:"detail"` // FastAPI's errors
}

type choice struct {
	Index   number `json:"index"`
	Delta   *delta `json:"delta"`
	Message *delta `json:"message"` // a completion, or the last chunk of some servers
	Finish  text   `json:"finish_reason"`
}

type delta struct {
	Content          parts      `json:"content"`
	Reasoning        parts      `json:"reasoning"`         // OpenRouter, Ollama, newer vLLM
	ReasoningContent parts      `json:"reasoning_content"` // DeepSeek, llama.cpp, older vLLM
	Refusal          text       `json:"refusal"`
	Calls            []fragment `json:"tool_calls"`
}

// A fragment is a piece of a tool call.
type fragment struct {
	Index    number `json:"index"`
	ID       text   `json:"id"`
	Function struct {
		Name      text      `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"` // Gemini's thought signature
}

type usage struct {
	Prompt     number `json:"prompt_tokens"`
	Completion number `json:"completion_tokens"`
	Details    struct {
		Cached number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit number `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cost     number `json:"cost"`                    // OpenRouter, USD
}

// timings are llama.cpp's own counts.
type timings struct {
	Cached    number `json:"cache_n"`
	Prompt    number `json:"prompt_n"` // without the cached ones
	Predicted number `json:"predicted_n"`
}

// failed says whether the chunk reports an error instead of a part of the answer.
func (c *chunk) failed() bool {
	switch strings.TrimSpace(string(c.Error)) {
	case "", "null", `""`, "false", "{}":
	default:
		return true
	}
	return c.Object == "error" || len(c.Choices) == 0 && len(c.Detail) > 0 && string(c.Detail) != "null"
}

// text takes a string, or the text of a number; anything else is "".
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	switch {
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(t))
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		*t = text(b)
	}
	return nil
}

// number takes a number or its text. Negative, huge and other values are none.
type number struct {
	value float64
	given bool
}

// UnmarshalJSON never fails.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 64)
	if err == nil && v >= 0 && v <= 1e12 && !math.IsNaN(v) {
		n.value, n.given = v, true
	}
	return nil
}

// tokens is the number as a count of tokens.
func (n number) tokens() int {
	if n.value > 1e9 {
		return 0
	}
	return int(n.value)
}

// parts takes text as a string or as a list of typed parts; thinking is told apart.
type parts struct{ text, thinking string }

// UnmarshalJSON never fails: an unknown form is empty.
func (p *parts) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, &p.text)
	case '[':
		var list []struct {
			Text     text     `json:"text"`
			Thinking thinking `json:"thinking"`
		}
		if json.Unmarshal(b, &list) != nil {
			return nil
		}
		var said, thought strings.Builder
		for _, item := range list {
			said.WriteString(string(item.Text))
			thought.WriteString(string(item.Thinking))
		}
		p.text, p.thinking = said.String(), thought.String()
	}
	return nil
}

// thinking takes a string, or Mistral's list of text parts.
type thinking string

// UnmarshalJSON never fails.
func (t *thinking) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(t))
	case '[':
		var list []struct {
			Text text `json:"text"`
		}
		if json.Unmarshal(b, &list) != nil {
			return nil
		}
		var all strings.Builder
		for _, item := range list {
			all.WriteString(string(item.Text))
		}
		*t = thinking(all.String())
	}
	return nil
}

// arguments takes a piece of JSON text, or the object itself.
type arguments string

// UnmarshalJSON never fails.
func (a *arguments) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(a))
	case '{', '[':
		var compact bytes.Buffer
		if json.Compact(&compact, b) == nil {
			*a = arguments(compact.String())
		}
	}
	return nil
}
