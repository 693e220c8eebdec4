package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed write_file.md
var writeFileText string

const writeFileSchema = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`

type writeFileArguments struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

func (a writeFileArguments) problem() string {
	switch {
	case a.Path == "":
		return `"path" is missing or empty.`
	case a.Content == nil:
		return `"content" is missing.`
	}
	return ""
}

func (s *Set) writeFile(_ context.Context, a writeFileArguments) (Result, error) {
	name, refusal := s.clean(a.Path)
	if refusal == "" && strings.HasSuffix(a.Path, "/") {
		refusal = fmt.Sprintf("%s names a folder; folders are made with the files in them.", a.Path)
	}
	if refusal != "" {
		return failed("%s", refusal), nil
	}
	info, refusal := s.changeable(name)
	if refusal != "" {
		return failed("%s", refusal), nil
	}
	if info != nil && !s.seen[name] {
		return failed("%s exists and was not read. Read it first; to change parts of it use edit_file.", name), nil
	}
	content, done := *a.Content, "made"
	if info != nil {
		done = "replaced"
		if info.Size() <= maxEdited {
			old, err := s.bench.Tree.ReadFile(name)
			if err != nil {
				return fault("reading "+name, err)
			}
			if content = inStyleOf(string(old), content); content == string(old) {
				return failed("%s has this content already.", name), nil
			}
		}
	}
	if err := s.bench.Tree.WriteFile(name, []byte(content)); err != nil {
		return fault("writing "+name, err)
	}
	s.seen[name] = true
	return Result{Text: fmt.Sprintf("%s %s: %d lines.", done, name, countLines(content)), Changed: true}, nil
}

// inStyleOf gives a new content the byte order mark and the line ends of the old one, where those are all CRLF: the model does not see
// them, and a change of every line is never what it wants.
func inStyleOf(old, content string) string {
	const mark = "\uFEFF"
	if all := strings.Count(old, "\n"); all > 0 && strings.Count(old, "\r\n") == all {
		content = withLineEnds(content, "\r\n")
	}
	if strings.HasPrefix(old, mark) && !strings.HasPrefix(content, mark) {
		content = mark + content
	}
	return content
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
