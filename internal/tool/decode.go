package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxArguments bounds one call's arguments, in bytes: the largest file a change may hold.
const MaxArguments = 1 << 20

// checked arguments can say what is missing in them; "" when nothing is.
type checked interface{ problem() string }

// An argumentError is a call that does not fit the tool's schema.
type argumentError struct{ problem string }

func (e *argumentError) Error() string { return e.problem }

func isArgumentError(err error) (*argumentError, bool) {
	var bad *argumentError
	ok := errors.As(err, &bad)
	return bad, ok
}

// decode reads a call's arguments strictly: one JSON object, no unknown fields, nothing after it.
// Errors are *argumentError. No arguments at all count as {}.
func decode[A checked](arguments string) (A, error) {
	var a A
	if len(arguments) > MaxArguments {
		return a, &argumentError{fmt.Sprintf("its arguments are %d bytes long, the most is %d. Work in smaller pieces.", len(arguments), MaxArguments)}
	}
	text := strings.TrimSpace(arguments)
	if text == "" {
		text = "{}"
	}
	if text[0] != '{' {
		return a, &argumentError{fmt.Sprintf("its arguments are not a JSON object but %q.", cutLine(text, 80))}
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, &argumentError{explain(err, text)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		rest := text[d.InputOffset():]
		return a, &argumentError{fmt.Sprintf("something follows the JSON object: %q.", cutLine(rest, 80))}
	}
	if problem := a.problem(); problem != "" {
		return a, &argumentError{problem}
	}
	return a, nil
}

// explain says in words what the decoder did not like, with the place where it knows one.
func explain(err error, text string) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		from, to := max(0, int(syntax.Offset)-40), min(len(text), int(syntax.Offset)+20)
		return fmt.Sprintf("its arguments are not valid JSON: %s at byte %d, near %q.", syntax.Error(), syntax.Offset, printable(text[from:to]))
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Sprintf("field %q must be of type %s, not %s.", kind.Field, typeName(kind.Type.String()), kind.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("its arguments are not valid JSON: they end too early, after %q.", printable(text[max(0, len(text)-40):]))
	}
	return cutLine(strings.TrimPrefix(err.Error(), "json: "), 200) + "."
}

// typeName names a Go type as JSON schema does.
func typeName(t string) string {
	switch {
	case t == "int":
		return "integer"
	case strings.HasPrefix(t, "[]"):
		return "array"
	case t == "string":
		return "string"
	}
	return "object"
}
