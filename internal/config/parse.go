package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Numbers are read by their text and nothing else: strconv alone would also take
// "+5", "0x10", "1e3", "1_000", "Inf" and "NaN", of which a person meant none.
var (
	wholeForm    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	decimalForm  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	durationForm = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?[hms])+$`)
	plainForm    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
)

// parseWhole reads a whole number from low to high.
func parseWhole(text string, low, high int) (int, error) {
	want := fmt.Errorf("must be a whole number, %s", wholeRange(low, high))
	if !wholeForm.MatchString(text) {
		return 0, want
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, want
	}
	return n, nil
}

func wholeRange(low, high int) string { return fmt.Sprintf("%d–%d", low, high) }

// parseAmount reads an amount of money, 0 or more and finite.
func parseAmount(text string) (float64, error) {
	want := errors.New("must be a number of at least 0, like 5 or 0.50")
	if !decimalForm.MatchString(text) {
		return 0, want
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0, want
	}
	return n, nil
}

// parseDuration reads 20m, 90s or 1h30m, from low to high.
func parseDuration(text string, low, high time.Duration) (time.Duration, error) {
	between := durationRange(low, high)
	if plainForm.MatchString(text) {
		return 0, fmt.Errorf("has no unit: write %ss or %sm, %s", text, text, between)
	}
	if !durationForm.MatchString(text) {
		return 0, fmt.Errorf("must be a duration like 90s, 20m or 1h30m, %s", between)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > high {
		return 0, fmt.Errorf("must be a duration like 90s, 20m or 1h30m, %s", between)
	}
	return d, nil
}

func durationRange(low, high time.Duration) string {
	return shortDuration(low) + "–" + shortDuration(high)
}

// shortDuration is d in the largest unit that needs no fraction: 2h, 100m, 90s.
func shortDuration(d time.Duration) string {
	switch {
	case d%time.Hour == 0 && d != 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0 && d != 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// parseBool reads true or false; forms like 1, yes and on are refused here, since
// YAML and shells disagree about them.
func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// splitCommands takes a text of commands apart: one a line, or separated by ";;".
// Lines that are only a comment are not commands: as a test command such a line
// would always pass.
func splitCommands(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if isComment(line) {
			continue
		}
		for command := range strings.SplitSeq(line, ";;") {
			if command = strings.TrimSpace(command); command != "" && !isComment(command) {
				out = append(out, command)
			}
		}
	}
	return out
}

func isComment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// plain refuses what no one-line value may hold.
func plain(text string) error {
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return errors.New("must be one line of text without control characters")
		}
	}
	return nil
}
