// Command parts builds what the end-to-end tests need into the cache and prints
// where it lies and how long that took. The tests do the same by themselves; done
// before, a cold build does not count into their time.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"issuesmith/e2e/parts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, p := range parts.All() {
		built, err := parts.Build(ctx, p)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			stop()
			os.Exit(1)
		}
		how := "cached"
		if built.Took > 0 {
			how = "built in " + built.Took.Round(time.Second).String()
		}
		fmt.Printf("%-7s %s (%s)\n", p.Name, built.Bin, how)
	}
}
