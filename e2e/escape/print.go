package escape

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Table gathers outcomes, attempt × place.
type Table struct {
	places []string

	mu    sync.Mutex
	lines []*line
	notes []string
}

type line struct {
	row      int
	name     string
	outcomes map[string]Outcome
}

// NewTable makes a table of the places, in this order.
func NewTable(places ...string) *Table { return &Table{places: places} }

// Add puts an outcome in.
func (t *Table) Add(row int, name, place string, o Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.lines, func(l *line) bool { return l.row == row && l.name == name })
	if i < 0 {
		t.lines = append(t.lines, &line{row, name, map[string]Outcome{}})
		i = len(t.lines) - 1
	}
	t.lines[i].outcomes[place] = o
}

// Note adds a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// Settle renames what works in no place here, and lists what failed or was not run.
func (t *Table) Settle() (bad, notRun []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.lines, func(a, b *line) int { return a.row - b.row })
	for _, l := range t.lines {
		works := false
		for _, o := range l.outcomes {
			works = works || o.Word == Refused || o.Word == Reported || o.Bad()
		}
		for place, o := range l.outcomes {
			if !works && o.Word == ByPlace {
				l.outcomes[place] = Outcome{Untested, "it works in no place here; " + o.Why}
			}
		}
		for _, place := range t.places {
			o, ok := l.outcomes[place]
			switch {
			case o.Bad():
				bad = append(bad, fmt.Sprintf("%d %s, %s: %s: %s", l.row, l.name, place, o.Word, o.Why))
			case !ok || o.Word == NotRun:
				notRun = append(notRun, fmt.Sprintf("%d %s, %s", l.row, l.name, place))
			}
		}
	}
	return bad, notRun
}

func (t *Table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	head := append([]string{"#", "attempt"}, t.places...)
	rows := [][]string{head}
	for _, l := range t.lines {
		row := []string{fmt.Sprint(l.row), l.name}
		for _, place := range t.places {
			word := l.outcomes[place].Word
			if word == "" {
				word = NotRun
			}
			row = append(row, word)
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
		}
		b.WriteByte('\n')
	}
	// Why something is not simply refused.
	for _, l := range t.lines {
		for _, place := range t.places {
			if o, ok := l.outcomes[place]; ok && o.Word != Refused {
				fmt.Fprintf(&b, "\n%d %s, %s: %s: %s", l.row, l.name, place, o.Word, firstLine(o.Why))
			}
		}
	}
	for _, note := range t.notes {
		b.WriteString("\n" + note)
	}
	b.WriteByte('\n')
	return b.String()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
