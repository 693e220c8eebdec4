package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// passed may come from the caller: builds fail without them. Everything else stays outside, since a step's environment
// holds tokens under any name. The folders of toolchains are in knownInstalls.
var (
	passedSettings = []string{"GOTOOLCHAIN", "GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GOFLAGS"}
	passedFiles    = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"}
	// Where the network is closed a proxy cannot be reached, and tools would report it in place of what they were asked for.
	passedProxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
)

// nonInteractive keeps tools from asking, paging, colouring and phoning home.
var nonInteractive = []string{
	"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "CI=true", "TERM=dumb", "USER=issuesmith", "LOGNAME=issuesmith",
	"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat", "PAGER=cat", "DEBIAN_FRONTEND=noninteractive",
	"COMPOSER_NO_INTERACTION=1", "PIP_NO_INPUT=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
	"npm_config_yes=true", "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false",
	"LSAN_OPTIONS=detect_leaks=0", // it wants ptrace, which commands may not use
	"DOTNET_CLI_TELEMETRY_OPTOUT=1", "DO_NOT_TRACK=1",
}

// environment is what commands see: the base environment, then test-env, which wins. Each name stands once.
//
// Caches follow HOME by themselves: Go, npm, pip, Maven, cargo and Gradle; none of the caller's variables that lead elsewhere
// passes. Composer alone chooses between two places and is told which.
func environment(caller []string, path string, o Options, found *grants) []string {
	env := slices.Concat(nonInteractive, []string{
		"PATH=" + path, "HOME=" + o.Home, "TMPDIR=" + o.Tmp, "COMPOSER_CACHE_DIR=" + filepath.Join(o.Home, ".cache/composer"),
		"PHP_INI_SCAN_DIR=:" + filepath.Join(o.Home, phpFolder), // the empty part stands for PHP's own
	})
	names := passedSettings
	if o.Network.Open {
		names = slices.Concat(names, passedProxies)
	}
	for _, name := range names {
		if value := lookup(caller, name); value != "" && !hasUser(value) {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range passedFiles {
		if value := lookup(caller, name); value != "" && found.covers(value) {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, found.variables(DropOwner())...)
	env = append(env, cacheVariables(o.Caches, cmp.Or(lookup(env, "GOPROXY"), goDefault(path, "GOPROXY"), "direct"))...)
	if removed(layerEnviron) {
		env = slices.Concat(caller, env)
	}
	return lastOf(append(env, o.Env...))
}

// goDefault is a default of the Go that stands first on path, from the go.env beside it (Go 1.21): distributions choose it.
func goDefault(path, name string) string {
	text, err := readSmall(filepath.Join(filepath.Dir(filepath.Dir(realPath(lookIn(path, "go")))), "go.env"))
	if err != nil {
		return ""
	}
	return lookup(strings.Split(text, "\n"), name)
}

// hasUser reports whether an address carries user info, which is a credential.
func hasUser(value string) bool { return strings.Contains(value, "@") }

// variables lead to toolchains that commands may read and their user can reach.
func (g *grants) variables(owner Owner) []string {
	var env []string
	for _, i := range knownInstalls {
		if dir := g.place(i); dir != "" && i.pass && g.covers(filepath.Join(dir, i.proof())) && owner.enters(dir) {
			env = append(env, i.variable+"="+dir)
		}
	}
	return env
}

// inSharedTmp adds what commands need where /tmp is the machine's and closed to them. The JVM alone does not follow TMPDIR; it
// says on stderr that it has picked the variable up.
func inSharedTmp(env []string, tmp string) []string {
	if lookup(env, "JAVA_TOOL_OPTIONS") != "" {
		return env
	}
	return append(slices.Clip(env), "JAVA_TOOL_OPTIONS=-Djava.io.tmpdir="+tmp+" -XX:-UsePerfData")
}

// lastOf keeps the last entry of each name. Of two entries a shell would take the last, the C library the first.
func lastOf(env []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, entry := range slices.Backward(env) {
		name, _, ok := strings.Cut(entry, "=")
		if ok && name != "" && !seen[name] {
			seen[name] = true
			kept = append(kept, entry)
		}
	}
	slices.Reverse(kept)
	return kept
}
