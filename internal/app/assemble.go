package app

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"issuesmith/internal/actions"
	"issuesmith/internal/config"
	"issuesmith/internal/endpoint"
	"issuesmith/internal/forge"
	"issuesmith/internal/forge/gitea"
	"issuesmith/internal/pipeline"
	"issuesmith/internal/redact"
	"issuesmith/internal/worktree"
)

// repositoryFile is the configuration that lies in the repository.
const repositoryFile = ".gitea/issuesmith.yml"

// A bench is everything a run needs, put together from flags, step and checkout.
type bench struct {
	program    *program
	step       actions.Step
	config     *config.Config
	redact     *redact.Redactor
	log        *actions.Log
	out        io.Writer // for results: stdout, unless that is the log
	dir        string    // the checkout's folder
	repository *worktree.Repository
	base       string
	branch     string
	run        string // workflow run, or a name of our own
	attempt    int
	forge      forge.Forge
	remote     worktree.Remote
	client     endpoint.Client
	desk       *deskIssue // set with the local forge
}

// What a command asks of assemble.
type request struct {
	flags     map[string]string
	dir       string // --repo
	issueFile string // --issue-file: the local forge
	json      bool
	local     bool  // a local forge that the caller makes
	noForge   bool  // nothing is asked of a forge
	noModel   bool  // nothing is asked of a model
	base      *base // found already, instead of in a checkout
	// client, when set, answers instead of the configured model.
	client endpoint.Client
}

func (p *program) step() actions.Step { return actions.FromEnv(p.getenv) }

// assemble reads and checks everything and touches nothing. Mistakes are config.Problems, all of them at once.
func (p *program) assemble(q request) (*bench, error) {
	b := &bench{program: p, step: p.step(), redact: redact.New()}
	b.run, b.attempt = p.identity(b.step)
	problems := b.openRepository(q)
	file, err := b.repositoryFile()
	if err != nil {
		problems = append(problems, config.Problem{Where: repositoryFile, Message: err.Error()})
	}
	cfg, err := config.Load(config.Sources{
		Flags: q.flags, Lookup: p.lookup, Environ: p.environ, File: file, FileName: repositoryFile, Local: q.issueFile != "" || q.local || q.noForge,
		NoModel: q.noModel || q.client != nil,
	})
	problems = append(problems, asProblems(err)...)
	b.config = cfg
	b.startLog(q.json)
	if b.repository != nil {
		b.branch, problems = b.baseBranch(problems)
	}
	if len(problems) > 0 {
		return b, append(problems, b.forgotten(q, file)...)
	}
	if err := b.connect(q); err != nil {
		return b, err
	}
	for _, note := range cfg.Notes {
		b.log.Printf(actions.Warn, "%s", note)
	}
	return b, nil
}

func asProblems(err error) config.Problems {
	var problems config.Problems
	switch {
	case err == nil:
		return nil
	case errors.As(err, &problems):
		return problems
	default:
		return config.Problems{{Message: err.Error()}}
	}
}

// openRepository finds the checkout: --repo, else the workspace of the step, else the current folder.
func (b *bench) openRepository(q request) config.Problems {
	if q.base != nil {
		b.repository, b.base, b.branch = q.base.repository, q.base.commit, q.base.branch
		return nil
	}
	dir := q.dir
	if dir == "" {
		dir = b.step.Workspace
	}
	if dir == "" {
		dir = "."
	}
	b.dir = dir
	problem := func(err error) config.Problems {
		message := err.Error()
		if errors.Is(err, worktree.ErrNoCommits) {
			message += "; make a first commit"
		}
		return config.Problems{{Where: "checkout", Key: "repo", Value: dir, Message: message}}
	}
	repository, err := worktree.Open(dir)
	if err != nil {
		return problem(err)
	}
	head, err := repository.Head()
	if err == nil {
		err = repository.Complete(head.Commit)
	}
	if err != nil {
		return problem(err)
	}
	b.repository, b.base, b.branch = repository, head.Commit, head.Branch
	return nil
}

