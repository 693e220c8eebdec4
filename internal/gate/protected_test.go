package gate

import (
	"strings"
	"testing"
)

func TestProtectedRule(t *testing.T) {
	t.Parallel()
	allow := func(globs ...string) func(*Rules) { return func(r *Rules) { r.Allowed = globs } }
	protect := func(globs ...string) func(*Rules) { return func(r *Rules) { r.Protected = globs } }
	for _, c := range []policyCase{
		{name: "environment file", script: `echo A=1 >> .env`, want: "protected .env"},
		{name: "environment file elsewhere", script: `echo A=1 > app/.env.local`, want: "protected app/.env.local"},
		{name: "environment file in capitals", script: `echo A=1 > app/.ENV`, want: "protected app/.ENV"},
		{name: "ignore rules", script: `echo x >> .gitignore`, want: "protected .gitignore"},
		{name: "ignore rules elsewhere", script: `echo '*' > app/.gitignore`, want: "protected app/.gitignore"},
		{name: "attributes", script: `echo '* filter=x' > .gitattributes`, want: "protected .gitattributes"},
		{name: "submodule list", script: `echo > .gitmodules; echo x >> .gitmodules`, want: "protected .gitmodules"},
		{name: "workflow", script: `echo x >> .github/workflows/ci.yml`, want: "protected .github/workflows/ci.yml"},
		{name: "workflow folders of all forges", script: `for d in .gitea .forgejo; do mkdir -p $d/workflows; echo x > $d/workflows/a.yml; done`, want: "protected .forgejo/workflows/a.yml\nprotected .gitea/workflows/a.yml"},
		{name: "workflow folder in capitals", script: `mkdir -p .Gitea/workflows; echo x > .Gitea/workflows/a.yml`, want: "protected .Gitea/workflows/a.yml"},
		{name: "workflow template below the top", script: `mkdir -p app/.github/workflows; echo x > app/.github/workflows/a.yml`},
		{name: "container build", script: `echo RUN x >> Dockerfile`, want: "protected Dockerfile"},
		{name: "container build elsewhere", script: `echo FROM x > app/dockerfile.dev`, want: "protected app/dockerfile.dev"},
		{name: "container folder", script: `echo x > docker/entry.sh`, want: "protected docker/entry.sh"},
		{name: "compose", script: `echo x > app/docker-compose.override.yaml`, want: "protected app/docker-compose.override.yaml"},
		{name: "third-party code", script: `echo x >> vendor/lib/x.php; mkdir -p node_modules/a; echo x > node_modules/a/i.js`, want: "protected node_modules/a/i.js\nprotected vendor/lib/x.php"},
		{name: "third-party code in capitals", script: `rm -r vendor; mkdir Vendor; echo x > Vendor/x.php`, want: "protected Vendor/x.php\nprotected vendor/lib/x.php"},
		{name: "run time data", script: `echo x >> storage/data.txt; echo x > bootstrap/cache/services.php`, want: "protected bootstrap/cache/services.php\nprotected storage/data.txt"},
		{name: "storage elsewhere is free", script: `echo '// x' >> internal/storage/s.go; mkdir -p app/vendor app/docker; echo x > app/vendor/a.php; echo x > app/docker/a.php`},
		{name: "manifest and lock file", script: `echo '{"a":1}' > package.json; echo x >> composer.lock`, want: "protected composer.lock\nprotected package.json"},
		{
			name: "lock files of many", script: `cd app; for f in yarn.lock pnpm-lock.yaml Cargo.lock go.sum poetry.lock uv.lock Gemfile.lock Pipfile.lock bun.lockb gradle.lockfile; do echo x > $f; done`,
			want: "protected app/Cargo.lock\nprotected app/Gemfile.lock\nprotected app/Pipfile.lock\nprotected app/bun.lockb\nprotected app/go.sum\nprotected app/gradle.lockfile\nprotected app/pnpm-lock.yaml\nprotected app/poetry.lock\nprotected app/uv.lock\nprotected app/yarn.lock",
		},
		{
			name: "manifests of many", script: `cd app; for f in go.mod Cargo.toml pyproject.toml requirements-dev.txt pom.xml build.gradle.kts a.csproj a.gemspec; do echo x > $f; done`,
			want: "protected app/Cargo.toml\nprotected app/a.csproj\nprotected app/a.gemspec\nprotected app/build.gradle.kts\nprotected app/go.mod\nprotected app/pom.xml\nprotected app/pyproject.toml\nprotected app/requirements-dev.txt",
		},
		{name: "guidance for agents", script: `echo x >> AGENTS.md; echo x > app/claude.md`, want: "protected AGENTS.md\nprotected app/claude.md"},
		{name: "deleted", script: `rm package.json`, want: "protected package.json"},
		{name: "renamed", script: `mv package.json app/manifest.json`, want: "protected package.json"},
		{name: "similar names", script: `cd app; for f in package.json.php environment.php git.php locks.php lock.go requirements.md clock.go; do echo x > $f; done`},
		{name: "file protects a folder", script: `echo x >> db/schema.sql`, rules: protect("db/"), want: "protected db/schema.sql"},
		{name: "file protects by glob", script: `echo x >> db/schema.sql`, rules: protect("db/**/*.sql"), want: "protected db/schema.sql"},
		{name: "file protects a name anywhere", script: `echo x >> db/schema.sql`, rules: protect("*.sql"), want: "protected db/schema.sql"},
		{name: "file protects whatever the case", script: `echo x > db/New.SQL`, rules: protect("DB/*.sql"), want: "protected db/New.SQL"},
		{name: "file protects something else", script: `echo x >> db/schema.sql`, rules: protect("db2/**", "sql", "*.sq")},
		{name: "allowed", script: `echo '{"a":1}' > package.json; echo x >> composer.lock`, rules: allow("package.json", "*.lock")},
		{name: "allowed only where it is named", script: `echo '{"a":1}' > app/package.json`, rules: allow("package.json"), want: "protected app/package.json"},
		{name: "allowed environment example", script: `echo x > .env.example`, rules: allow(".env.example")},
		{name: "workflows are never allowed", script: `echo x >> .github/workflows/ci.yml`, rules: allow("**", ".github/**"), want: "protected .github/workflows/ci.yml"},
		{name: "what the file protects is not allowed", script: `echo '{"a":1}' > package.json`, rules: func(r *Rules) { r.Allowed, r.Protected = []string{"**"}, []string{"package.json"} }, want: "protected package.json"},
	} {
		c.run(t)
	}
}

