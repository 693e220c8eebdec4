package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed edit_file.md
var editFileText string

const editFileSchema = `{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"}},"required":["old","new"],"additionalProperties":false}}},"required":["path","edits"],"additionalProperties":false}`

const (
	maxEdits  = 50
	maxEdited = 8 << 20 // bytes of a file
)

type editFileArguments struct {
	Path  string `json:"path"`
	Edits []edit `json:"edits"`
	// Many models were trained on a tool with one pair: it is taken as well, though the schema does not offer it.
	Old *string `json:"old"`
	New *string `json:"new"`
}

func (a editFileArguments) problem() string {
	single := a.Old != nil || a.New != nil
	switch {
	case a.Path == "":
		return `"path" is missing or empty.`
	case single && len(a.Edits) > 0:
		return `give either "edits" or one "old" with "new", not both.`
	case single && (a.Old == nil || a.New == nil):
		return `"old" and "new" belong together.`
	case !single && len(a.Edits) == 0:
		return `"edits" is missing or empty.`
	case len(a.Edits) > maxEdits:
		return fmt.Sprintf("%d edits in one call, the most is %d.", len(a.Edits), maxEdits)
	}
	for i, e := range a.Edits {
		if e.Old == nil || e.New == nil {
			return fmt.Sprintf(`edit %d lacks "old" or "new".`, i+1)
		}
	}
	return ""
}

// An edit replaces one place. Pointers tell what was left out from what is empty.
type edit struct {
	Old *string `json:"old"`
	New *string `json:"new"`
}

func (s *Set) editFile(ctx context.Context, a editFileArguments) (Result, error) {
	edits := a.Edits
	if a.Old != nil {
		edits = []edit{{a.Old, a.New}}
	}
	name, refusal := s.clean(a.Path)
	if refusal != "" {
		return failed("%s", refusal), nil
	}
	info, refusal := s.changeable(name)
	if refusal != "" {
		return failed("%s", refusal), nil
	}
	if info == nil {
		return failed("%s write_file makes new files.", s.missing(ctx, name)), ctx.Err()
	}
	if info.Size() > maxEdited {
		return failed("%s is %d bytes long; edit_file takes files up to %d.", name, info.Size(), maxEdited), nil
	}
	data, err := s.bench.Tree.ReadFile(name)
	if err != nil {
		return fault("reading "+name, err)
	}
	if isBinary(data) {
		return failed("%s is a binary file.", name), nil
	}
	content := string(data)
	spans, refusal := locateAll(content, edits)
	if refusal != "" {
		return failed("%s was not changed. %s", name, refusal), nil
	}
	changed := splice(content, spans)
	if changed == content {
		return failed("%s was not changed: every new text is the same as the old one.", name), nil
	}
	if err := s.bench.Tree.WriteFile(name, []byte(changed)); err != nil {
		return fault("writing "+name, err)
	}
	s.seen[name] = true
	return Result{Text: fmt.Sprintf("changed %s: %s.", name, places(content, spans)), Changed: true}, nil
}

// places tells where the edits are in the file as it is now.
func places(content string, spans []span) string {
	var list []string
	line, from := 1, 0
	for _, sp := range spans { // in the order of the file
		line += strings.Count(content[from:sp.from], "\n")
		if n := strings.Count(strings.TrimSuffix(sp.text, "\n"), "\n"); n > 0 {
			list = append(list, fmt.Sprintf("lines %d–%d", line, line+n))
		} else {
			list = append(list, fmt.Sprintf("line %d", line))
		}
		line += strings.Count(sp.text, "\n")
		from = sp.to
	}
	return strings.Join(list, ", ")
}
