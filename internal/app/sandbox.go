package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"issuesmith/internal/actions"
	"issuesmith/internal/config"
	"issuesmith/internal/pipeline"
	"issuesmith/internal/sandbox"
)

// Exit codes when the command did not end by itself: those of timeout(1), and of a shell whose command was interrupted or
// wrote to a pipe that nobody reads.
const (
	exitTimedOut    = 124
	exitInterrupted = 130
	exitUnread      = 141
)

type sandboxOptions struct {
	dir    string
	report bool
	words  []string
	flags  map[string]string
}

func (p *program) newSandbox() *cobra.Command {
	o := sandboxOptions{}
	cmd := &cobra.Command{
		Use: "sandbox [flags] -- COMMAND [ARGUMENT ...]", Short: "Run one command as the agent would",
		Long: "Run one command as the agent would, with the folder itself as the worktree: nothing is copied, and\n" +
			"the command can change everything in it, .git too. One word is a line for the shell; several are\n" +
			"a program and its arguments. Its output goes to stdout as it comes, both streams as one; what the\n" +
			"sandbox has to say goes to stderr. It reads nothing from stdin. It can reach what --network lists;\n" +
			"HOME and TMPDIR are its own and end with it. The settings that concern isolation are read as for\n" +
			"run, from the folder's .gitea/issuesmith.yml too; no other setting is asked for.\n\n" +
			"The exit code is the command's, 128 and the signal's number when it was killed (137: also by a\n" +
			"limit, which stderr names), 124 when --command-timeout was given and has passed, 130 when you\n" +
			"stopped it, 2 for mistakes in what was given, 3 when there is no sandbox to be had.\n\n" +
			"Root gives commands a user of their own, to whom the folder is lent where the kernel can do that\n" +
			"(nothing changes hands on disk); elsewhere that user can change what the folder's permissions\n" +
			"open to everybody, and stderr says so.\n\n" +
			"--report says instead what isolation this place gives, as JSON: level, layers with their state,\n" +
			"limits, what stays open. Its exit code is 3 where --sandbox strict would refuse to run.",
		Args: func(_ *cobra.Command, args []string) error {
			empty := strings.TrimSpace(strings.Join(args, "")) == ""
			switch {
			case o.report && len(args) > 0:
				return errors.New("give either --report or a command")
			case !o.report && empty:
				return errors.New("give a command after --, or --report")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.words, o.flags = args, settingsGiven(cmd)
			return p.runSandbox(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "folder the command works in [the current folder]")
	cmd.Flags().BoolVar(&o.report, "report", false, "print the isolation of this place as JSON")
	addSettingsFor(cmd, config.IsIsolation)
	return cmd
}

func (p *program) runSandbox(ctx context.Context, o sandboxOptions) error {
	ctx, stop := actions.WatchParent(ctx)
	defer stop()
	cfg, dir, err := p.sandboxConfig(o)
	if err != nil {
		return err
	}
	f, err := newFolder((&bench{program: p, step: p.step()}).runsFolder(), 0, true)
	if err != nil {
		return &infraError{err}
	}
	code, err := p.inSandbox(ctx, o, cfg, dir, f)
	if closeErr := f.close(false); closeErr != nil && err == nil {
		err = &infraError{fmt.Errorf("cleaning up: %w", closeErr)}
	}
	if err != nil {
		return err
	}
	return ended(code)
}

// sandboxConfig reads what has to do with isolation; nothing else is asked for.
func (p *program) sandboxConfig(o sandboxOptions) (*config.Config, string, error) {
	dir, err := filepath.Abs(o.dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if info, statErr := os.Stat(dir); err == nil && (statErr != nil || !info.IsDir()) {
		err = errors.New("is no folder")
	}
	if err == nil && dir == "/" && (o.dir != "" || !o.report) {
		err = errors.New("is the whole machine: give the folder of a project")
	}
	var problems config.Problems
	if err != nil {
		problems = append(problems, config.Problem{Where: "flag", Key: "dir", Value: o.dir, Message: err.Error()})
	}
	file, err := os.ReadFile(filepath.Join(dir, repositoryFile)) // #nosec G304 -- the user's own folder
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		problems = append(problems, config.Problem{Where: repositoryFile, Message: err.Error()})
	}
	cfg, err := config.Load(config.Sources{
		Flags: o.flags, Lookup: p.lookup, Environ: p.environ, File: file, FileName: repositoryFile, Local: true, NoModel: true,
	})
	for _, problem := range asProblems(err) {
		if concernsIsolation(problem) {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		return nil, "", problems
	}
	return cfg, dir, nil
}

// concernsIsolation: other settings may be wrong or missing, but a file that cannot be read as a whole may hold the
// very setting that is missed.
func concernsIsolation(problem config.Problem) bool {
	known := slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.Name == problem.Key })
	return config.IsIsolation(problem.Key) || !known && strings.HasPrefix(problem.Where, repositoryFile)
}

func (p *program) inSandbox(ctx context.Context, o sandboxOptions, cfg *config.Config, dir string, f *folder) (int, error) {
	if err := os.MkdirAll(f.work, 0o711); err != nil { // #nosec G301 -- the commands' user must pass through
		return 0, &infraError{err}
	}
	if o.report && o.dir == "" {
		// The report is about the machine: it must not depend on whether commands could enter the current folder.
		dir = filepath.Join(f.work, "tree")
		if err := os.Mkdir(dir, 0o711); err != nil { // #nosec G301 -- as above
			return 0, &infraError{err}
		}
	}
	options := pipeline.SandboxOptions(cfg, dir, f.work, p.getenv("PATH"))
	options.Live = func() io.WriteCloser { return openWriter{p.stdout} }
	box, err := sandbox.New(options) //nolint:contextcheck // names are looked up within a limit of its own
	if o.report {
		return p.printReport(box, err)
	}
	if err != nil {
		return 0, &infraError{err}
	}
	defer func() { _ = box.Close() }()
	return p.runCommand(ctx, box, o, cfg, dir)
}

// printReport prints what New reached, or what it refused.
func (p *program) printReport(box *sandbox.Sandbox, err error) (int, error) {
	var report sandbox.Report
	code := pipeline.ExitDone
	var weak *sandbox.WeakError
	switch {
	case errors.As(err, &weak):
		report, code, err = weak.Report, pipeline.ExitInfrastructure, nil // the report says why
	case err != nil:
		return 0, &infraError{err}
	default:
		report = box.Report()
		err = box.Close()
	}
	encoder := json.NewEncoder(p.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err = errors.Join(encoder.Encode(report), err); err != nil {
		return 0, &infraError{fmt.Errorf("printing the report: %w", err)}
	}
	return code, nil
}

func (p *program) runCommand(ctx context.Context, box *sandbox.Sandbox, o sandboxOptions, cfg *config.Config, dir string) (int, error) {
	report := box.Report()
	if cfg.Sandbox != string(sandbox.Strict) {
		for _, open := range report.Open {
			p.say("not closed: %s", open)
		}
	}
	for _, name := range report.Names {
		p.say("network: %s", name)
	}
	if home, err := filepath.EvalSymlinks(p.getenv("HOME")); err == nil && home == dir {
		p.say("%s is your home folder: the command can read and change everything in it", dir)
	}
	if box.Owner().Drop {
		// Whether the folder could be lent shows only inside.
		if r, err := box.Run(ctx, sandbox.Command{Script: "[ -w . ]"}); err == nil && r.Exit == 1 {
			p.say("commands run as user %d, who cannot write to %s: give it to that user, or run this as its owner", box.Owner().UID, dir)
		}
	}
	timeout := time.Duration(0)
	if o.flags["command-timeout"] != "" {
		timeout = cfg.CommandTimeout
	}
	commandsAgain := p.stopCommands()
	r, err := box.Run(ctx, sandbox.Command{Script: script(o.words), Timeout: timeout})
	commandsAgain()
	switch {
	case errors.Is(err, syscall.EPIPE) || errors.Is(context.Cause(ctx), actions.ErrUnread):
		return exitUnread, nil
	case ctx.Err() != nil:
		p.say("%v", context.Cause(ctx))
		return exitInterrupted, nil
	case err != nil:
		return 0, &infraError{err}
	}
	for _, note := range r.Notes {
		p.say("%s", note)
	}
	if r.TimedOut {
		p.say("stopped after %s, command-timeout", timeout)
		return exitTimedOut, nil
	}
	return r.Exit, nil
}

// say tells on stderr what the command's own output does not.
func (p *program) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, "issuesmith: "+format+"\n", args...)
}

// stopCommands keeps the runner from taking what the command prints for workflow commands, until the returned function is called. Outside
// of a workflow step nobody reads them.
func (p *program) stopCommands() (again func()) {
	if !p.step().Active {
		return func() {}
	}
	token := rand.Text()
	_, _ = fmt.Fprintf(p.stdout, "::stop-commands::%s\n", token)
	return func() { _, _ = fmt.Fprintf(p.stdout, "\n::%s::\n", token) }
}

// script is the shell's line for the words of a command.
func script(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// openWriter is a writer that stays open.
type openWriter struct{ io.Writer }

func (openWriter) Close() error { return nil }
