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
		report(p.Name, built.Bin, built.Took)
	}
	if os.Geteuid() != 0 {
		return // what containers are made of needs root
	}
	cache, err := parts.CacheDir()
	if err == nil {
		var debian parts.Debian
		if debian, err = parts.BuildDebian(ctx, cache); err == nil {
			report("debian", debian.Tar, debian.Took)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func report(name, path string, took time.Duration) {
	how := "cached"
	if took > 0 {
		how = "built in " + took.Round(time.Second).String()
	}
	fmt.Printf("%-7s %s (%s)\n", name, path, how)
}
