package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"issuesmith/internal/redact"
)

const (
	maxReason   = 3000 // bytes
	reasonCount = 5    // findings named in a reason
	reasonTail  = 2400 // characters of a failing command's output
)

// Reason says for people why the candidate was refused: the first findings, else the first failing
// command and the end of its output; at most 3,000 bytes, "" when it passed. It is plain text with foreign text in it: redact
// it with Redactor.Text, and set it as a code block where markup counts.
func (v *Verdict) Reason() string {
	if v.Passed {
		return ""
	}
	var parts []string
	if n := len(v.Findings); n > 0 {
		var texts []string
		for _, f := range v.Findings[:min(n, reasonCount)] {
			texts = append(texts, f.text()+" ("+f.Rule+")")
		}
		text := "The gate refused the change: " + strings.Join(texts, "; ")
		if n > reasonCount {
			text += fmt.Sprintf("; and %d more", n-reasonCount)
		}
		parts = append(parts, text+".")
	}
	if failing := v.failing(); len(failing) > 0 {
		c := failing[0]
		text := fmt.Sprintf("The test command %s failed: %s", quoted(c.Command), c.ended())
		if n := len(failing) - 1; n > 0 {
			text += fmt.Sprintf(", and %s failed as well", count(n, "other command"))
		}
		text += "."
		if out := strings.TrimSpace(c.Output); out != "" {
			text += " Its output ends:\n" + lastLines(out, reasonTail)
		}
		parts = append(parts, text)
	}
	return redact.Cut(redact.Escapes(strings.Join(parts, " ")), maxReason)
}

// Signature identifies the candidate and why it was refused: two attempts with the same signature made no progress.
// The output of commands does not count, since times and addresses in it differ from run to run.
func (v *Verdict) Signature() string {
	var reasons []string
	for _, f := range v.Findings {
		reasons = append(reasons, fmt.Sprintf("%s %q %d %q", f.Rule, f.Path, f.Line, f.Message))
	}
	for _, c := range v.failing() {
		reasons = append(reasons, fmt.Sprintf("command %q %d %t", c.Command, c.Exit, c.TimedOut))
	}
	slices.Sort(reasons)
	tree := ""
	if v.Change != nil {
		tree = v.Change.Tree
	}
	sum := sha256.Sum256([]byte(tree + "\n" + strings.Join(reasons, "\n")))
	return hex.EncodeToString(sum[:])
}
