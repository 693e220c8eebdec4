// Package app is the command line: it turns flags, the workflow step and the checkout into one
// run of the pipeline, and its outcome into outputs, text and an exit code.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"issuesmith/internal/config"
	"issuesmith/internal/pipeline"
)

// An ExitCode is what the process ends with; the README's section on commands has the meanings.
type ExitCode int

// program is what a command can see of the world. Tests give their own.
type program struct {
	environ func() []string
	stdout  io.Writer
	stderr  io.Writer
	version Version
}

// Main runs the command line of this process.
func Main() ExitCode {
	// Commands of the model may run as our user: without this they could read our environment and memory,
	// where the token is (proc(5), PR_SET_DUMPABLE). It fails for no caller.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	ctx, stop := stoppable(context.Background())
	defer stop()
	p := &program{environ: os.Environ, stdout: os.Stdout, stderr: os.Stderr, version: buildVersion()}
	return p.run(ctx, os.Args[1:])
}

// stoppable ends the context with ErrStopped at the first SIGTERM, SIGINT or SIGHUP; a second one
// kills the process at once.
func stoppable(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			cancel(pipeline.ErrStopped)
			signal.Stop(signals)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// run executes one command line.
func (p *program) run(ctx context.Context, args []string) ExitCode {
	root := p.newRoot() //nolint:contextcheck // cobra hands ctx to the commands
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	return p.exit(root, err)
}

// exit tells the error, once, and turns it into the exit code.
func (p *program) exit(root *cobra.Command, err error) ExitCode {
	var ended *endedError
	var problems config.Problems
	var infra *infraError
	switch {
	case err == nil:
		return pipeline.ExitDone
	case errors.As(err, &ended):
		return ExitCode(ended.code)
	case errors.As(err, &problems):
		_, _ = fmt.Fprintln(p.stderr, problems.Error())
		return pipeline.ExitConfiguration
	case errors.As(err, &infra):
		_, _ = fmt.Fprintln(p.stderr, "issuesmith: "+infra.Error())
		return pipeline.ExitInfrastructure
	default:
		_, _ = fmt.Fprintf(p.stderr, "issuesmith: %v\nSee %s --help.\n", err, root.Name())
		return pipeline.ExitConfiguration
	}
}

// An endedError carries an exit code whose reason has been told already.
type endedError struct{ code int }

func (e *endedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func ended(code int) error {
	if code == pipeline.ExitDone {
		return nil
	}
	return &endedError{code}
}

// An infraError is a failure of the machine or the forge outside a run.
type infraError struct{ err error }

func (e *infraError) Error() string { return e.err.Error() }

func (e *infraError) Unwrap() error { return e.err }

func (p *program) getenv(name string) string {
	value, _ := p.lookup(name)
	return value
}

func (p *program) lookup(name string) (string, bool) {
	prefix := name + "="
	environ := p.environ()
	for i := len(environ) - 1; i >= 0; i-- {
		if len(environ[i]) >= len(prefix) && environ[i][:len(prefix)] == prefix {
			return environ[i][len(prefix):], true
		}
	}
	return "", false
}
