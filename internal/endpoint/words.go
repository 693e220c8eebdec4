package endpoint

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"issuesmith/internal/redact"
)

// maxWords is how much of an endpoint's own words an Error keeps, in characters.
const maxWords = 1000

// readComplaint finds the words in the body of an error, in every form seen so far: OpenAI's
// {"error":{…}}, Gemini's the same inside an array, an error that is only a string, Mistral's
// {"object":"error","message":…} whose message may be an object, FastAPI's {"detail":[…]},
// a page of HTML, plain text.
func readComplaint(body []byte) complaint {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && (body[0] == '{' || body[0] == '[') && json.Valid(body) {
		c := complaint{text: wordsOf(body, 0)}
		c.kind, c.code = kindOf(body)
		if c.text == "" {
			c.text = string(body)
		}
		return c
	}
	if len(body) > 0 && body[0] == '<' {
		return complaint{text: "a web page: " + pageText(body)}
	}
	return complaint{text: string(body)}
}

// wordsOf collects the human part of a JSON value.
func wordsOf(raw json.RawMessage, depth int) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || depth > 6 {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // "" says the same
		return s
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return ""
		}
		var parts []string
		for _, item := range list[:min(len(list), 8)] {
			if s := wordsOf(item, depth+1); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, "; ")
	case '{':
		return wordsOfObject(raw, depth)
	}
	return ""
}

func wordsOfObject(raw json.RawMessage, depth int) string {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	for _, key := range []string{"error", "message", "detail", "msg", "description"} {
		s := wordsOf(o[key], depth+1)
		if s == "" {
			continue
		}
		if where := pathOf(o["loc"]); where != "" { // FastAPI names the field
			s += " (" + where + ")"
		}
		// OpenRouter puts what the real provider said here.
		var meta struct {
			Raw json.RawMessage `json:"raw"`
		}
		if json.Unmarshal(o["metadata"], &meta) == nil {
			if more := wordsOf(meta.Raw, depth+1); more != "" && more != s {
				s += ": " + more
			}
		}
		return s
	}
	return ""
}

// pathOf writes FastAPI's ["body","stream_options"] as body.stream_options.
func pathOf(raw json.RawMessage) string {
	var parts []text
	if len(raw) == 0 || json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i] = string(p)
	}
	return strings.Join(words, ".")
}

// kindOf finds the type and code of an error.
func kindOf(raw json.RawMessage) (kind, code string) {
	if raw[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return "", ""
		}
		raw = bytes.TrimSpace(list[0])
	}
	var o struct {
		Type, Status, Code text
		Error              json.RawMessage
	}
	if json.Unmarshal(raw, &o) != nil {
		return "", ""
	}
	if inner := bytes.TrimSpace(o.Error); len(inner) > 0 && inner[0] == '{' {
		if json.Unmarshal(inner, &o) != nil {
			return "", ""
		}
	}
	return strings.TrimSpace(string(o.Type) + " " + string(o.Status)), string(o.Code)
}

// pageText is the text of an HTML page without its tags, scripts left in: only its beginning is used.
func pageText(page []byte) string {
	var b strings.Builder
	inTag := false
	for _, r := range string(page[:min(len(page), 4096)]) {
		switch {
		case r == '<':
			inTag = true
			b.WriteByte(' ')
		case r == '>':
			inTag = false
		case !inTag:
			b.WriteRune(r)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// plain makes foreign words fit for an error: one line, no escape sequences, the key taken out
// before the cut so that no part of it stays, at most maxWords characters.
func plain(s, key string) string {
	s = strings.Join(strings.Fields(redact.Escapes(s)), " ")
	if key != "" {
		s = strings.ReplaceAll(s, key, "***")
	}
	if utf8.RuneCountInString(s) <= maxWords {
		return s
	}
	return string([]rune(s)[:maxWords-1]) + "…"
}
