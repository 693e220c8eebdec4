// Command issuesmith turns a labelled issue into a gated pull request.
package main

import (
	"os"

	"issuesmith/internal/app"
)

func main() { os.Exit(int(app.Main())) }
