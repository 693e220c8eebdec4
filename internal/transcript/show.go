package transcript

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"issuesmith/internal/redact"
)

// How much of a text Show gives, in lines from each end.
const (
	resultLines = 20
	modelLines  = 12
	lineWidth   = 400 // bytes of one line
)

// Show writes the transcript as text for a person. Lines that cannot be read are
// named in their place, and the first of them is the error at the end. What was
// recorded is foreign text: terminal escapes are stripped.
func Show(w io.Writer, r io.Reader) error {
	out := &shower{w: bufio.NewWriter(w)}
	var bad error
	for event, err := range Read(r) {
		if err != nil {
			if bad == nil {
				bad = err
			}
			out.line("", "! "+err.Error())
			continue
		}
		out.event(event)
	}
	if err := out.w.Flush(); err != nil {
		return fmt.Errorf("show the transcript: %w", err)
	}
	return bad
}

type shower struct {
	w     *bufio.Writer // keeps its first error until Flush
	began time.Time
}

func (o *shower) event(e Event) {
	if o.began.IsZero() {
		o.began = e.Time
	}
	show := map[Kind]func(Event) error{
		KindRun: o.run, KindSnapshot: o.snapshot, KindAttempt: o.attempt, KindPrompt: o.prompt, KindModel: o.model,
		KindCall: o.call, KindResult: o.result, KindGate: o.gate, KindNote: o.note, KindEnd: o.end,
	}[e.Kind]
	if show != nil && show(e) == nil {
		return
	}
	// Unknown, or of another version: its data as it is.
	o.head(e, "%s", e.Kind)
	o.data(e.Data)
}

