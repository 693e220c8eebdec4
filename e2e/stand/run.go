package stand

import (
	"context"
	"fmt"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
)

// A Run is one workflow run that has ended.
type Run struct {
	ID         int64
	Event      string
	Title      string
	Attempt    int64
	Status     string
	Conclusion string // success, failure, cancelled, skipped
	Log        string // the logs of all its jobs
}

// Runs lists the repository's workflow runs, oldest first.
func (r *Repo) Runs() ([]*gitea.ActionWorkflowRun, error) {
	got, _, err := r.Maintainer.ListRepoActionRuns(r.Owner, r.Name, gitea.ListRepoActionRunsOptions{ListOptions: gitea.ListOptions{PageSize: 50}})
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	runs := got.WorkflowRuns
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	return runs, nil
}

// WaitRun waits until the n-th run (from 0) has ended.
func (r *Repo) WaitRun(ctx context.Context, n int) (*Run, error) {
	return r.WaitAttempt(ctx, n, 0)
}

// WaitAttempt waits until the n-th run (from 0) has ended in at least its given
// attempt; Re-run raises the attempt.
func (r *Repo) WaitAttempt(ctx context.Context, n int, attempt int64) (*Run, error) {
	for {
		runs, err := r.Runs()
		if err != nil {
			return nil, err
		}
		if len(runs) > n && runs[n].Status == "completed" {
			run, err := r.ended(runs[n])
			if err != nil || run.Attempt >= attempt {
				return run, err
			}
		}
		if err := sleep(ctx, 250*time.Millisecond); err != nil {
			return nil, fmt.Errorf("run %d of %s did not end (%s): %w\n%s", n, r.FullName(), states(runs), err, r.Story())
		}
	}
}

// WaitStarted waits until there are n runs and returns the ids of all.
func (r *Repo) WaitStarted(ctx context.Context, n int) ([]int64, error) {
	for {
		runs, err := r.Runs()
		if err != nil {
			return nil, err
		}
		if len(runs) >= n {
			var ids []int64
			for _, run := range runs {
				ids = append(ids, run.ID)
			}
			return ids, nil
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("%s has %d runs, want %d: %w", r.FullName(), len(runs), n, err)
		}
	}
}

func states(runs []*gitea.ActionWorkflowRun) string {
	if len(runs) == 0 {
		return "no run was started"
	}
	var out []string
	for _, run := range runs {
		out = append(out, fmt.Sprintf("run %d %s: %s %s", run.ID, run.Event, run.Status, run.Conclusion))
	}
	return strings.Join(out, "; ")
}

// ended reads what is told of the run's jobs: 1.26 gives a run no attempt of its own.
func (r *Repo) ended(run *gitea.ActionWorkflowRun) (*Run, error) {
	jobs, _, err := r.Maintainer.ListRepoActionRunJobs(r.Owner, r.Name, run.ID, gitea.ListRepoActionJobsOptions{})
	if err != nil {
		return nil, fmt.Errorf("jobs of run %d: %w", run.ID, err)
	}
	ended := &Run{ID: run.ID, Event: run.Event, Title: run.DisplayTitle, Status: run.Status, Conclusion: run.Conclusion}
	var log strings.Builder
	for _, j := range jobs.Jobs {
		ended.Attempt = max(ended.Attempt, j.RunAttempt)
		if j.Conclusion == "skipped" || j.StartedAt.IsZero() {
			continue
		}
		data, _, err := r.Maintainer.GetRepoActionJobLogs(r.Owner, r.Name, j.ID)
		if err != nil {
			fmt.Fprintf(&log, "(job %d has no log: %v)\n", j.ID, err)
			continue
		}
		log.Write(data)
	}
	ended.Log = log.String()
	return ended, nil
}

// Cancel cancels a run as a person does it in the page.
func (r *Repo) Cancel(ctx context.Context, run int64) error {
	return r.stand.Post(ctx, r.Maintainer, fmt.Sprintf("/%s/actions/runs/%d/cancel", r.FullName(), run))
}

// Rerun starts a run again, as the button "Re-run all jobs" does.
func (r *Repo) Rerun(run int64) error {
	_, _, err := r.Maintainer.RerunRepoActionRun(r.Owner, r.Name, run)
	if err != nil {
		return fmt.Errorf("re-running %d: %w", run, err)
	}
	return nil
}

// Story tells everything about the repository's runs, for a test that failed.
func (r *Repo) Story() string {
	runs, err := r.Runs()
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", r.FullName(), states(runs))
	for _, run := range runs {
		ended, err := r.ended(run)
		if err != nil {
			fmt.Fprintf(&out, "--- run %d: %v\n", run.ID, err)
			continue
		}
		fmt.Fprintf(&out, "--- log of run %d, attempt %d\n%s\n", run.ID, ended.Attempt, ended.Log)
	}
	return out.String()
}
