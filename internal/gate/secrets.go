package gate

import "issuesmith/internal/worktree"

// findSecrets refuses added lines and new names that hold a value known to this run: such a value must never
// reach a commit. The finding names the place, never the value.
func findSecrets(c *candidate) ([]Finding, error) {
	if c.redact == nil {
		return nil, nil
	}
	const hint = "read secrets from the environment at run time; never write them into a file"
	var found []Finding
	for _, f := range c.kept {
		if f.Op == worktree.Added && c.redact.Holds(f.Path) {
			found = append(found, Finding{Path: f.Path, Message: "the file's name holds a secret value of this run", Hint: hint})
		}
		if !isText(f) {
			continue
		}
		content, err := c.after(f)
		if err != nil {
			return nil, err
		}
		// One look at the whole file is cheaper than one at each line.
		if !c.redact.Holds(string(content)) {
			continue
		}
		lines, err := c.lines(f)
		if err != nil {
			return nil, err
		}
		whole := true // a value of several lines shows in the file, but in none of its lines
		for _, l := range lines {
			if c.redact.Holds(l.Text) {
				whole = false
				found = append(found, Finding{Path: f.Path, Line: l.Number, Message: "the line holds a secret value of this run", Hint: hint})
			}
		}
		if whole && len(lines) > 0 {
			before, err := c.before(f)
			if err != nil {
				return nil, err
			}
			if !c.redact.Holds(string(before)) {
				found = append(found, Finding{Path: f.Path, Message: "the file holds a secret value of this run", Hint: hint})
			}
		}
	}
	return found, nil
}
