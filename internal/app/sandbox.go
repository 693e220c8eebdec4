package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"issuesmith/internal/actions"
	"issuesmith/internal/config"
	"issuesmith/internal/pipeline"
	"issuesmith/internal/sandbox"
)

// exitTimedOut is what timeout(1) ends with.
const exitTimedOut = 124

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
		Long: "Run one command as the agent would, in the folder itself, with the command's exit code. One word is\n" +
			"a line for the shell; several are a program and its arguments. The command can change the folder,\n" +
			"read toolchains, and reach what --network lists; HOME and TMPDIR are its own and end with it.\n" +
			"Root gives commands a user of their own, to whom the folder is lent where the kernel can do that\n" +
			"(nothing changes hands on disk); elsewhere that user can change what its permissions open to\n" +
			"everybody. --report says instead what isolation this place gives,\n" +
			"as JSON, with exit code 3 where --sandbox strict would refuse to run.",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.report && len(args) > 0:
				return errors.New("give either --report or a command")
			case !o.report && len(args) == 0:
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
	f, err := newFolder(p.stateFolder(), 0, true)
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
	if err == nil && dir == "/" {
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
		if config.IsIsolation(problem.Key) {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		return nil, "", problems
	}
	return cfg, dir, nil
}

func (p *program) inSandbox(ctx context.Context, o sandboxOptions, cfg *config.Config, dir string, f *folder) (int, error) {
	if err := os.MkdirAll(f.work, 0o711); err != nil { // #nosec G301 -- the commands' user must pass through
		return 0, &infraError{err}
	}
	options := pipeline.SandboxOptions(cfg, dir, f.work, p.getenv("PATH"))
	options.Live = func() io.WriteCloser { return openWriter{p.stdout} }
	box, err := sandbox.New(options) //nolint:contextcheck // names are looked up within a limit of its own
	var weak *sandbox.WeakError
	if o.report && (err == nil || errors.As(err, &weak)) {
		var report sandbox.Report
		code := pipeline.ExitDone
		if weak != nil {
			report, code, err = weak.Report, pipeline.ExitInfrastructure, nil // the report says why
		} else {
			report = box.Report()
			err = box.Close()
		}
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		return code, errors.Join(encoder.Encode(report), err)
	}
	if err != nil {
		return 0, &infraError{err}
	}
	defer func() { _ = box.Close() }()
	timeout := time.Duration(0)
	if o.flags["command-timeout"] != "" {
		timeout = cfg.CommandTimeout
	}
	result, err := box.Run(ctx, sandbox.Command{Script: script(o.words), Timeout: timeout})
	if err != nil {
		return 0, &infraError{err}
	}
	p.tellResult(box.Report(), result, timeout)
	if result.TimedOut {
		return exitTimedOut, nil
	}
	return result.Exit, nil
}

// tellResult says on stderr what the command's own output does not.
func (p *program) tellResult(report sandbox.Report, r *sandbox.Result, timeout time.Duration) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(p.stderr, "issuesmith: "+format+"\n", args...) }
	if len(report.Weak) > 0 {
		say("this place is weak: %s", strings.Join(report.Weak, "; "))
	}
	if r.TimedOut {
		say("stopped after %s, command-timeout", timeout)
	}
	for _, note := range r.Notes {
		say("%s", note)
	}
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
