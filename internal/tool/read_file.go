package tool

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

//go:embed read_file.md
var readFileText string

const readFileSchema = `{"type":"object","properties":{"path":{"type":"string"},"start":{"type":"integer","minimum":1,"description":"first line"},"lines":{"type":"integer","minimum":1,"maximum":2000}},"required":["path"],"additionalProperties":false}`

const (
	defaultLines = 400
	maxLines     = 2000
	maxPage      = 30 << 10 // bytes of one answer
	maxLine      = 2000     // bytes shown of one line
	maxScan      = 32 << 20 // bytes of a file that are looked at
	maxEntries   = 200      // of a folder
)

type readFileArguments struct {
	Path  string `json:"path"`
	Start int    `json:"start"`
	Lines int    `json:"lines"`
}

func (a readFileArguments) problem() string {
	switch {
	case a.Path == "":
		return `"path" is missing or empty ("." is the top folder).`
	case a.Start < 0:
		return `"start" counts lines from 1.`
	case a.Lines < 0:
		return `"lines" is negative.`
	}
	return ""
}

func (s *Set) readFile(ctx context.Context, a readFileArguments) (Result, error) {
	if file, ok := s.kept(a.Path); ok {
		f, err := openKept(file)
		if errors.Is(err, fs.ErrNotExist) {
			return failed("%s is empty.", a.Path), nil
		}
		if err != nil {
			return Result{}, fmt.Errorf("opening a kept output: %w", err)
		}
		return s.page(ctx, f, a.Path, a)
	}
	name, refusal := s.clean(a.Path)
	if refusal != "" {
		return failed("%s", refusal), nil
	}
	info, refusal := s.stat(ctx, name)
	if refusal != "" {
		return failed("%s", refusal), ctx.Err()
	}
	if info.IsDir() {
		return s.list(name)
	}
	if !info.Mode().IsRegular() {
		return failed("%s is %s, not a file.", name, kindOf(info.Mode())), nil
	}
	f, err := s.bench.Tree.OpenFile(name)
	if err != nil {
		return fault("reading "+name, err)
	}
	r, err := s.page(ctx, f, name, a)
	if err == nil && !r.Failed {
		s.seen[name] = true
	}
	return r, err
}

// page shows the wanted lines of a file and closes it.
func (s *Set) page(ctx context.Context, f io.ReadCloser, name string, a readFileArguments) (Result, error) {
	defer func() { _ = f.Close() }() // read only: nothing can be lost
	from, count := max(a.Start, 1), a.Lines
	if count == 0 {
		count = defaultLines
	}
	p := pager{set: s, from: from, until: from + min(count, maxLines)}
	in := bufio.NewReaderSize(io.LimitReader(f, maxScan), 64<<10)
	start, err := in.Peek(8000)
	if err != nil && !errors.Is(err, io.EOF) {
		return fault("reading "+name, err)
	}
	if isBinary(start) {
		return failed("%s is a binary file.", name), nil
	}
	if err := p.read(ctx, in); err != nil {
		return fault("reading "+name, err)
	}
	return p.result(name), nil
}

// A pager collects the lines from, from+1, … of a file as far as until and the size of a page allow, and counts the
// rest. A line's memory is bounded, however long it is.
type pager struct {
	set         *Set
	from, until int
	out         strings.Builder
	line        int // number of the last line begun
	next        int // first line that was wanted or follows, and is not shown; 0: none
	scanned     int64
	crlf        bool
}

func (p *pager) read(ctx context.Context, in *bufio.Reader) error {
	const enough = 2 * maxLine // a value that begins before the cut is whole before it is looked for
	var text []byte
	size, begun := 0, false
	for {
		piece, err := in.ReadSlice('\n')
		p.scanned += int64(len(piece))
		if len(piece) > 0 && !begun {
			p.line++
			begun = true
			if p.line%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		wanted := p.line >= p.from && p.next == 0
		if wanted && len(text) < enough {
			text = append(text, piece[:min(len(piece), enough-len(text))]...)
		}
		size += len(piece)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if begun && wanted {
			p.show(text, size)
		}
		text, size, begun = text[:0], 0, false
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// show adds a line, or notes that the page is full.
func (p *pager) show(text []byte, size int) {
	if p.line >= p.until {
		p.next = p.line
		return
	}
	if bytes.HasSuffix(text, []byte("\r\n")) {
		p.crlf = true
	}
	if p.line == 1 {
		text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))
	}
	line := p.set.Clean(strings.TrimRight(string(text), "\r\n"))
	if size > maxLine {
		line = headOf(line, maxLine)
		line = fmt.Sprintf("%s[… line of %d bytes]", line, size)
	}
	line = fmt.Sprintf("%d\t%s\n", p.line, line)
	if p.out.Len() > 0 && p.out.Len()+len(line) > maxPage {
		p.next = p.line
		return
	}
	p.out.WriteString(line)
}

// result is the page with what has to be known of the rest.
func (p *pager) result(name string) Result {
	if p.line == 0 {
		return Result{Text: name + " is empty."}
	}
	if p.from > p.line {
		return failed("%s has only %d lines.", name, p.line)
	}
	total := fmt.Sprint(p.line)
	if p.scanned >= maxScan {
		total = fmt.Sprintf("more than %d", p.line)
	}
	if p.next != 0 {
		fmt.Fprintf(&p.out, "[lines %d–%d of %s; go on with start=%d]\n", p.from, p.next-1, total, p.next)
	} else if p.from > 1 || p.scanned >= maxScan {
		fmt.Fprintf(&p.out, "[lines %d–%d of %s]\n", p.from, p.line, total)
	}
	if p.crlf {
		p.out.WriteString("[line ends are CRLF; edit_file keeps them]\n")
	}
	return Result{Text: p.out.String()}
}

// list shows a folder, one entry a line.
func (s *Set) list(name string) (Result, error) {
	root, refusal := s.root()
	if refusal != "" {
		return failed("%s", refusal), nil
	}
	defer func() { _ = root.Close() }() // as in stat
	// What was a folder a moment ago may be a pipe by now: without O_NONBLOCK opening it would wait for ever.
	d, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fault("listing "+name, err)
	}
	defer func() { _ = d.Close() }() // as in stat
	entries, err := d.ReadDir(-1)
	if err != nil {
		return fault("listing "+name, err)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	var b strings.Builder
	fmt.Fprintf(&b, "%s is a folder of %d entries:\n", name, len(entries))
	for _, e := range entries[:min(len(entries), maxEntries)] {
		mark := ""
		switch {
		case e.IsDir():
			mark = "/"
		case e.Type()&fs.ModeSymlink != 0:
			mark = " (symbolic link)"
		case !e.Type().IsRegular():
			mark = " (" + kindOf(e.Type()) + ")"
		}
		fmt.Fprintf(&b, "%s%s\n", printableName(e.Name()), mark)
	}
	if len(entries) > maxEntries {
		fmt.Fprintf(&b, "[… %d more; use bash: ls, find]\n", len(entries)-maxEntries)
	}
	return Result{Text: cutMiddle(b.String(), maxPage, 0, "")}, nil
}

// printableName shows a file's name on one line: a name may hold a line end and pose as another entry.
func printableName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}
