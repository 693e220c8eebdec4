package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	fileLimit  = 1 << 20 // bytes of the repository file
	depthLimit = 20      // levels of nesting in it
)

// A value is what a source gave for a setting, with its place.
type value struct {
	where  string // "" for a default
	text   string
	list   []string // of a YAML list or mapping
	isList bool
	rows   []int // line of each item of list
	node   *yaml.Node
}

// lines are the items of a list however it was written: a YAML list, or a text with
// one a line, where empty lines and those that start with # do not count.
func (v value) lines() []string {
	if v.isList {
		return v.list
	}
	var out []string
	for line := range strings.Lines(v.text) {
		if line = strings.TrimSpace(line); line != "" && !isComment(line) {
			out = append(out, line)
		}
	}
	return out
}

// lineOf is the file's line of an item, 0 where it is not known.
func (v value) lineOf(i int) int {
	if i < len(v.rows) {
		return v.rows[i]
	}
	return 0
}

// An entry is one key of the repository file.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// parseFile reads the repository file into its keys. It works on YAML's nodes, which
// keep line numbers, expand no alias and have every key once for each time it stands
// there.
func parseFile(data []byte) ([]entry, []Problem) {
	if len(data) > fileLimit {
		return nil, []Problem{{Key: "file", Message: fmt.Sprintf("is %d bytes long, at most %d are read", len(data), fileLimit)}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil // empty, or comments only
	} else if err != nil {
		return nil, []Problem{yamlProblem(err, data)}
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		return nil, []Problem{{Where: strconv.Itoa(next.Line), Key: "file", Message: "holds a second document: one is read, so take the --- away"}}
	} else if !errors.Is(err, io.EOF) {
		return nil, []Problem{yamlProblem(err, data)}
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, []Problem{{Where: strconv.Itoa(root.Line), Key: "file", Message: "must be a mapping: lines of name: value"}}
	}
	if problems := checkNodes(root); len(problems) > 0 {
		return nil, problems
	}
	var out []entry
	for key, node := range pairs(root) {
		out = append(out, entry{key.Value, key.Line, node})
	}
	return out, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): *`)

// yamlProblem puts the library's error where the reader looks for it.
func yamlProblem(err error, data []byte) Problem {
	p := Problem{Key: "file", Message: "is not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return p
	}
	p.Where = m[1]
	p.Message = strings.Replace(p.Message, m[0], "", 1)
	// The library may name the line before or after the one with the tab.
	n, _ := strconv.Atoi(m[1]) // digits, by the pattern; too many of them find no line
	lines := bytes.Split(data, []byte("\n"))
	for at := max(n-2, 0); at < min(n+1, len(lines)); at++ {
		indent := lines[at][:len(lines[at])-len(bytes.TrimLeft(lines[at], " \t"))]
		if bytes.ContainsRune(indent, '\t') {
			p.Where = strconv.Itoa(at + 1)
			p.Message += "; indent with spaces, not tabs"
			break
		}
	}
	return p
}

// checkNodes refuses what a settings file does not need and what can be used to blow
// it up or to hide a value from its reader.
func checkNodes(root *yaml.Node) []Problem {
	var problems []Problem
	add := func(n *yaml.Node, key, format string, args ...any) {
		problems = append(problems, Problem{Where: strconv.Itoa(n.Line), Key: key, Message: fmt.Sprintf(format, args...)})
	}
	var walk func(n *yaml.Node, depth int)
	walk = func(n *yaml.Node, depth int) {
		switch {
		case depth > depthLimit:
			add(n, "file", "is nested more than %d levels deep", depthLimit)
			return
		case n.Kind == yaml.AliasNode, n.Anchor != "":
			add(n, "file", "uses an anchor or alias (& or *): write the value out; a text that starts so wants quotes")
			return
		case !knownTag(n.Tag):
			add(n, "file", "uses the tag %s, which is not known here", quote(n.Tag))
			return
		}
		if n.Kind == yaml.MappingNode {
			seen := map[string]bool{}
			for key := range pairs(n) {
				if key.Kind == yaml.ScalarNode && seen[key.Value] {
					add(key, quote(key.Value), "is given twice in the same mapping")
				}
				seen[key.Value] = true
				if key.Kind != yaml.ScalarNode {
					add(key, "file", "has a key that is not a plain name")
				}
			}
		}
		for _, child := range n.Content {
			walk(child, depth+1)
		}
	}
	walk(root, 1)
	return problems
}

func knownTag(tag string) bool {
	switch tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map", "!!timestamp":
		return true
	}
	return false
}

// pairs walks the keys and values of a mapping.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// scalar is the text of a single value.
func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "", errors.New("must be a single value, not a list")
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("must be a single value, not a mapping")
	case n.Tag == "!!null":
		return "", errors.New("has no value: give one, or take the line out")
	}
	return strings.TrimSpace(n.Value), nil
}

// fileValue turns a node into what a setting reads: a text, a list of texts, or for
// test-env a mapping of texts.
func fileValue(s setting, n *yaml.Node) (value, error) {
	v := value{node: n}
	var err error
	switch {
	case n.Kind == yaml.SequenceNode && s.list:
		v.isList = true
		for _, item := range n.Content {
			text, err := scalar(item)
			if err != nil {
				return v, &itemError{item.Line, "", "a list item " + err.Error()}
			}
			v.list, v.rows = append(v.list, text), append(v.rows, item.Line)
		}
	case n.Kind == yaml.MappingNode && s.Name == "test-env":
		v.isList = true
		for key, item := range pairs(n) {
			text, err := scalar(item)
			if err != nil {
				return v, &itemError{item.Line, key.Value, err.Error()}
			}
			v.list, v.rows = append(v.list, key.Value+"="+text), append(v.rows, item.Line)
		}
	case s.Name == "prices" && n.Kind == yaml.MappingNode:
	default:
		v.text, err = scalar(n)
	}
	return v, err
}
