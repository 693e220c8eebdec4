package transcript

import (
	"bytes"
	"encoding/json"
)

// mask puts every string of a JSON text through clean. Working on the encoded text
// and not on the values finds strings wherever they come from: fields, maps, raw
// JSON, types that encode themselves. Numbers and names stay what they are, so the
// result has the same shape.
func mask(text []byte, clean func(string) string) []byte {
	var out []byte // nil while nothing has changed
	kept := 0      // text[:kept] is in out
	for at := 0; at < len(text); {
		start := bytes.IndexByte(text[at:], '"')
		if start < 0 {
			break
		}
		start += at
		at = endOfString(text, start)
		if isFieldName(text[start:at], text[at:]) {
			continue
		}
		quoted, changed := maskString(text[start:at], clean)
		if !changed {
			continue
		}
		out = append(append(out, text[kept:start]...), quoted...)
		kept = at
	}
	if out == nil {
		return text
	}
	return append(out, text[kept:]...)
}

// endOfString is the offset after the string that starts at start of a valid text.
func endOfString(text []byte, start int) int {
	at := start + 1
	for at < len(text) && text[at] != '"' {
		if text[at] == '\\' {
			at++
		}
		at++
	}
	return min(at+1, len(text))
}

func maskString(quoted []byte, clean func(string) string) ([]byte, bool) {
	var s string
	if bytes.IndexByte(quoted, '\\') < 0 {
		s = string(quoted[1 : len(quoted)-1])
	} else if err := json.Unmarshal(quoted, &s); err != nil {
		return []byte(`"[unreadable]"`), true // not text that the encoder made
	}
	cleaned := clean(s)
	if cleaned == s {
		return nil, false
	}
	b, err := encode(cleaned)
	if err != nil {
		return []byte(`"[unreadable]"`), true
	}
	return bytes.TrimSuffix(b, []byte("\n")), true
}

// isFieldName reports whether a string is a key that could be one of our own
// payloads: small letters and underscores. A secret value that is such a word,
// "arguments" perhaps, must not make the record unreadable.
func isFieldName(quoted, after []byte) bool {
	if len(after) == 0 || after[0] != ':' {
		return false
	}
	for _, c := range quoted[1 : len(quoted)-1] {
		if c != '_' && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
