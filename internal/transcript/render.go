package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"issuesmith/internal/redact"
)

// maxDepth is how deep nested data is shown.
const maxDepth = 8

// line writes one line, without terminal escapes.
func (o *shower) line(indent, text string) {
	text = strings.TrimRight(indent+redact.Cut(redact.Escapes(text), lineWidth), " ")
	_, _ = fmt.Fprintln(o.w, text) // Flush gives the error
}

// block writes a text of several lines, the middle left out when it is long.
func (o *shower) block(indent, text string, keep int) {
	text = strings.Trim(redact.Escapes(text), "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if len(lines) > 2*keep+1 && i >= keep && i < len(lines)-keep {
			if i == keep {
				o.line(indent, fmt.Sprintf("[… %d lines …]", len(lines)-2*keep))
			}
			continue
		}
		o.line(indent, line)
	}
}

// arguments writes a call: a command as a person types it, anything else as its
// name and its arguments.
func (o *shower) arguments(c ToolCall) {
	var command struct {
		Command string `json:"command"`
	}
	if c.Name == "bash" && json.Unmarshal([]byte(c.Arguments), &command) == nil && command.Command != "" {
		first, rest, _ := strings.Cut(strings.Trim(redact.Escapes(command.Command), "\n"), "\n")
		o.line("  ", "$ "+first)
		o.block("  > ", rest, resultLines)
		return
	}
	o.line("  ", "@ "+oneLine(c.Name))
	if !json.Valid([]byte(c.Arguments)) {
		o.block("      ", c.Arguments, resultLines)
		return
	}
	o.data([]byte(c.Arguments))
}

// data writes JSON as indented keys and values, in their order.
func (o *shower) data(raw json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = o.value(dec, "      ", "", 0) // what cannot be read is not shown; an event's data is valid
}

// value writes the next value of dec below its key.
func (o *shower) value(dec *json.Decoder, indent, key string, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if depth > maxDepth {
		o.line(indent, key+"…")
		return skip(dec, token)
	}
	deeper := indent + "  "
	if depth == 0 {
		deeper = indent
	}
	switch t := token.(type) {
	case json.Delim:
		if depth > 0 {
			o.line(indent, strings.TrimRight(key, " "))
		}
		for dec.More() {
			name := "- "
			if t == '{' {
				k, err := dec.Token()
				if err != nil {
					return err
				}
				name = oneLine(fmt.Sprint(k)) + ": "
			}
			if err := o.value(dec, deeper, name, depth+1); err != nil {
				return err
			}
		}
		_, err := dec.Token()
		return err
	case string:
		if strings.Contains(strings.Trim(t, "\r\n"), "\n") {
			o.line(indent, strings.TrimRight(key, " "))
			o.block(indent+"  | ", t, resultLines)
			return nil
		}
		o.line(indent, key+strings.Trim(t, "\r\n"))
	case nil:
		o.line(indent, key+"null")
	default:
		o.line(indent, key+fmt.Sprint(t))
	}
	return nil
}

// skip passes over the value that token started.
func skip(dec *json.Decoder, token json.Token) error {
	depth := 0
	for {
		if d, ok := token.(json.Delim); ok {
			if d == '{' || d == '[' {
				depth++
			} else {
				depth--
			}
		}
		if depth == 0 {
			return nil
		}
		var err error
		if token, err = dec.Token(); err != nil {
			return err
		}
	}
}
