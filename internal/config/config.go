// Package config reads the settings of a run from flags, action inputs, environment
// and the repository file, checks them all, and tells every mistake at once.
//
// One table, settings.go, drives everything that names a setting: what is parsed and
// how it is checked, the flags, the inputs of action.yml, help and the README's table.
package config

import (
	"time"
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

	Isolation

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

	// Values of the environment that nothing here is set from, and that are credentials
	// all the same: the keys of other providers, the runner's own token.
	bystanders []string
}

// A Model is provider/name.
type Model struct{ Provider, Name string }

// String is provider/name, "" for no model.
func (m Model) String() string {
	if m.Provider == "" {
		return ""
	}
	return m.Provider + "/" + m.Name
}

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
	NoTests  bool // the repository file is not there yet: it may hold the test commands
	NoModel  bool // the command asks no model: a missing key is no problem
}

// A Setting describes one input: for flags, action.yml, help and the README's table.
type Setting struct {
	Name     string
	Default  string // as shown
	Range    string // allowed values, for people
	Help     string
	FileOnly bool // repository file only
	Secret   bool
	Input    bool // is an action input
	Bool     bool // true or false: a flag without a value means true
}

// Settings lists what works in this version, in the order people read it.
func Settings() []Setting {
	table := table()
	out := make([]Setting, len(table))
	for i, s := range table {
		out[i] = s.Setting
	}
	return out
}

// NotBuilt lists the names of settings that come with a later version. Giving one of
// them is a Problem; they are shown nowhere.
func NotBuilt() []string {
	return []string{
		"speculation", "warm-prefix", "tool-mode", "proof", "baseline", "reset-commands", "retry-flaky",
		"poll-interval",
		"routes", "contract", "known-failures", "providers", "hints", "policy",
	}
}
