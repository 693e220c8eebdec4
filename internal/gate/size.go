package gate

import "fmt"

// findEmpty refuses a change that changes nothing.
func findEmpty(c *candidate) ([]Finding, error) {
	if len(c.files) > 0 {
		return nil, nil
	}
	return []Finding{{Message: "nothing was changed", Hint: "edit the files that solve the issue; files that git ignores do not count"}}, nil
}

// findLimits refuses a change that is too large to be reviewed, and surely is not minimal.
func findLimits(c *candidate) ([]Finding, error) {
	const hint = "make the least change that solves the issue; undo reformatting and generated files"
	var found []Finding
	if n, limit := len(c.kept), c.rules.MaxFiles; limit > 0 && n > limit {
		found = append(found, Finding{Message: fmt.Sprintf("%d files changed; %d are allowed (max-changed-files)", n, limit), Hint: hint})
	}
	lines := 0
	for _, f := range c.kept {
		lines += f.Added + f.Removed
	}
	if limit := c.rules.MaxLines; limit > 0 && lines > limit {
		found = append(found, Finding{Message: fmt.Sprintf("%d lines added or removed; %d are allowed (max-changed-lines)", lines, limit), Hint: hint})
	}
	return found, nil
}
