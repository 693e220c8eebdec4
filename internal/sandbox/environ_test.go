package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNothingUnlistedPassesIntoTheEnvironment(t *testing.T) {
	t.Parallel()
	names := []string{
		"GITHUB_TOKEN", "GITEA_TOKEN", "INPUT_MODEL-API-KEY", "MISTRAL_API_KEY", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "SSH_AUTH_SOCK",
		"DOCKER_HOST", "CARGO_HOME", "GOPATH", "GOMODCACHE", "GOCACHE", "GOENV", "NPM_TOKEN", "NODE_AUTH_TOKEN", "npm_config__authToken", "PIP_INDEX_URL",
		"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "COMPOSER_AUTH", "GIT_CONFIG_PARAMETERS", "GIT_ASKPASS", "LD_PRELOAD", "BASH_ENV", "ENV", "NODE_OPTIONS",
		"PYTHONPATH", "BASH_FUNC_ls%%", "IFS", "GOFLAG", "XGOPROXY", "goproxy",
	}
	var caller []string
	for i, name := range names {
		caller = append(caller, fmt.Sprintf("%s=canary%d", name, i))
	}
	// Listed, and a credential all the same.
	for _, name := range slices.Concat(passedSettings, passedProxies) {
		caller = append(caller, name+"=https://user:canary@mirror.example")
	}
	// Listed, and outside of what commands may read.
	home := t.TempDir()
	lay(t, home, map[string]string{"bin/java": "", "canary/release": "", "canary.pem": "no certificate"})
	caller = append(caller, "HOME="+home, "JAVA_HOME="+home, "GOROOT="+home+"/canary/none", "SSL_CERT_FILE="+home+"/canary.pem", "malformed-canary", "=canary")
	for _, open := range []bool{false, true} {
		env := environment(caller, "/usr/bin:/bin", Options{Home: "/h", Tmp: "/t", Network: Network{Open: open}}, findReads("/usr/bin:/bin", caller, nil, nil))
		for _, entry := range env {
			if strings.Contains(entry, "canary") || strings.HasPrefix(entry, "JAVA_HOME=") {
				t.Errorf("passed: %s", entry)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	home := strangersHome(t)
	caller, path := homeVariables(home)
	caller = append(caller, "GOPROXY=https://mirror.example", "GOFLAGS=-mod=mod", "HTTPS_PROXY=http://proxy:3128")
	closed := environment(caller, path, Options{Home: "/h", Tmp: "/t", Env: []string{"DB_HOST=db", "CI=false", "DB_HOST=other", "HOME=/elsewhere"}}, findReads(path, caller, nil, nil))
	for _, want := range []string{
		"PATH=" + path, "TMPDIR=/t", "GOPROXY=https://mirror.example", "GOFLAGS=-mod=mod", "JAVA_HOME=" + home + "/jdk", "RUSTUP_HOME=" + home + "/.rustup",
		"PYENV_ROOT=" + home + "/.pyenv", "NVM_DIR=" + home + "/.nvm", "CI=false", "DB_HOST=other", "HOME=/elsewhere", "GIT_CONFIG_NOSYSTEM=1",
	} {
		if !slices.Contains(closed, want) {
			t.Errorf("%s is missing", want)
		}
	}
	seen := map[string]bool{}
	for _, entry := range closed {
		name, _, _ := strings.Cut(entry, "=")
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
	}
	for _, name := range []string{"HTTPS_PROXY", "DOTNET_ROOT", "CARGO_HOME"} {
		if seen[name] {
			t.Errorf("%s is set", name)
		}
	}
	open := environment(caller, path, Options{Home: "/h", Tmp: "/t", Network: Network{Open: true}}, findReads(path, caller, nil, nil))
	if !slices.Contains(open, "HTTPS_PROXY=http://proxy:3128") {
		t.Error("no proxy where the network is open")
	}
}

func TestJavaFollowsTMPDIRWhereTmpIsShared(t *testing.T) {
	t.Parallel()
	base := []string{"A=b"}
	if got := lookup(inSharedTmp(base, "/t"), "JAVA_TOOL_OPTIONS"); got != "-Djava.io.tmpdir=/t -XX:-UsePerfData" {
		t.Errorf("got %q", got)
	}
	own := []string{"JAVA_TOOL_OPTIONS=-Xmx64m"}
	if got := inSharedTmp(own, "/t"); !slices.Equal(got, own) {
		t.Errorf("test-env's is replaced: %q", got)
	}
}

func TestGoModulesAreReadThrough(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay(t, dir, map[string]string{"cache/download/example.com/@v/list": "", "example.com@v1/x.go": ""})
	goroot := t.TempDir()
	lay(t, goroot, map[string]string{"bin/go": "", "go.env": "# defaults\nGOPROXY=https://default.example,direct\nGOSUMDB=sum.example\n"})
	proxy := "GOPROXY=file://" + filepath.Join(dir, "cache/download")
	for _, c := range []struct {
		caller, own []string
		want        string
	}{
		{nil, nil, proxy + ",https://default.example,direct"},
		{[]string{"GOPROXY=off"}, nil, proxy + ",off"},
		{[]string{"GOPROXY=https://mirror.example|direct"}, nil, proxy + ",https://mirror.example|direct"},
		{nil, []string{"GOPROXY=off"}, "GOPROXY=off"},
	} {
		path := filepath.Join(goroot, "bin")
		env := environment(c.caller, path, Options{Home: "/h", Tmp: "/t", Caches: []string{dir}, Env: c.own}, findReads(path, c.caller, nil, []string{dir}))
		if !slices.Contains(env, c.want) {
			t.Errorf("caller %q, test-env %q: GOPROXY=%s, want %s", c.caller, c.own, lookup(env, "GOPROXY"), c.want)
		}
	}
}
