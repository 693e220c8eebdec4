package gitea

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"issuesmith/internal/forge"
)

// Dispatch starts a workflow file on a branch. Repeating it would start it twice, so it is not.
func (f *Forge) Dispatch(ctx context.Context, workflow, branch string) error {
	doing := fmt.Sprintf("starting workflow %s on %s", workflow, branch)
	_, res, err := f.Client(ctx).DispatchRepoActionWorkflow(f.owner, f.name, workflow,
		sdk.CreateActionWorkflowDispatchOption{Ref: branch}, false)
	switch {
	case err == nil:
		return nil
	case status(res) == http.StatusNotFound:
		// Its words say whether the workflow or the branch is missing; it must be on the default
		// branch and have `workflow_dispatch` among its triggers.
		return fmt.Errorf("%s: %s: %w", doing, f.answer(http.StatusNotFound, err), forge.ErrNotFound)
	}
	return f.failed(doing, runsWrite, res, err)
}

// runState asks about a workflow run. GITHUB_RUN_ID is the id the API knows it by. Whatever
// keeps the forge from telling makes it unknown; url is its page when known.
func (f *Forge) runState(ctx context.Context, run string) (state forge.RunState, url string) {
	id, err := strconv.ParseInt(run, 10, 64)
	if err != nil || id <= 0 {
		return forge.RunUnknown, "" // of a desk
	}
	r, _, err := f.Client(ctx).GetRepoActionRun(f.owner, f.name, id)
	if err != nil || r.ID != id {
		return forge.RunUnknown, ""
	}
	return mapState(r.Status, r.Conclusion), r.HTMLURL
}

// mapState knows Gitea's words and those of its model, GitHub.
func mapState(status, conclusion string) forge.RunState {
	switch status {
	case "queued", "waiting", "in_progress", "pending", "requested":
		return forge.RunActive
	case "completed":
		switch conclusion {
		case "cancelled":
			return forge.RunCancelled
		case "":
			return forge.RunUnknown
		}
		return forge.RunFinished
	}
	return forge.RunUnknown
}
