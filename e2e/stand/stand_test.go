package stand

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestStand proves the harness without the product: a label becomes an event,
// a job on a runner as an ordinary user, and its log is read back; the job is
// cancelled in the page and run again.
func TestStand(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 15*time.Minute)
	defer stop()
	s, err := Start(ctx, Options{Runners: 1, Capacity: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Logs())
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if left := s.ours(); len(left) > 0 {
			t.Errorf("left running: %+v", left)
		}
	})
	owner, err := s.NewPerson("owner")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Checkout(ctx); err != nil {
		t.Fatal(err)
	}
	dir, err := CopyTemplate("trivial", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.NewRepo(ctx, owner, owner.Name, "trivial", dir, true)
	if err != nil {
		t.Fatal(err)
	}
	issue, err := r.Issue("Title", "Body")
	if err != nil {
		t.Fatal(err)
	}
	short, stopShort := context.WithTimeout(ctx, time.Minute)
	defer stopShort()
	if err := r.Label(issue, "ai:queued"); err != nil {
		t.Fatal(err)
	}
	run, err := r.WaitRun(short, 0)
	if err != nil {
		t.Fatal(err)
	}
	if run.Conclusion != "success" || !strings.Contains(run.Log, "hello from the trivial workflow") {
		t.Errorf("run %+v", run)
	}
	if !strings.Contains(run.Log, fmt.Sprintf(" %d\n", s.UID())) || os.Geteuid() == 0 && s.UID() == 0 {
		t.Errorf("the job did not run as uid %d:\n%s", s.UID(), run.Log)
	}
	if err := r.Rerun(run.ID); err != nil {
		t.Fatal(err)
	}
	again, err := r.WaitAttempt(short, 0, run.Attempt+1)
	if err != nil {
		t.Fatal(err)
	}
	if again.ID != run.ID || again.Conclusion != "success" {
		t.Errorf("re-run: %+v", again)
	}
}
