package worktree

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

const contextLines = 3

// Patch is the change as a unified diff that git apply takes, binary files as a note.
// Notes stand between the files and start with "# ", which git apply passes over.
func (t *Tree) Patch(c *Change) (string, error) {
	var b strings.Builder
	for _, f := range c.Files {
		if err := t.patchFile(&b, f); err != nil {
			return "", fmt.Errorf("write the patch of %s: %w", f.Path, err)
		}
	}
	return b.String(), nil
}

func (t *Tree) patchFile(b *strings.Builder, f File) error {
	if _, ok := modeOf(f.New.Kind); !ok && f.Op != Deleted {
		fmt.Fprintf(b, "# %s: %s, a %s, is not shown\n", quote(f.Path), f.Op, f.New.Kind)
		return nil
	}
	if f.Binary {
		fmt.Fprintf(b, "# %s: %s, binary or large, %d to %d bytes, is not shown\n", quote(f.Path), f.Op, f.Old.Size, f.New.Size)
		return nil
	}
	before, after, err := t.sides(f)
	var large *TooLargeError
	if errors.As(err, &large) {
		fmt.Fprintf(b, "# %s: %s, %d bytes, is not shown\n", quote(f.Path), f.Op, large.Size)
		return nil
	}
	if err != nil {
		return err
	}
	if f.Op == Modified && typeOf(f.Old.Kind) != typeOf(f.New.Kind) {
		// git shows a file that became a link as one that went and one that came.
		writeFilePatch(b, f.Path, f.Old, Side{}, before, nil)
		writeFilePatch(b, f.Path, Side{}, f.New, nil, after)
		return nil
	}
	writeFilePatch(b, f.Path, f.Old, f.New, before, after)
	return nil
}

// typeOf is a kind without the executable bit.
func typeOf(k Kind) Kind {
	if k == KindExecutable {
		return KindFile
	}
	return k
}

func writeFilePatch(b *strings.Builder, path string, from, to Side, before, after []byte) {
	old, now := quote("a/"+path), quote("b/"+path)
	fmt.Fprintf(b, "diff --git %s %s\n", old, now)
	oldMode, newMode := modeText(from.Kind), modeText(to.Kind)
	suffix := ""
	switch {
	case from.Kind == KindNone:
		fmt.Fprintf(b, "new file mode %s\n", newMode)
		old = "/dev/null"
	case to.Kind == KindNone:
		fmt.Fprintf(b, "deleted file mode %s\n", oldMode)
		now = "/dev/null"
	case oldMode != newMode:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", oldMode, newMode)
	default:
		suffix = " " + newMode
	}
	if from.Hash == to.Hash {
		return
	}
	fmt.Fprintf(b, "index %s..%s%s\n", hashText(from.Hash), hashText(to.Hash), suffix)
	d := diffLines(before, after)
	if len(d.spans) == 0 {
		return // an empty file came or went
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", endName(old), endName(now))
	d.write(b)
}

// endName adds the tab that git puts behind names with blanks in them.
func endName(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

func hashText(hash string) string {
	if hash == "" {
		return plumbing.ZeroHash.String()
	}
	return hash
}

func modeText(k Kind) string {
	mode, ok := modeOf(k)
	if !ok {
		mode = filemode.Submodule
	}
	return fmt.Sprintf("%06o", uint32(mode))
}

// write writes the hunks of a difference.
func (d *lineDiff) write(b *strings.Builder) {
	for i := 0; i < len(d.spans); {
		j := i + 1 // spans closer than twice the context share a hunk
		for j < len(d.spans) && d.spans[j].oldStart-d.spans[j-1].oldEnd <= 2*contextLines {
			j++
		}
		d.writeHunk(b, d.spans[i:j])
		i = j
	}
}

func (d *lineDiff) writeHunk(b *strings.Builder, spans []span) {
	first, last := spans[0], spans[len(spans)-1]
	lead := min(contextLines, first.oldStart)
	tail := min(contextLines, len(d.before)-last.oldEnd)
	oldStart, newStart := first.oldStart-lead, first.newStart-lead
	fmt.Fprintf(b, "@@ -%s +%s @@\n",
		hunkRange(oldStart, last.oldEnd+tail-oldStart), hunkRange(newStart, last.newEnd+tail-newStart))
	at := oldStart
	for _, s := range spans {
		for ; at < s.oldStart; at++ {
			writeLine(b, ' ', d.before[at])
		}
		for ; at < s.oldEnd; at++ {
			writeLine(b, '-', d.before[at])
		}
		for _, line := range d.after[s.newStart:s.newEnd] {
			writeLine(b, '+', line)
		}
	}
	for ; at < last.oldEnd+tail; at++ {
		writeLine(b, ' ', d.before[at])
	}
}

func hunkRange(start, length int) string {
	switch length {
	case 0:
		return fmt.Sprintf("%d,0", start)
	case 1:
		return fmt.Sprintf("%d", start+1)
	default:
		return fmt.Sprintf("%d,%d", start+1, length)
	}
}

func writeLine(b *strings.Builder, sign byte, line []byte) {
	b.WriteByte(sign)
	b.Write(line)
	if !bytes.HasSuffix(line, []byte("\n")) {
		b.WriteString("\n\\ No newline at end of file\n")
	}
}

// quote writes a name as git does (core.quotePath): in quotes with octal escapes when it
// has anything but printable ASCII in it.
func quote(name string) string {
	plain := true
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
		}
	}
	if plain {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