// head starts an event: time since the run began, attempt.step, what it is.
func (o *shower) head(e Event, format string, args ...any) {
	where := ""
	if e.Attempt > 0 {
		where = fmt.Sprint(e.Attempt)
		if e.Step > 0 {
			where += fmt.Sprintf(".%d", e.Step)
		}
	}
	at := max(e.Time.Sub(o.began), 0).Truncate(time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d  %-5s %s", int(at.Hours()), int(at.Minutes())%60, int(at.Seconds())%60, where, oneLine(fmt.Sprintf(format, args...)))
	o.line("", strings.TrimRight(text, " "))
}

func (o *shower) run(e Event) error {
	r, err := Decode[Run](e)
	if err != nil {
		return err
	}
	o.line("", fmt.Sprintf("issuesmith %s, run %s, %s", r.Version, r.ID, e.Time.UTC().Format(time.RFC3339)))
	o.line("", fmt.Sprintf("issue #%d: %s", r.Issue, oneLine(r.Title)))
	o.line("", fmt.Sprintf("repository %s, base %s (%s)", r.Repository, short(r.Base), r.Branch))
	o.line("", fmt.Sprintf("model %s, sandbox %s", r.Model, r.Sandbox))
	o.isolation(r.Isolation)
	for _, key := range slices.Sorted(maps.Keys(r.Config)) {
		value, err := json.Marshal(r.Config[key])
		if err != nil {
			return err
		}
		o.line("  ", key+": "+strings.Trim(string(value), `"`))
	}
	o.line("", "")
	return nil
}

// isolation shows what of the sandbox's report matters to a person. A report of another form is not worth an error.
func (o *shower) isolation(text json.RawMessage) {
	var report struct {
		Level string   `json:"level"`
		Open  []string `json:"open"`
	}
	if json.Unmarshal(text, &report) != nil || report.Level == "" {
		return
	}
	o.line("", "isolation: "+oneLine(report.Level))
	for _, open := range report.Open {
		o.line("  ", "not closed: "+oneLine(open))
	}
}

func (o *shower) snapshot(e Event) error {
	s, err := Decode[Snapshot](e)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("snapshot %s: %s", s.At, count(s.Files, "file"))
	if s.Tree != "" {
		text += ", tree " + short(s.Tree)
	}
	o.head(e, "%s", text)
	return nil
}

func (o *shower) attempt(e Event) error {
	a, err := Decode[Attempt](e)
	if err != nil {
		return err
	}
	if a.Phase == "start" {
		o.line("", "")
		o.head(e, "attempt %d starts %s", e.Attempt, a.Reason)
	} else {
		text := fmt.Sprintf("attempt %d ends", e.Attempt)
		if a.Reason != "" {
			text += ": " + a.Reason
		}
		o.head(e, "%s, %s", text, count(a.Calls, "model call"))
	}
	o.block("    ", a.Summary, modelLines)
	return nil
}

func (o *shower) prompt(e Event) error {
	p, err := Decode[Prompt](e)
	if err != nil {
		return err
	}
	o.head(e, "prompt: system %d bytes, task %d bytes", len(p.System), len(p.Task))
	o.block("    ", p.Task, modelLines)
	return nil
}

func (o *shower) model(e Event) error {
	m, err := Decode[Model](e)
	if err != nil {
		return err
	}
	if m.Error != "" {
		o.head(e, "model failed after %s: %s", seconds(m.Seconds), strings.TrimSpace(m.ErrorKind+" "+m.Error))
		return nil
	}
	o.head(e, "%s, %s, first token %s, %s, %s", strings.TrimSpace("model "+m.Model), seconds(m.Seconds), seconds(m.FirstToken), m.Usage, m.Finish)
	o.block("    ", m.Content, modelLines)
	return nil // the calls follow as events of their own
}

func (o *shower) call(e Event) error {
	c, err := Decode[ToolCall](e)
	if err != nil {
		return err
	}
	o.arguments(c)
	return nil
}

func (o *shower) result(e Event) error {
	r, err := Decode[ToolResult](e)
	if err != nil {
		return err
	}
	state := "ok"
	if r.Failed {
		state = "failed"
	}
	o.block("    │ ", r.Output, resultLines)
	o.line("    ", fmt.Sprintf("└ %s, %s", state, seconds(r.Seconds)))
	return nil
}

func (o *shower) gate(e Event) error {
	v, err := Decode[struct {
		Passed *bool `json:"passed"`
	}](e)
	if err != nil || v.Passed == nil {
		return fmt.Errorf("no verdict: %w", err)
	}
	o.line("", "")
	if *v.Passed {
		o.head(e, "gate: passed")
	} else {
		o.head(e, "gate: refused")
	}
	o.data(e.Data)
	return nil
}

func (o *shower) note(e Event) error {
	n, err := Decode[Note](e)
	if err != nil {
		return err
	}
	first, rest, _ := strings.Cut(n.Text, "\n")
	o.head(e, "note: %s", first)
	o.block("    ", rest, modelLines)
	return nil
}

func (o *shower) end(e Event) error {
	d, err := Decode[End](e)
	if err != nil {
		return err
	}
	text := d.Status
	if d.Class != "" {
		text += " (" + d.Class + ")"
	}
	o.line("", "")
	o.head(e, "end: %s, exit %d, %s, %s, %s", text, d.Exit, seconds(d.Seconds), count(d.Calls, "model call"), d.Usage)
	o.block("    ", d.Reason, modelLines)
	return nil
}

// String is usage for a person.
func (u Usage) String() string {
	about := ""
	if u.Estimated {
		about = "about "
	}
	text := fmt.Sprintf("%s%d tokens in (%d cached), %d out", about, u.Prompt, u.Cached, u.Completion)
	if !u.CostKnown {
		return text + ", cost unknown"
	}
	return text + fmt.Sprintf(", $%.4f", u.Cost)
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// short is a hash as people write it.
func short(hash string) string {
	if len(hash) == 40 || len(hash) == 64 {
		return hash[:10]
	}
	return hash
}

// oneLine makes foreign text fit into a line of ours.
func oneLine(s string) string {
	return strings.Join(strings.Fields(redact.Escapes(s)), " ")
}
