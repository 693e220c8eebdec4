// Package e2e tests issuesmith from outside, as its users meet it: a real Gitea, its
// real runner, real job tokens, real git. The only fake is the model.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"issuesmith/e2e/model"
	"issuesmith/e2e/parts"
	"issuesmith/e2e/stand"
)

// world is what all tests share: starting it costs more than any of them.
var world struct {
	*stand.Stand
	model      *model.Server
	maintainer *stand.Person // owns the repositories
	reviewer   *stand.Person // may write to them when a test says so
	stranger   *stand.Person // may only read
	// organization has the automation labels.
	organization string
	binary       string // issuesmith, for tests that start it themselves
	action       string // the tree that was published as the action
}

func TestMain(m *testing.M) {
	// Children die with the thread that started them (Pdeathsig): this one stays.
	runtime.LockOSThread()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Minute)
	defer stop()
	start := time.Now()
	// A job that builds the action fetches modules as the caller does.
	proxy, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "go env:", err)
		return 1
	}
	world.Stand, err = stand.Start(ctx, stand.Options{Runners: 2, Capacity: 2, Env: []string{"GOPROXY=" + strings.TrimSpace(string(proxy)), "GOFLAGS=-modcacherw"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := world.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := furnish(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer world.model.Close()
	fmt.Fprintf(os.Stderr, "stand ready after %v\n", time.Since(start).Round(100*time.Millisecond))
	return m.Run()
}

// furnish brings people, actions and the model.
func furnish(ctx context.Context) error {
	var err error
	if world.model, err = model.Start(); err != nil {
		return err
	}
	if world.maintainer, err = world.NewPerson("maintainer"); err != nil {
		return err
	}
	if world.reviewer, err = world.NewPerson("reviewer"); err != nil {
		return err
	}
	if world.stranger, err = world.NewPerson("stranger"); err != nil {
		return err
	}
	world.organization = "house"
	if _, _, err := world.maintainer.CreateOrg(gitea.CreateOrgOption{Name: world.organization}); err != nil {
		return err
	}
	for _, name := range []string{"ai:queued", "ai:running", "ai:ready", "ai:failed"} {
		if _, _, err := world.maintainer.CreateOrgLabel(world.organization, gitea.CreateOrgLabelOption{Name: name, Color: "#123456"}); err != nil {
			return err
		}
	}
	if err := world.Checkout(ctx); err != nil {
		return err
	}
	return publishAction(ctx)
}

// publishAction builds the release as `make dist` does and pushes it as a release tag
// carries it, sources and dist/, and once more without dist/.
func publishAction(ctx context.Context) error {
	root, err := parts.Root()
	if err != nil {
		return err
	}
	top := filepath.Dir(root)
	build := exec.CommandContext(ctx, "make", "-s", "-C", top, "dist", "ARCHS="+runtime.GOARCH)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("make dist: %w\n%s", err, out)
	}
	if err := world.Organization("issuesmith"); err != nil {
		return err
	}
	source := []string{"action.yml", "main.go", "go.mod", "go.sum", "internal"}
	for name, content := range map[string][]string{"source": source, "issuesmith": append(source, "dist")} {
		dir := filepath.Join(world.Dir, "action-"+name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, f := range content {
			if err := parts.CopyTree(filepath.Join(top, f), filepath.Join(dir, f)); err != nil {
				return err
			}
		}
		if err := world.Action(ctx, "issuesmith", name, dir, "v1"); err != nil {
			return err
		}
	}
	world.action = filepath.Join(world.Dir, "action-issuesmith")
	world.binary = filepath.Join(world.action, "dist", "issuesmith-linux-"+runtime.GOARCH)
	return nil
}
