package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"issuesmith/internal/forge"
)

// FileBytes is how large an issue file may be.
const FileBytes = 5 << 20

// ReadIssueFile reads an issue: the title is the first line (a Markdown "# " before it is
// dropped), the body is the rest. Invalid UTF-8 and NULs are cleaned.
func ReadIssueFile(path string) (title, body string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", "", fmt.Errorf("reading the issue file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err := io.ReadAll(io.LimitReader(file, FileBytes+1))
	if err != nil {
		return "", "", fmt.Errorf("reading the issue file: %w", err)
	}
	if len(data) > FileBytes {
		return "", "", fmt.Errorf("issue file %s is larger than %d MiB: shorten it", path, FileBytes>>20)
	}
	title, body = splitIssue(string(data))
	if title == "" {
		return "", "", fmt.Errorf("issue file %s has no title: its first line must be one, the rest is the body", path)
	}
	return title, body, nil
}

func splitIssue(text string) (title, body string) {
	text = forge.CleanText(strings.TrimPrefix(text, "\ufeff"))
	title, body, _ = strings.Cut(text, "\n")
	title = forge.CleanTitle(title)
	if title == "#" {
		title = ""
	}
	return strings.TrimPrefix(title, "# "), strings.Trim(body, "\n")
}
