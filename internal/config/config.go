// Package config reads the settings of a run from flags, action inputs, environment
// and the repository file, checks them all, and tells every mistake at once.
package config

import (
	"time"

	"issuesmith/internal/redact"
)

// A Config is the effective configuration. Names are those of the inputs.
type Config struct {
	Token     string
	Issue     int // 0: from the event
	Model     Model
	ModelBase string // model-base-url, "" is the provider's
	ModelKey  string // model-api-key
	Context   int    // context-limit in tokens, 0: asked of the endpoint, else 32768

	SetupCommands []string
	TestCommands  []string
	TestEnv       []string // KEY=VALUE
	Personal      bool     // redact-personal

	MaxAttempts    int
	StepLimit      int
	CostLimit      float64 // USD a run, 0 is off
	CostLimitGiven bool    // set by hand
	AgentTimeout   time.Duration
	CommandTimeout time.Duration
	TestTimeout    time.Duration
	RunTimeout     time.Duration
	FirstToken     time.Duration
	BetweenTokens  time.Duration
	MaxFiles       int
	MaxLines       int

	Sandbox                        string // strict, best-effort, off
	Mode                           string // pr, dry-run, direct
	BaseBranch                     string // "" is what is checked out
	CIWorkflow                     string
	Prefix                         string // branch-prefix
	Queued, Running, Ready, Failed string // label names
	LogLevel                       string
	ServerURL                      string
	Repository                     string // owner/name
	CommitName, CommitEmail        string
	AllowDirect, AllowAnyDatabase  bool

	// Only in the repository file.
	TrustedUsers   []string
	ProtectedPaths []string // globs, added to the built-in list
	AllowPaths     []string // globs, taken out of the built-in list
	DirectPaths    []string
	Playbook       string
	Prices         map[string]Price // model name → USD per million tokens

	Notes []string // one sentence each: aliases used, retired names, warnings
}

// A Model is provider/name.
type Model struct{ Provider, Name string }

// Price is USD per million tokens.
type Price struct{ Prompt, Cached, Completion float64 }

// Sources are where values come from, strongest first.
type Sources struct {
	Flags    map[string]string           // by input name, only those given
	Lookup   func(string) (string, bool) // environment: INPUT_*, ISSUESMITH_* and the aliases are looked up here
	Environ  func() []string             // whole environment, to find unknown INPUT_/ISSUESMITH_ names and TEST_DB_*
	File     []byte                      // .gitea/issuesmith.yml of the base branch, nil when there is none
	FileName string
	Local    bool // a desk run: token, server-url and repository are not required
}

// A Problem is one mistake in the configuration.
type Problem struct{ Where, Key, Value, Message string }

// Problems is every mistake at once; it is an error.
type Problems []Problem

func (p Problems) Error() string { panic("not built") }

// Load reads and checks everything. The error, if any, is Problems; the Config then holds what could be read.
func Load(s Sources) (*Config, error) { panic("not built") }

// A Setting describes one input: for flags, action.yml, help and the README's table.
type Setting struct {
	Name     string
	Default  string // as shown
	Range    string // allowed values, for people
	Help     string
	FileOnly bool // repository file only
	Secret   bool
	Input    bool // is an action input
}

// Settings lists what works in this version, in the order of product.md.
func Settings() []Setting { panic("not built") }

// Effective is the configuration as name → value for check and transcript, secrets as "***".
func (c *Config) Effective() map[string]any { panic("not built") }

// Secrets are the values to redact: token, keys, secret test-env values.
func (c *Config) Secrets() []string { panic("not built") }

var _ = redact.Ordinary
