package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Parts of the folder a toolchain is installed in. The folder itself is never given: Cargo, pyenv, .NET and others keep settings and
// credentials in it.
var (
	commonParts = []string{"bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "pyvenv.cfg"}
	goParts     = []string{"VERSION", "api", "go.env", "misc", "pkg", "src"}
	javaParts   = []string{"release", "conf", "jmods", "jre", "legal"}
	dotnetParts = []string{"dotnet", "host", "packs", "sdk", "sdk-manifests", "shared", "templates"}
	// moreParts are given outside of homes only: ~/.local/share holds keyrings.
	moreParts = []string{"boot", "share", "modules"}
)

// An installation is a folder that tools find by a variable, or in the home where that is not set.
type installation struct {
	variable string
	folder   string   // below the home; "" for none
	parts    []string // beside commonParts; the first is what makes the folder one
	pass     bool     // commands get the variable: without it tools would look in their own home
}

var knownInstalls = []installation{
	{"GOROOT", "", goParts, true},
	{"JAVA_HOME", "", javaParts, true},
	{"MAVEN_HOME", "", []string{"boot", "conf/logging"}, true},
	{"GRADLE_HOME", "", nil, true},
	{"RUSTUP_HOME", ".rustup", []string{"toolchains", "settings.toml"}, true},
	{"CARGO_HOME", ".cargo", nil, false}, // commands have a CARGO_HOME of their own
	{"PYENV_ROOT", ".pyenv", []string{"versions", "plugins", "pyenv.d", "shims", "version"}, true},
	{"RBENV_ROOT", ".rbenv", []string{"versions", "plugins", "rbenv.d", "shims", "version"}, true},
	{"NVM_DIR", ".nvm", []string{"versions", "alias", "nvm.sh", "nvm-exec"}, true},
	{"VOLTA_HOME", ".volta", []string{"tools"}, true},
	{"ASDF_DATA_DIR", ".asdf", []string{"installs", "plugins", "shims"}, true},
	{"SDKMAN_DIR", ".sdkman", []string{"candidates"}, true},
	{"DENO_INSTALL", ".deno", nil, true},
	{"BUN_INSTALL", ".bun", nil, true},
	{"DOTNET_ROOT", ".dotnet", dotnetParts, true},
}

// toolCaches name the folders in which a runner keeps the toolchains that setup actions install.
var toolCaches = []string{"RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"}

// programs are links on many machines, from a folder on the PATH to where the toolchain is.
var programs = []string{
	"bun", "bundle", "cargo", "clang", "cmake", "composer", "corepack", "deno", "dotnet", "gem", "go", "gofmt", "gradle", "java", "javac", "kotlinc",
	"mvn", "node", "npm", "npx", "php", "phpunit", "pip", "pip3", "pnpm", "poetry", "pytest", "python", "python3", "ruby", "rustc", "rustup",
	"sbt", "swift", "uv", "yarn", "zig",
}

// installs gives the toolchains found on path and by their variables.
func (g *grants) installs(path string) {
	for _, name := range toolCaches {
		g.give(lookup(g.environ, name))
	}
	for _, i := range knownInstalls {
		if dir := g.place(i); dir != "" {
			g.parts(dir, commonParts, i.parts)
		}
	}
	seen := map[string]bool{}
	for _, dir := range filepath.SplitList(path) {
		real := realPath(dir)
		if real == "" || seen[real] {
			continue
		}
		seen[real] = true
		g.give(real)
		g.around(real)
		for _, name := range programs {
			g.program(filepath.Join(real, name))
		}
	}
}

// place is where an install is, "" when there is none.
func (g *grants) place(i installation) string {
	dir := lookup(g.environ, i.variable)
	if dir == "" && i.folder != "" && filepath.IsAbs(g.home) {
		dir = filepath.Join(g.home, i.folder)
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, i.proof())); err != nil {
		return ""
	}
	return dir
}

// proof is what a folder must have to be one: ~/.dotnet is there without a toolchain as well.
func (i installation) proof() string {
	if len(i.parts) == 0 {
		return "bin"
	}
	return i.parts[0]
}

// parts gives parts of root. A home has none, nor has /opt or the like.
func (g *grants) parts(root string, lists ...[]string) {
	real := realPath(root)
	if real == "" || g.isHome(real) || slices.Contains(g.closed, real) {
		return
	}
	for _, list := range lists {
		for _, part := range list {
			// On Debian parts are links to settings in /etc, which are given, or not, by themselves.
			if part = realPath(filepath.Join(real, part)); !within(part, "/etc") {
				g.give(part)
			}
		}
	}
}

// around gives what belongs to a folder of programs.
func (g *grants) around(real string) {
	root, name := filepath.Dir(real), filepath.Base(real)
	switch {
	case root == "/" || root == "/usr" || g.has(root):
		// given already
	case name == ".bin" && filepath.Base(root) == "node_modules",
		name == "bin" && filepath.Base(root) == "vendor":
		g.give(root) // packages, whose programs are links to files of theirs
	case name == "bin" || name == "sbin":
		g.root(root)
	}
}

// root gives what is known of a toolchain's folder.
func (g *grants) root(real string) {
	g.parts(real, commonParts)
	if !g.inHome(real) {
		g.parts(real, moreParts, goParts, javaParts, dotnetParts)
		return
	}
	if version, err := readSmall(filepath.Join(real, "VERSION")); err == nil && strings.HasPrefix(version, "go") {
		g.parts(real, goParts)
	}
	if release, err := readSmall(filepath.Join(real, "release")); err == nil && strings.Contains(release, "JAVA_VERSION") {
		g.parts(real, javaParts)
	}
}

// program follows a link to a toolchain.
func (g *grants) program(file string) {
	if _, err := os.Readlink(file); err != nil {
		return // missing, or the program itself
	}
	real := realPath(file)
	if real == "" {
		return
	}
	g.give(real)
	if dir := filepath.Dir(real); filepath.Base(dir) == "bin" {
		g.around(dir)
	} else if filepath.Base(real) == "dotnet" {
		g.parts(dir, dotnetParts)
	}
}
