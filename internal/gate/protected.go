package gate

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"issuesmith/internal/worktree"
)

// Why a path is protected, for the message.
const (
	whyEnvironment = "environment files hold settings and secrets of a machine"
	whyGit         = "git's own files steer what is tracked and how"
	whyWorkflow    = "workflows run with the repository's rights"
	whyContainer   = "container files decide what is built and run"
	whyForeign     = "third-party code is installed, not edited"
	whyRuntime     = "this folder holds what the application writes at run time"
	whyDependency  = "dependencies are a maintainer's decision"
	whyGuidance    = "guidance for agents is a maintainer's to write"
	whyFile        = "the repository file protects it"
	whyDirect      = "migrations, routes, middleware, authentication and database configuration never go to the base branch without a review"
	whyNotDirect   = "mode direct may change only what direct-paths lists"
)

// topFolders are protected at the top of the repository only, so that an internal/storage is free.
var topFolders = []struct{ folder, why string }{
	{".gitea", whyWorkflow},
	{".github", whyWorkflow},
	{".forgejo", whyWorkflow},
	{"docker", whyContainer},
	{"vendor", whyForeign},
	{"node_modules", whyForeign},
	{"storage", whyRuntime},
	{"bootstrap/cache", whyRuntime},
}

// namePatterns are protected in any folder; they are compared with the folded name of the file.
var namePatterns = []struct{ pattern, why string }{
	{".env*", whyEnvironment},
	{".git*", whyGit},
	{"dockerfile*", whyContainer},
	{"*compose*.y*ml", whyContainer},
	{"agents.md", whyGuidance},
	{"claude.md", whyGuidance},
	{"*.lock", whyDependency},
	{"*.lockb", whyDependency},
	{"*.lockfile", whyDependency},
	{"*.gemspec", whyDependency},
	{"*.csproj", whyDependency},
	{"*.fsproj", whyDependency},
	{"*.vbproj", whyDependency},
	{"requirements*.txt", whyDependency},
	{"pipfile*", whyDependency},
	{"gemfile*", whyDependency},
	{"build.gradle*", whyDependency},
	{"settings.gradle*", whyDependency},
	{"podfile*", whyDependency},
}

// manifests are dependency manifests and lock files by their folded names, beside those that namePatterns match.
var manifests = map[string]bool{
	"package.json": true, "package-lock.json": true, "npm-shrinkwrap.json": true, "pnpm-lock.yaml": true, "pnpm-workspace.yaml": true,
	"composer.json": true, "go.mod": true, "go.sum": true, "go.work": true, "go.work.sum": true, "cargo.toml": true,
	"pyproject.toml": true, "setup.py": true, "setup.cfg": true, "pom.xml": true, "libs.versions.toml": true, "mix.exs": true,
	"pubspec.yaml": true, "package.swift": true, "package.resolved": true, "packages.config": true, "packages.lock.json": true,
	"directory.packages.props": true, "cpanfile": true, "rebar.config": true, "build.sbt": true, "deno.json": true, "deno.jsonc": true,
}

// findProtected refuses changes to files that steer the machine, the forge or the build instead of the application.
func findProtected(c *candidate) ([]Finding, error) {
	var found []Finding
	for _, f := range c.files {
		why, err := c.rules.protects(f.Path)
		if err != nil {
			return nil, err
		}
		if why == "" || f.New.Kind == worktree.KindRepository { // told by rule kind
			continue
		}
		found = append(found, Finding{
			Path:    f.Path,
			Message: fmt.Sprintf("protected file %s: %s", done(f), why),
			Hint:    "solve the issue without it; only a maintainer can open a path",
		})
	}
	return found, nil
}

// done says what happened to a file. A rename is seen as the deletion that it is for the old name.
func done(f worktree.File) string {
	if f.Op == worktree.Deleted {
		return "deleted or renamed"
	}
	return string(f.Op)
}

// protects says why a path is protected; "" when it is free. Names are compared folded, since on many machines a
// ".ENV" is the .env. allow-paths opens what is built in, but neither git's folder nor the
// workflows, and never what the repository file protects.
func (r Rules) protects(path string) (string, error) {
	name := plain(path)
	for _, pattern := range r.Protected {
		ok, err := covers(pattern, name)
		if err != nil {
			return "", fmt.Errorf("protected-paths %q: %w", pattern, err)
		}
		if ok {
			return whyFile, nil
		}
	}
	if r.Direct {
		if why, err := r.protectsDirect(path); why != "" || err != nil {
			return why, err
		}
	}
	why := builtin(name)
	if why == "" || why == whyWorkflow {
		return why, nil
	}
	for _, pattern := range r.Allowed {
		ok, err := doublestar.Match(pattern, path)
		if err != nil {
			return "", fmt.Errorf("allow-paths %q: %w", pattern, err)
		}
		if ok {
			return "", nil
		}
	}
	return why, nil
}

// builtin says why a folded path is protected without any configuration.
func builtin(name string) string {
	for _, t := range topFolders {
		if name == t.folder || strings.HasPrefix(name, t.folder+"/") {
			return t.why
		}
	}
	base := path.Base(name)
	if manifests[base] {
		return whyDependency
	}
	for _, p := range namePatterns {
		// The patterns are constants and known to be well-formed.
		if ok, _ := path.Match(p.pattern, base); ok {
			return p.why
		}
	}
	return ""
}

// covers reports whether a protecting glob covers a folded path: the path itself, everything below a folder that it
// names, and in any folder when it is a bare name. It errs towards protecting; a pattern that opens
// something (allow-paths, direct-paths) opens exactly what it matches from the top.
func covers(pattern, name string) (bool, error) {
	pattern = fold(strings.Trim(pattern, "/"))
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	for at := name; at != "." && at != "/"; at = path.Dir(at) {
		if ok, err := doublestar.Match(pattern, at); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