// repositoryFile reads the configuration from the base commit, never from the folder: an
// untracked file there is nobody's decision.
func (b *bench) repositoryFile() ([]byte, error) {
	if b.repository == nil {
		return nil, nil
	}
	file, err := b.repository.ReadFile(b.base, repositoryFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// forgotten explains mistakes on a desk whose cause may be a repository file without a commit.
func (b *bench) forgotten(q request, file []byte) config.Problems {
	if b.step.Active || b.repository == nil || file != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(q.dir, repositoryFile)); err != nil {
		return nil
	}
	return config.Problems{{Where: repositoryFile, Message: "is in the folder but not in the commit, and a run reads the commit: commit it first"}}
}

// baseBranch is what the pull request goes to: what is configured, what is checked out, or the
// branch of the workflow whose commit is checked out with a detached head.
func (b *bench) baseBranch(problems config.Problems) (string, config.Problems) {
	if b.config.BaseBranch != "" {
		return b.config.BaseBranch, problems
	}
	if b.branch != "" {
		return b.branch, problems
	}
	if branch, ok := strings.CutPrefix(b.step.Ref, "refs/heads/"); ok {
		return branch, problems
	}
	branches, err := b.repository.Branches(b.base)
	if err == nil && len(branches) == 1 {
		return branches[0], problems
	}
	return "", append(problems, config.Problem{Where: "checkout", Key: "base-branch", Message: fmt.Sprintf(
		"the commit %.10s is checked out, not a branch; set base-branch to the branch the pull request should go to", b.base)})
}

// startLog opens the log: in a step it is stdout, which the runner reads for commands.
func (b *bench) startLog(asJSON bool) {
	// The test secrets follow when the run knows which of them are ordinary words of the repository.
	b.redact.Add(b.config.Credentials()...)
	b.redact.Personal(b.config.Personal)
	to, inStep := b.program.stderr, false
	b.out = b.program.stdout
	if b.step.Active && !asJSON {
		to, inStep = b.program.stdout, true
		b.out = io.Discard
	}
	b.log = actions.NewLog(to, inStep, level(b.config.LogLevel), b.redact)
	b.log.Mask(b.config.Credentials()...)
}

// connect makes the clients of forge and model.
func (b *bench) connect(q request) error {
	c := b.config
	if b.client = q.client; b.client == nil && !q.noModel {
		if problem := unpriced(c); problem != nil {
			return config.Problems{*problem}
		}
		client, err := endpoint.New(endpoint.Options{Config: c, Wait: b.waiting})
		if err != nil {
			return config.Problems{{Where: "model", Key: "model", Value: c.Model.String(), Message: err.Error()}}
		}
		b.client = client
	}
	switch {
	case q.issueFile != "":
		return b.connectLocal(q)
	case q.local || q.noForge:
		return nil
	}
	f, err := gitea.New(gitea.Options{
		ServerURL: c.ServerURL, Repository: c.Repository, Token: c.Token, Repo: b.repository, Redact: b.redact.Text,
		Run: b.run, Attempt: b.attempt,
	})
	if err != nil {
		return config.Problems{{Where: "forge", Key: "server-url", Value: c.ServerURL, Message: err.Error()}}
	}
	b.forge, b.remote = f, f.Remote()
	return nil
}

// unpriced: a cost limit that was set by hand cannot be held without a price.
func unpriced(c *config.Config) *config.Problem {
	if _, known := endpoint.PriceOf(c); known || !c.CostLimitGiven || c.CostLimit == 0 {
		return nil
	}
	return &config.Problem{Where: "model", Key: "cost-limit", Value: fmt.Sprint(c.CostLimit), Message: fmt.Sprintf(
		"the price of %s is not known, so the limit could not be held; add it under `prices` in %s, or set cost-limit to 0", c.Model, repositoryFile)}
}

// options are the pipeline's, but for the issue.
func (b *bench) options(f *folder) pipeline.Options {
	host, _ := os.Hostname()
	return pipeline.Options{
		Config: b.config, Version: b.program.version.Version, Folder: f.dir, Work: f.work, Path: b.program.getenv("PATH"),
		Repository: b.repository, Base: b.base, BaseBranch: b.branch, Forge: b.forge, Remote: b.remote, Client: b.client,
		Redact: b.redact, Log: runLog{b.log},
		Claim: forge.Claim{Run: b.run, Attempt: b.attempt, Host: host}, RunURL: b.step.RunURL,
	}
}

// identity is what the claim calls this run.
func (p *program) identity(step actions.Step) (run string, attempt int) {
	// act calls every run "1", which is some real run's number on the forge.
	act := p.getenv("ACT") == "true" && p.getenv("GITEA_ACTIONS") != "true"
	if step.RunID == "" || act {
		return "desk-" + randomName(), 1
	}
	return step.RunID, max(step.RunAttempt, 1)
}

func randomName() string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return hex.EncodeToString(random[:])
}

// runsFolder is where the folders of runs lie.
func (b *bench) runsFolder() string {
	if b.step.Active && b.step.Temp != "" {
		return filepath.Join(b.step.Temp, "issuesmith")
	}
	return b.program.stateFolder()
}

// stateFolder is where a desk keeps things (XDG base directory specification).
func (p *program) stateFolder() string {
	state := p.getenv("XDG_STATE_HOME")
	if home := p.getenv("HOME"); !filepath.IsAbs(state) && filepath.IsAbs(home) {
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(state) {
		state = os.TempDir()
	}
	return filepath.Join(state, "issuesmith")
}
