package agent

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"text/template"
	"unicode/utf8"

	"issuesmith/internal/endpoint"
	"issuesmith/internal/tool"
)

//go:embed system.md
var systemText string

//go:embed task.md
var taskText string

// What of a text the model sees, in characters.
const (
	maxBody     = 20_000
	maxTitle    = 300
	maxComment  = 4_000
	maxComments = 20_000 // of all together; the latest are kept
	maxGuide    = 8_000
	maxGuides   = 24_000
	maxPlaybook = 8_000
	maxCommand  = 500
	maxNote     = 500
	maxNotes    = 40
	maxFeedback = 60_000 // its parts have budgets of their own
)

// Messages are the first messages of an attempt: system prompt and task. They depend on nothing but the arguments, so that
// the same task has the same bytes.
func Messages(b Brief, _ []tool.Definition, limits Limits) []endpoint.Message {
	return []endpoint.Message{
		{Role: endpoint.System, Content: fill("system", systemText, limits)},
		{Role: endpoint.User, Content: fill("task", taskText, prepare(b))},
	}
}

// fill runs an embedded template. Those are part of the program and tested, so that a failure is a mistake in it.
func fill(name, text string, data any) string {
	var out strings.Builder
	if err := template.Must(template.New(name).Parse(text)).Execute(&out, data); err != nil {
		panic(fmt.Sprintf("template %s: %v", name, err))
	}
	return strings.TrimSpace(out.String())
}

// A task is a Brief made fit for the template: bounded, cleaned, with a mark that none of its texts holds.
type task struct {
	Brief
	Mark            string
	EarlierComments int
}

func prepare(b Brief) task {
	t := task{Brief: b}
	t.Title, t.URL = line(b.Title, maxTitle), line(b.URL, maxTitle)
	t.Body = block(b.Body, maxBody)
	t.Comments, t.EarlierComments = latest(b.Comments)
	t.Guidance = nil
	left := maxGuides
	for _, g := range b.Guidance {
		if left <= 0 {
			break
		}
		text := block(g.Text, min(maxGuide, left))
		if left -= utf8.RuneCountInString(text); text != "" {
			t.Guidance = append(t.Guidance, Guide{line(g.Path, maxTitle), text})
		}
	}
	t.Playbook = block(b.Playbook, maxPlaybook)
	t.Feedback = block(b.Feedback, maxFeedback)
	t.TestCommands = lines(b.TestCommands, maxCommand)
	t.Notes = lines(b.Notes[:min(len(b.Notes), maxNotes)], maxNote)
	t.Mark = unused(t)
	return t
}

// latest cleans the comments and keeps the last ones that fit, in their order; the count is of those left out.
func latest(all []Comment) (kept []Comment, left int) {
	room := maxComments
	from := len(all)
	for from > 0 && room > 0 {
		from--
		c := all[from]
		c.Author, c.Where, c.Body = line(c.Author, maxTitle), line(c.Where, maxTitle), block(c.Body, maxComment)
		if room -= utf8.RuneCountInString(c.Body); room < 0 {
			from++
			break
		}
		kept = append([]Comment{c}, kept...)
	}
	return kept, from
}

// unused makes the name of the marks round data: a hash of all of it, taken again until no text holds it. Whoever writes an issue
// can therefore not write its end.
func unused(t task) string {
	t.Mark = ""
	text := fill("task", taskText, t)
	for sum := sha256.Sum256([]byte(text)); ; sum = sha256.Sum256(sum[:]) {
		mark := "data-" + hex.EncodeToString(sum[:8])
		if !strings.Contains(text, mark) {
			return mark
		}
	}
}

// clip makes a text fit: at most limit characters, valid UTF-8, line ends LF, no control characters but tabs. It also says how many bytes
// it left out at the end. The work is bounded by the limit, not by the text.
func clip(s string, limit int) (text string, cut int) {
	// A character has up to four bytes: the rest need not be looked at.
	if most := 4*limit + utf8.UTFMax; len(s) > most {
		s, cut = s[:most], len(s)-most
	}
	var b strings.Builder
	n := 0
	for i, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		if n == limit {
			cut += len(s) - i
			break
		}
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			continue
		}
		b.WriteRune(r) // an invalid byte is read as U+FFFD
		n++
	}
	return strings.TrimSpace(b.String()), cut
}

// block is a clipped text of several lines that says what is missing.
func block(s string, limit int) string {
	text, cut := clip(s, limit)
	if cut > 0 {
		text += fmt.Sprintf("\n[… about %d bytes more are not shown]", cut)
	}
	return text
}

// line is a clipped text of one line.
func line(s string, limit int) string {
	text, cut := clip(s, limit)
	text = strings.Join(strings.Fields(text), " ")
	if cut > 0 {
		text += "…"
	}
	return text
}

func lines(list []string, limit int) []string {
	var out []string
	for _, s := range list {
		if s = line(s, limit); s != "" {
			out = append(out, s)
		}
	}
	return out
}
