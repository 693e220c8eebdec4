package worktree

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// rules are the ignore rules that hold in a folder: those of its own .gitignore, then
// of the folders above.
type rules struct {
	above    *rules
	folder   string // where the .gitignore is
	patterns []pattern
}

// A pattern is one line of a .gitignore (gitignore(5)).
type pattern struct {
	glob           string // for doublestar
	prefix, suffix string // literal ends, asked first: they are cheap and rarely match
	include        bool   // "!": takes back
	folderOnly     bool   // "/" at the end
	anchored       bool   // matches the path below folder, not the name alone
}

// ignored says whether the rules leave out a path whose folders are not ignored.
func (r *rules) ignored(path string, isFolder bool) bool {
	_, name := split(path)
	for ; r != nil; r = r.above {
		below := path
		if r.folder != "" {
			below = path[len(r.folder)+1:]
		}
		for i := len(r.patterns) - 1; i >= 0; i-- {
			p := &r.patterns[i]
			if p.folderOnly && !isFolder {
				continue
			}
			subject := name
			if p.anchored {
				subject = below
			}
			if p.match(subject) {
				return !p.include
			}
		}
	}
	return false
}

func (p *pattern) match(subject string) bool {
	if !strings.HasPrefix(subject, p.prefix) || !strings.HasSuffix(subject, p.suffix) {
		return false
	}
	ok, err := doublestar.Match(p.glob, subject)
	return ok && err == nil // a pattern that cannot be read matches nothing, as in git
}

// parseIgnore reads a .gitignore of a folder.
func parseIgnore(above *rules, folder string, data []byte) *rules {
	r := &rules{above: above, folder: folder}
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if p, ok := parsePattern(line); ok {
			r.patterns = append(r.patterns, p)
		}
	}
	if len(r.patterns) == 0 {
		return above
	}
	return r
}

func parsePattern(line string) (pattern, bool) {
	line = trimBlanks(line)
	if line == "" || line[0] == '#' {
		return pattern{}, false
	}
	var p pattern
	if line, p.include = strings.CutPrefix(line, "!"); line == "" {
		return pattern{}, false
	}
	line, p.folderOnly = strings.CutSuffix(line, "/")
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return pattern{}, false
	}
	p.glob = toGlob(line, p.anchored)
	if i := strings.IndexAny(line, `*?[\`); i >= 0 {
		p.prefix = line[:i]
		p.suffix = line[strings.LastIndexAny(line, `*?]\`)+1:]
		if strings.Contains(line[i:], `\`) || strings.Contains(line[i:], "[") {
			p.suffix = "" // not literal for sure
		}
	} else {
		p.prefix, p.suffix = line, line
	}
	// "**/" may stand for nothing at all, and then the slash before it is shared.
	if strings.Contains(line, "**/") {
		p.prefix, p.suffix = "", strings.TrimPrefix(p.suffix, "/")
	}
	return p, true
}

// trimBlanks takes trailing spaces away unless a backslash keeps them.
func trimBlanks(line string) string {
	end := len(line)
	for end > 0 && line[end-1] == ' ' {
		slashes := 0
		for i := end - 2; i >= 0 && line[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 1 {
			break
		}
		end--
	}
	return line[:end]
}

// classes are the named character classes that git knows and doublestar does not.
var classes = strings.NewReplacer("[:alnum:]", "a-zA-Z0-9", "[:alpha:]", "a-zA-Z", "[:digit:]", "0-9",
	"[:lower:]", "a-z", "[:upper:]", "A-Z", "[:xdigit:]", "0-9a-fA-F", "[:space:]", " \t\n\v\f\r", "[:blank:]", " \t")

// toGlob writes git's pattern as doublestar's: braces mean nothing to git, "**" only
// spans folders as a whole path element, and "a/**" is what is inside a, not a.
func toGlob(line string, anchored bool) string {
	var b strings.Builder
	line = classes.Replace(line)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '{', '}':
			b.WriteByte('\\')
		case '\\':
			b.WriteByte(c)
			if i++; i == len(line) {
				return b.String() // a lone backslash at the end: matches nothing
			}
		}
		b.WriteByte(line[i])
	}
	glob := b.String()
	if anchored && strings.HasSuffix(glob, "/**") {
		glob += "/*"
	}
	return glob
}
