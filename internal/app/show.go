package app

import (
	"os"

	"github.com/spf13/cobra"

	"issuesmith/internal/transcript"
)

func (p *program) newShow() *cobra.Command {
	return &cobra.Command{
		Use: "show TRANSCRIPT", Short: "A transcript as text", Args: oneFile("a transcript"),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := os.Open(args[0]) // #nosec G304 -- the user's own argument
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }() // only read
			return transcript.Show(p.stdout, f)
		},
	}
}
