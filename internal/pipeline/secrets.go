package pipeline

import (
	"bytes"
	"context"

	"issuesmith/internal/redact"
)

// searched is up to which size a file is looked through for a secret.
const searched = 1 << 20

// learnSecrets makes the secret values of test-env known to the redaction, but for those that stand
// in the repository: they are no secret there, and blanking them would spoil the model's edits.
func (r *run) learnSecrets(ctx context.Context) error {
	unseen := map[string]bool{}
	for _, value := range r.Config.TestSecrets() {
		if !redact.Ordinary(value) {
			unseen[value] = true
		}
	}
	// Whatever happens below, what was not found to be ordinary is redacted.
	defer func() {
		for value := range unseen {
			r.Redact.Add(value)
		}
	}()
	if len(unseen) == 0 || r.tree == nil {
		return nil
	}
	files, err := r.tree.Files(ctx)
	if err != nil {
		return err
	}
	for _, path := range files {
		content, err := r.tree.ReadFile(path)
		if err != nil || len(content) > searched {
			continue // a huge file is data, where a match would be chance
		}
		for value := range unseen {
			if bytes.Contains(content, []byte(value)) {
				delete(unseen, value)
				r.note("a secret of test-env stands in " + path + ", so it is not redacted; use another value")
			}
		}
		if len(unseen) == 0 {
			break
		}
	}
	return nil
}
