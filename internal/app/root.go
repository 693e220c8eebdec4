package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"issuesmith/internal/config"
)

const about = `issuesmith turns an issue of a Gitea repository into a pull request: a language model works on a
clean copy of the repository, programs check what it did, and a person reviews and merges.

In a workflow step it needs no command. On a desk, try

  issuesmith demo                               the main job on a bundled project
  issuesmith run --repo DIR --issue-file FILE   your repository and an issue in a file, no forge
  issuesmith check                              what is configured, and every mistake in it
  issuesmith sandbox --report                   how commands are kept apart on this machine`

// notBuilt are commands and flags that a later version brings.
var (
	notBuiltCommands = []string{"worker", "bench"}
	notBuiltFlags    = map[string][]string{"show": {"html", "traj"}}
)

func (p *program) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "issuesmith", Short: "From a labelled issue to a checked pull request", Long: about,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if slices.Contains(notBuiltCommands, args[0]) {
				return fmt.Errorf("the command %q is not built yet", args[0])
			}
			return fmt.Errorf("there is no command %q", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.step().Active {
				return p.runRun(cmd.Context(), &runOptions{})
			}
			return cmd.Help()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolP("help", "h", false, "help for the command")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 100"))
	root.AddCommand(p.newRun(), p.newSweep(), p.newCheck(), p.newPreflight(), p.newDemo(), p.newShow(), p.newReplay(), p.newSandbox(), p.newVersion())
	return root
}

// flagError says "not built yet" for what a later version brings, and else what the flags' library says.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	name := unknown.GetSpecifiedName()
	if slices.Contains(config.NotBuilt(), name) || slices.Contains(notBuiltFlags[cmd.Name()], name) {
		return fmt.Errorf("--%s is not built yet", name)
	}
	return err
}

// addSettings gives a command a flag for every setting that is not for the repository file only.
func addSettings(cmd *cobra.Command) { addSettingsFor(cmd, func(string) bool { return true }) }

// addSettingsFor gives a command a flag for each of these settings.
func addSettingsFor(cmd *cobra.Command, wanted func(name string) bool) {
	for _, s := range config.Settings() {
		if s.FileOnly || !wanted(s.Name) {
			continue
		}
		usage := s.Help
		if s.Range != "" {
			usage += " (" + s.Range + ")"
		}
		if s.Secret {
			usage += "; better in the environment, where other processes cannot read it"
		}
		if s.Default != "" {
			usage += " [" + s.Default + "]"
		}
		cmd.Flags().String(s.Name, "", usage)
		if s.Bool {
			cmd.Flags().Lookup(s.Name).NoOptDefVal = "true"
		}
	}
}

// settingsGiven are the flags of settings that stand on the command line.
func settingsGiven(cmd *cobra.Command) map[string]string {
	given := map[string]string{}
	for _, s := range config.Settings() {
		if f := cmd.Flags().Lookup(s.Name); f != nil && f.Changed {
			given[s.Name] = f.Value.String()
		}
	}
	return given
}

// oneFile is the argument of show and replay.
func oneFile(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("give one file, %s; got %d: %s", what, len(args), strings.Join(args, " "))
		}
		return nil
	}
}
