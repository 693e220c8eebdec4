package agent

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"issuesmith/internal/tool"
	"issuesmith/internal/transcript"
)

const (
	repeatWindow = 10 // steps that are looked at
	repeatLimit  = 5  // times the same call gives the same result in them, at which the attempt ends
)

// A print stands for a call with its result.
type print [sha256.Size]byte

// printOf tells calls with their results apart. A call that changes nothing itself is another call once a file was
// edited: `go vet` after every edit is no loop. The name of a kept output, new each time, does not count.
func printOf(call transcript.Call, r tool.Result, edits int) print {
	text := r.Text
	if r.Kept != "" {
		text = strings.ReplaceAll(text, r.Kept, "")
	}
	if r.Changed {
		edits = 0
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", call.Name, call.Arguments, text, edits))
}

// repeated reports whether one print occurs repeatLimit times in the last repeatWindow steps.
func repeated(steps [][]print) bool {
	count := make(map[print]int)
	for _, step := range steps[max(len(steps)-repeatWindow, 0):] {
		for _, p := range step {
			if count[p]++; count[p] >= repeatLimit {
				return true
			}
		}
	}
	return false
}
