package config

import (
	"slices"
	"time"
)

// Isolation is what commands may reach and use.
type Isolation struct {
	Sandbox      string   // strict, best-effort, off
	Network      []string // host:port that agent and test commands may reach
	SetupNetwork []string // host:port that setup commands may reach
	SetupOpen    bool     // setup commands may reach everything

	Memory    int64         // bytes of one command
	Processes int           // of one command
	Disk      int64         // bytes of worktree and private folders
	FileSize  int64         // bytes of one file
	OpenFiles int           // of one process
	CPU       time.Duration // processor time of one command
	Output    int64         // bytes that one command prints

	Toolchains []string // more folders to read
	Caches     []string // folders to read through a private copy
}

func isolationSettings() []setting {
	return []setting{
		choice("sandbox", "strict", []string{"strict", "best-effort", "off"},
			"how commands are kept apart: strict refuses a place where a credential could be read or the network is open, best-effort runs and says what is missing, off must be asked for",
			func(c *Config) *string { return &c.Sandbox }),
		network(),
		setupNetwork(),
		size("memory-limit", 4*gib, 64*mib, tib, "memory of one command", func(c *Config) *int64 { return &c.Memory }),
		whole("process-limit", 512, 8, 100_000, "processes of one command", func(c *Config) *int { return &c.Processes }),
		size("disk-limit", 4*gib, mib, 16*tib, "what worktree and private folders may hold together", func(c *Config) *int64 { return &c.Disk }),
		size("file-size-limit", gib, 64*kib, 16*tib, "one file that a command writes", func(c *Config) *int64 { return &c.FileSize }),
		whole("open-files-limit", 8192, 256, 1_048_576, "open files of one process", func(c *Config) *int { return &c.OpenFiles }),
		duration("cpu-limit", time.Hour, time.Second, 24*time.Hour, "processor time of one command", func(c *Config) *time.Duration { return &c.CPU }),
		size("output-limit", 128*mib, mib, 4*gib, "what one command may print", func(c *Config) *int64 { return &c.Output }),
		folders("toolchains", "more folders that commands may read, beside those found on PATH and by the usual variables", func(c *Config) *[]string { return &c.Toolchains }),
		folders("caches", "the machine's caches (Go, npm, Composer, pip, Maven, Cargo) that commands may read, through a private copy", func(c *Config) *[]string { return &c.Caches }),
	}
}

// IsIsolation reports whether a setting has to do with how commands run, and nothing else.
func IsIsolation(name string) bool {
	return name == "test-env" || name == "command-timeout" ||
		slices.ContainsFunc(isolationSettings(), func(s setting) bool { return s.Name == name })
}
