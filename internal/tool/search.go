package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

//go:embed search.md
var searchText string

const searchSchema = `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},"glob":{"type":"string"},"context":{"type":"integer","minimum":0,"maximum":10}},"required":["pattern"],"additionalProperties":false}`

const (
	maxMatches     = 100      // matching lines of one search
	maxFileMatches = 20       // matching lines of one file
	maxSearched    = 1 << 20  // bytes: larger files are left out (kept outputs are not)
	maxFound       = 24 << 10 // bytes of one answer
	maxFoundLine   = 300      // bytes shown of a line
	maxMatchedLine = 64 << 10 // bytes of a line the pattern is tried on, fewer for a large pattern
	maxLineWork    = 4 << 20  // bytes × pattern size of one line, and between two looks at the clock: under a second
	maxPattern     = 2000     // bytes
	searchTime     = 15 * time.Second
)

type searchArguments struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Context int    `json:"context"`
}

func (a searchArguments) problem() string {
	switch {
	case a.Pattern == "":
		return `"pattern" is missing or empty.`
	case a.Context < 0 || a.Context > 10:
		return `"context" is a number of lines from 0 to 10.`
	}
	return ""
}

func (s *Set) search(ctx context.Context, a searchArguments) (Result, error) {
	if len(a.Pattern) > maxPattern {
		return failed("the pattern is %d bytes long, the most is %d.", len(a.Pattern), maxPattern), nil
	}
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		return failed("%s", explainPattern(err)), nil
	}
	if a.Glob != "" && !doublestar.ValidatePattern(a.Glob) {
		return failed("the glob %q is not valid; examples: *.go, src/**/*.ts, {app,lib}/**", cutLine(a.Glob, 200)), nil
	}
	f := finder{set: s, re: re, around: a.Context, deadline: time.Now().Add(searchTime)}
	f.prefix, _ = re.LiteralPrefix()
	if f.size, err = patternSize(a.Pattern); err != nil {
		return failed("%s", explainPattern(err)), nil
	}
	if file, ok := s.kept(a.Path); ok {
		data, err := readKept(file)
		if err != nil {
			return Result{}, fmt.Errorf("reading a kept output: %w", err)
		}
		return f.result(f.file(ctx, a.Path, data))
	}
	name, refusal := s.clean(a.Path)
	if refusal != "" {
		return failed("%s", refusal), nil
	}
	info, refusal := s.stat(ctx, name)
	if refusal != "" {
		return failed("%s", refusal), ctx.Err()
	}
	files := []string{name} // named by itself, a file is searched even if it is ignored
	if info.IsDir() {
		if files, err = s.bench.Tree.Files(ctx); err != nil {
			if ctx.Err() != nil {
				return Result{}, ctx.Err()
			}
			return fault("listing the files", err)
		}
		files = selectFiles(files, name, a.Glob)
	} else if !info.Mode().IsRegular() {
		return failed("%s is %s, not a file.", name, kindOf(info.Mode())), nil
	}
	return f.result(f.files(ctx, files))
}

// explainPattern says what is wrong with a regular expression, and what RE2 lacks.
func explainPattern(err error) string {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return "the pattern is not valid: " + err.Error()
	}
	text := fmt.Sprintf("the pattern is not valid: %s: %q.", e.Code, cutLine(e.Expr, 200))
	switch {
	case strings.HasPrefix(e.Expr, "(?=") || strings.HasPrefix(e.Expr, "(?!") || strings.HasPrefix(e.Expr, "(?<"):
		text += " RE2 has no lookahead and no lookbehind."
	case e.Code == syntax.ErrInvalidEscape:
		text += " RE2 has no backreferences."
	default:
		text += ` To search for these characters as they are, escape ( ) [ ] { } . * + ? ^ $ | with \, or write \Q…\E.`
	}
	return text
}

// patternSize is the number of steps a pattern may take at each byte: `(a?){900}` is short and takes 1,800.
func patternSize(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// selectFiles keeps what lies below a folder and matches the glob: against the path from the top, the path below the folder, or,
// without a slash in it, the name alone.
func selectFiles(files []string, folder, glob string) []string {
	var list []string
	for _, f := range files {
		below := f
		if folder != "." {
			var ok bool
			if below, ok = strings.CutPrefix(f, folder+"/"); !ok {
				continue
			}
		}
		if glob == "" || doublestar.MatchUnvalidated(glob, f) || doublestar.MatchUnvalidated(glob, below) ||
			!strings.Contains(glob, "/") && doublestar.MatchUnvalidated(glob, path.Base(f)) {
			list = append(list, f)
		}
	}
	return list
}

// A finder collects matching lines. Its work is linear in what it reads: every line is tried once.
type finder struct {
	set      *Set
	re       *regexp.Regexp
	prefix   string // literal every match begins with; files without it are skipped
	size     int    // of the pattern
	around   int
	deadline time.Time

	work     int // bytes × size since the last look at the clock
	out      strings.Builder
	searched int // files looked into
	skipped  int // binary or too large
	unread   int // could not be opened
	matches  int
	capped   []string // files with more matches than are shown
	stopped  string   // why the search ended early
}

// files searches one file after the other. The error is ctx's.
func (f *finder) files(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.stopped != "" {
			return nil
		}
		data, err := f.load(name)
		if err != nil {
			f.unread++ // gone or closed since it was listed
			continue
		}
		if len(data) > maxSearched || isBinary(data) {
			f.skipped++
			continue
		}
		if err := f.file(ctx, name, data); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) load(name string) ([]byte, error) {
	r, err := f.set.bench.Tree.OpenFile(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxSearched+1))
	return data, errors.Join(err, r.Close())
}

