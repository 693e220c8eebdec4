package pipeline

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"issuesmith/internal/config"
	"issuesmith/internal/sandbox"
)

// SandboxOptions are the sandbox of agent and test commands over the folder dir; HOME and TMPDIR lie in work.
func SandboxOptions(c *config.Config, dir, work, path string) sandbox.Options {
	return sandbox.Options{
		Dir: dir, Home: filepath.Join(work, "home"), Tmp: filepath.Join(work, "tmp"), Env: c.TestEnv, Path: path,
		Mode: sandbox.Mode(c.Sandbox), Network: sandbox.Network{Allow: c.Network},
		Limits: sandbox.Limits{
			Memory: c.Memory, Processes: c.Processes, FileSize: c.FileSize, Disk: c.Disk, OpenFiles: c.OpenFiles, CPU: c.CPU, Output: c.Output,
		},
		Toolchains: c.Toolchains, Caches: c.Caches,
	}
}

func (r *run) sandboxOptions() sandbox.Options {
	o := SandboxOptions(r.Config, filepath.Join(r.Work, "tree"), r.Work, r.Path)
	o.Live = r.Log.Foreign
	if _, err := os.Stat(r.history()); err == nil {
		o.History = r.history()
	}
	return o
}

// history is the folder of the repository that commands can read.
func (r *run) history() string { return filepath.Join(r.Work, "history") }

// tellIsolation logs what commands are kept from and what not.
func (r *run) tellIsolation(report sandbox.Report) {
	r.Log.Infof("isolation: %s", report.Level)
	if missing := notInForce(report); len(missing) > 0 {
		r.Log.Infof("not in force: %s", strings.Join(missing, ", "))
	}
	for _, open := range report.Open {
		r.Log.Infof("not closed: %s", open)
	}
	for _, name := range report.Names {
		r.Log.Infof("network: %s", name)
	}
}

// tellSetup logs in one line how setup commands are isolated: it differs in the network alone.
func (r *run) tellSetup(report sandbox.Report) {
	network := "none"
	switch {
	case r.Config.SetupOpen:
		network = "open"
	case len(r.Config.SetupNetwork) > 0:
		network = strings.Join(r.Config.SetupNetwork, ", ")
	}
	r.Log.Infof("setup commands: isolation: %s, network: %s", report.Level, network)
	for _, name := range report.Names {
		r.Log.Infof("setup-network: %s", name)
	}
}

// notInForce names the layers of a report that are missing. A user of their own makes a user namespace needless.
func notInForce(report sandbox.Report) []string {
	off := func(name string) bool {
		return slices.ContainsFunc(report.Layers, func(l sandbox.Layer) bool { return l.Name == name && l.State != "on" })
	}
	var missing []string
	for _, l := range report.Layers {
		if l.State != "on" && (l.Name != "user namespace" || off("dedicated user")) {
			missing = append(missing, l.Name)
		}
	}
	return missing
}

// isolationRecord is the report for the transcript: of the sandbox, or of the one that strict refused; nil where it did not
// come to either.
func isolationRecord(box *sandbox.Sandbox, refused error) json.RawMessage {
	var report sandbox.Report
	var weak *sandbox.WeakError
	switch {
	case box != nil:
		report = box.Report()
	case errors.As(refused, &weak):
		report = weak.Report
	default:
		return nil
	}
	text, err := json.Marshal(report)
	if err != nil {
		return nil // it is made of texts and numbers
	}
	return text
}
