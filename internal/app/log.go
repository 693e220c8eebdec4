package app

import (
	"io"

	"issuesmith/internal/actions"
)

// runLog lets the pipeline write to the workflow's log without knowing that there is one.
type runLog struct{ log *actions.Log }

func (l runLog) Stage(name string, state func() string) { l.log.Stage(name, state) }

func (l runLog) Infof(format string, args ...any) { l.log.Printf(actions.Info, format, args...) }

func (l runLog) Warnf(format string, args ...any) { l.log.Printf(actions.Warn, format, args...) }

func (l runLog) Foreign() io.WriteCloser { return l.log.Foreign() }

func level(name string) actions.Level {
	return map[string]actions.Level{"debug": actions.Debug, "info": actions.Info, "warn": actions.Warn, "error": actions.Error}[name]
}
