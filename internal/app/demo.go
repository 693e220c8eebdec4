package app

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/spf13/cobra"

	"issuesmith/internal/endpoint"
	"issuesmith/internal/sandbox"
)

// The bundled project is broken on purpose; the bundled answers repair it at the second attempt,
// after the gate refused the first.
//
//go:embed demo
var bundled embed.FS

func (p *program) newDemo() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "demo", Short: "The main job on a bundled project; no account, no network", Args: cobra.NoArgs,
		Long: "Runs the whole job on a bundled broken project and a bundled issue, with recorded answers of a\n" +
			"model: the first attempt fails the gate, the second repairs it. It writes to folders of its own\n" +
			"only, below ~/.local/state/issuesmith.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runDemo(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the outcome as JSON on stdout, the log on stderr")
	return cmd
}

func (p *program) runDemo(ctx context.Context, asJSON bool) error {
	// The project stays beside the run, so that a person can look at it and fetch the branch into it.
	dir, err := p.demoFolder()
	if err != nil {
		return &infraError{fmt.Errorf("making the demo's folder: %w", err)}
	}
	project := filepath.Join(dir, "project")
	if err := unpack(project); err != nil {
		return &infraError{fmt.Errorf("unpacking the bundled project: %w", err)}
	}
	answers, err := bundled.Open("demo/answers.jsonl")
	if err != nil {
		return err
	}
	defer func() { _ = answers.Close() }() // only read
	client, err := endpoint.NewReplay(answers, "demo")
	if err != nil {
		return err
	}
	issue := filepath.Join(dir, "issue.md")
	text, err := bundled.ReadFile("demo/issue.md")
	if err == nil {
		err = os.WriteFile(issue, text, 0o600)
	}
	if err != nil {
		return &infraError{err}
	}
	// The demo is the same whatever the caller's environment configures.
	inner := *p
	inner.environ = func() []string {
		return []string{"PATH=" + p.getenv("PATH"), "HOME=" + p.getenv("HOME"), "XDG_STATE_HOME=" + p.getenv("XDG_STATE_HOME")}
	}
	return inner.runRun(ctx, &runOptions{request: request{
		dir: project, issueFile: issue, json: asJSON, client: client,
		// It takes the isolation there is; the log and the pull request say what is missing.
		flags: map[string]string{"test-commands": "sh tests/run.sh", "max-attempts": "2", "sandbox": string(sandbox.BestEffort)},
	}})
}

func (p *program) demoFolder() (string, error) {
	parent := p.stateFolder()
	if err := os.MkdirAll(parent, passable()); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, stamp()+"-demo-")
}

// unpack makes a git repository of the bundled project.
func unpack(dir string) error {
	project, err := fs.Sub(bundled, "demo/project")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, project); err != nil {
		return err
	}
	repository, err := git.PlainInitWithOptions(dir, &git.PlainInitOptions{
		InitOptions: git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName("main")},
	})
	if err != nil {
		return err
	}
	tree, err := repository.Worktree()
	if err != nil {
		return err
	}
	if err := tree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return err
	}
	author := &object.Signature{Name: "A person", Email: "person@example.test", When: time.Now()}
	_, err = tree.Commit("A clock that tells durations", &git.CommitOptions{Author: author, Committer: author})
	return err
}