// file adds the matching lines of one file.
func (f *finder) file(ctx context.Context, name string, data []byte) error {
	f.searched++
	if f.prefix != "" && !bytes.Contains(data, []byte(f.prefix)) {
		return nil
	}
	lines := splitLines(data)
	var hits []int
	for i, line := range lines {
		line = f.tried(line)
		if f.work += (len(line) + 1) * f.size; f.work > maxLineWork {
			f.work = 0
			if err := ctx.Err(); err != nil {
				return err
			}
			if time.Now().After(f.deadline) {
				f.stopped = fmt.Sprintf("stopped after %s", searchTime)
				break
			}
		}
		if !f.re.Match(line) {
			continue
		}
		if len(hits) == maxFileMatches {
			f.capped = append(f.capped, name)
			break
		}
		hits = append(hits, i)
		if f.matches++; f.matches == maxMatches {
			f.stopped = fmt.Sprintf("stopped at %d matches", maxMatches)
			break
		}
	}
	f.write(name, lines, hits)
	return nil
}

// tried is the part of a line that the pattern is tried on: no single try may hold up the deadline.
func (f *finder) tried(line []byte) []byte {
	return line[:min(len(line), maxMatchedLine, maxLineWork/f.size)]
}

// splitLines cuts at line ends, which are left out; a final one begins no further line.
func splitLines(data []byte) [][]byte {
	lines := bytes.Split(data, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	for i, l := range lines {
		lines[i] = bytes.TrimSuffix(l, []byte("\r"))
	}
	return lines
}

// write shows hits as grep does: path:12:text, context as path-11-text, groups apart by --.
func (f *finder) write(name string, lines [][]byte, hits []int) {
	shown := -1 // last line written
	for n, hit := range hits {
		from, to := max(hit-f.around, shown+1), min(hit+f.around, len(lines)-1)
		if n+1 < len(hits) {
			to = min(to, hits[n+1]-1)
		}
		if f.around > 0 && f.out.Len() > 0 && (n == 0 || from > shown+1) {
			f.out.WriteString("--\n")
		}
		for i := from; i <= to; i++ {
			sep, at := "-", 0
			if i == hit {
				sep, at = ":", f.re.FindIndex(f.tried(lines[i]))[0]
			}
			fmt.Fprintf(&f.out, "%s%s%d%s%s\n", printableName(name), sep, i+1, sep, f.excerpt(lines[i], at))
		}
		shown = to
		if f.out.Len() > maxFound {
			f.stopped = "stopped at the size of an answer"
			return
		}
	}
}

// excerpt is a line, or of a long one the part around a place in it.
func (f *finder) excerpt(line []byte, at int) string {
	if len(line) <= maxFoundLine {
		return f.set.Clean(string(line))
	}
	// Known values are looked for in more than is shown, so that none is cut before it is found.
	const before, margin = 100, 2000
	from := max(at-before, 0)
	left := tailOf(f.set.Clean(string(line[max(from-margin, 0):at])), min(before, at))
	right := headOf(f.set.Clean(string(line[at:min(at+maxFoundLine+margin, len(line))])), maxFoundLine-len(left))
	if from > 0 {
		left = "[…] " + left
	}
	if at+maxFoundLine-before < len(line) {
		right += " […]"
	}
	return left + right
}

// result is what was found and what was left out.
func (f *finder) result(err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	if f.matches == 0 {
		text := fmt.Sprintf("no match in %d files", f.searched)
		if f.searched == 0 {
			text = "no file to search there (ignored files are left out of folders; name one by its path)"
		}
		if f.skipped > 0 {
			text += fmt.Sprintf("; %d binary or larger than %d MiB left out", f.skipped, maxSearched>>20)
		}
		if f.stopped != "" {
			text += "; " + f.stopped
		}
		return Result{Text: text + "."}, nil
	}
	if n := len(f.capped); n > 0 {
		fmt.Fprintf(&f.out, "[more than %d matches: %s]\n", maxFileMatches, cutLine(strings.Join(f.capped[:min(n, 10)], ", "), 500))
	}
	if f.stopped != "" {
		fmt.Fprintf(&f.out, "[%s; narrow it with path or glob]\n", f.stopped)
	}
	return Result{Text: f.out.String()}, nil
}
