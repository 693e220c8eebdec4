package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"issuesmith/internal/config"
)

func (p *program) newCheck() *cobra.Command {
	q := request{}
	cmd := &cobra.Command{
		Use: "check", Short: "Check the configuration and print the effective values", Args: cobra.NoArgs,
		Long: "Check the configuration and print the effective values, secrets as ***. Every mistake is listed at\n" +
			"once. Outside a workflow step the credentials (token, model-api-key) are not asked for.\n" +
			"In a workflow step the repository file is read from the checked-out commit, as a run does;\n" +
			"on a desk from the folder, so that it can be checked before it is committed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.flags = settingsGiven(cmd)
			return p.runCheck(q)
		},
	}
	cmd.Flags().StringVar(&q.dir, "repo", "", "folder of the git checkout [the workspace, else the current folder]")
	cmd.Flags().BoolVar(&q.json, "json", false, "as JSON")
	addSettings(cmd)
	return cmd
}

func (p *program) runCheck(q request) error {
	step := p.step()
	b := &bench{program: p, step: step}
	var file []byte
	var problems config.Problems
	var err error
	if step.Active {
		problems = b.openRepository(q)
		file, err = b.repositoryFile()
	} else {
		file, err = os.ReadFile(filepath.Join(q.dir, repositoryFile))
		if errors.Is(err, os.ErrNotExist) {
			file, err = nil, nil
		}
	}
	if err != nil {
		problems = append(problems, config.Problem{Where: repositoryFile, Message: err.Error()})
	}
	// A desk has no token and no forge, and a check needs neither.
	cfg, err := config.Load(config.Sources{
		Flags: q.flags, Lookup: p.lookup, Environ: p.environ, File: file, FileName: repositoryFile, Local: !step.Active, NoModel: !step.Active,
	})
	problems = append(problems, asProblems(err)...)
	if len(problems) == 0 {
		if problem := unpriced(cfg); problem != nil {
			problems = append(problems, *problem)
		}
	}
	if note := b.uncommitted(q, file); note != "" && !step.Active {
		cfg.Notes = append(cfg.Notes, note)
	}
	if err := p.printEffective(cfg, problems, q.json); err != nil {
		return err
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// uncommitted says that a run reads another repository file than the one in the folder. A folder
// that is no usable checkout says nothing: a check needs none.
func (b *bench) uncommitted(q request, file []byte) string {
	if len(b.openRepository(q)) > 0 {
		return ""
	}
	committed, err := b.repositoryFile()
	if err != nil || bytes.Equal(committed, file) {
		return ""
	}
	return fmt.Sprintf("a run reads %s from the commit (%.10s), where it is not the same as in this folder", repositoryFile, b.base)
}

// printEffective prints the values even where some are wrong, so that a person sees what was read.
func (p *program) printEffective(cfg *config.Config, problems config.Problems, asJSON bool) error {
	values := cfg.Effective()
	if asJSON {
		list := []string{}
		for _, problem := range problems {
			list = append(list, problem.String())
		}
		return json.NewEncoder(p.stdout).Encode(map[string]any{"values": values, "notes": append([]string{}, cfg.Notes...), "problems": list})
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if _, err := fmt.Fprintln(p.stdout, strings.TrimSpace(name+": "+shown(values[name]))); err != nil {
			return err
		}
	}
	for _, note := range cfg.Notes {
		if _, err := fmt.Fprintf(p.stdout, "note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// shown is a value as one would write it in the repository file.
func shown(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // && in a command stays as it is
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return b.String()
}