func TestDirectMode(t *testing.T) {
	t.Parallel()
	direct := func(globs ...string) func(*Rules) {
		return func(r *Rules) { r.Direct, r.DirectPaths = true, globs }
	}
	for _, c := range []policyCase{
		{name: "listed", rules: direct("app/**")},
		{name: "nothing listed", rules: direct(), want: "application\nprotected app/Invoice.php"},
		{name: "one beside the list", script: `echo x >> docs/guide.md`, rules: direct("app/**"), want: "protected docs/guide.md"},
		{
			name: "never without a review", rules: direct("**"), script: `mkdir -p app/routes app/Http/Middleware db/migrations app/config
			echo x > app/routes/web.php; echo x > app/Http/Middleware/Trim.php; echo x > db/migrations/1_a.php; echo x > app/AuthController.php; echo x > app/config/database.php; echo x > app/author.php`,
			want: "protected app/AuthController.php\nprotected app/Http/Middleware/Trim.php\nprotected app/config/database.php\nprotected app/routes/web.php\nprotected db/migrations/1_a.php",
		},
		{name: "lists do not open what is built in", script: `echo x > .env`, rules: direct("**"), want: "protected .env"},
	} {
		c.run(t)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"AuthController.php": "auth controller php", "JWTAuth": "jwt auth", "my_auth-test": "my auth test", "author.go": "author go",
		"2024_01_create": "2024 01 create", "": "", "ÄrgerAuth": "ärger auth", "HTTPServer2": "http server2", "oauth2": "oauth2",
	} {
		if got := strings.Join(words(name), " "); got != want {
			t.Errorf("words(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestBadGlobsAreErrors(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Rules{
		"protected-paths": {Protected: []string{"[a"}},
		"allow-paths":     {Allowed: []string{"[a"}},
		"direct-paths":    {Direct: true, DirectPaths: []string{"[a"}},
	} {
		if _, err := r.protects("package.json"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
