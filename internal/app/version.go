package app

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version says what was built.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// release and commit are set by the linker in release builds (-X).
var release, commit string

// buildVersion takes the version from the linker, else from the build's own record.
func buildVersion() Version {
	v := Version{Version: release, Commit: commit, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok && v.Version == "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for i := 0; ok && v.Commit == "" && i < len(info.Settings); i++ {
		if info.Settings[i].Key == "vcs.revision" {
			v.Commit = info.Settings[i].Value
		}
	}
	if v.Version == "" {
		v.Version = "development"
	}
	if v.Commit == "" {
		v.Commit = "unknown"
	}
	return v
}

func (p *program) newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Version, commit and Go version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(p.stdout).Encode(p.version)
			}
			_, err := fmt.Fprintf(p.stdout, "issuesmith %s (commit %s, %s)\n", p.version.Version, p.version.Commit, p.version.Go)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
