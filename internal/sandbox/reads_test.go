package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lay writes files, given by name below dir, and makes them and the folders above them readable for everybody: what keeps
// commands away from them must be the sandbox.
func lay(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// strangersHome makes a folder that is laid out like a developer's home, outside of /tmp, which commands see a private one of.
func strangersHome(t testing.TB) string {
	t.Helper()
	home, err := os.MkdirTemp("/var/tmp", "sandbox-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range slices.Concat(homeSecrets, homeTools) {
		files[name] = "#!/bin/sh\necho " + name + "\n"
	}
	files[".local/go/VERSION"] = "go1.26\n"
	lay(t, home, files)
	for link, to := range map[string]string{
		"bin/node": "../node-v24/bin/node", "bin/python3": "../.local/share/uv/python/3.13/bin/python3.13", "bin/go": "../.local/go/bin/go",
	} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

var (
	homeSecrets = []string{
		".npmrc", ".netrc", ".gitconfig", ".git-credentials", ".pypirc", ".ssh/id_ed25519", ".docker/config.json", ".aws/credentials",
		".cargo/credentials.toml", ".cargo/config.toml", ".config/gh/hosts.yml", ".config/composer/auth.json", ".local/share/keyrings/login",
		".m2/settings.xml", ".gradle/gradle.properties", ".gem/credentials", ".dotnet/corefx/cryptography/x509stores/my/key.pfx",
		".pyenv/.git/config", ".local/state/x", ".kube/config", ".bashrc", "share/letters", "src/private.go", "lib/ledger", "node-v24/.npmrc",
		"work/repo/.git/config", "temp/event.json",
	}
	homeTools = []string{
		"bin/own", ".cargo/bin/cargo", ".rustup/toolchains/stable/bin/rustc", ".rustup/settings.toml", ".pyenv/shims/pip", ".pyenv/versions/3.12/bin/python",
		".local/bin/tool", ".local/lib/python3/x.py", "node-v24/bin/node", "node-v24/lib/node_modules/npm/index.js", ".local/share/uv/python/3.13/bin/python3.13",
		".local/share/uv/python/3.13/lib/os.py", ".local/go/bin/go", ".local/go/src/fmt/print.go", ".local/go/pkg/tool/compile", ".nvm/versions/node/v24/bin/npm",
		"jdk/bin/java", "jdk/conf/security/java.security", "jdk/release", ".config/composer/vendor/autoload.php", ".config/composer/vendor/bin/phpunit",
		"tools/own/anything", "tool_cache/go/1.26/x64/bin/go",
	}
)

// homeVariables are what the caller has set, homePath its PATH.
func homeVariables(home string) (environ []string, path string) {
	below := func(name string) string { return filepath.Join(home, name) }
	environ = []string{
		"HOME=" + home, "JAVA_HOME=" + below("jdk"), "RUNNER_TOOL_CACHE=" + below("tool_cache"), "GITHUB_WORKSPACE=" + below("work/repo"),
		"RUNNER_TEMP=" + below("temp"), "CARGO_HOME=" + below(".cargo"), "GITHUB_TOKEN=canary",
	}
	var dirs []string
	for _, name := range []string{"bin", ".cargo/bin", ".pyenv/shims", ".local/bin", ".config/composer/vendor/bin"} {
		dirs = append(dirs, below(name))
	}
	return environ, strings.Join(append(dirs, "/usr/bin:/bin"), ":")
}

func TestToolchainsAreFoundAndCredentialsAreNot(t *testing.T) {
	t.Parallel()
	home := strangersHome(t)
	environ, path := homeVariables(home)
	// These would open a home, the runner's folders, or everything.
	wide := []string{
		"/", "/etc", "/home", "/opt", "/root", "/run", "/tmp", "/var", "/var/lib", home, filepath.Join(home, ".config"), filepath.Join(home, ".ssh"),
		filepath.Join(home, ".local/share/keyrings"), filepath.Join(home, "work"), filepath.Join(home, "work/repo"), filepath.Join(home, "temp"), "relative", "",
	}
	g := findReads(path, environ, append(wide, filepath.Join(home, "tools/own")), wide)
	for _, name := range homeSecrets {
		if g.covers(filepath.Join(home, name)) {
			t.Errorf("~/%s can be read", name)
		}
	}
	for _, name := range homeTools {
		if !g.covers(filepath.Join(home, name)) {
			t.Errorf("~/%s cannot be read", name)
		}
	}
	for _, name := range []string{"/etc/shadow", "/etc/ssh", "/etc/docker", "/etc/gitconfig", "/etc/machine-id", "/etc/ssl/private", "/var/lib", "/etc", "/usr/etc", "/sys/fs", "/root"} {
		if g.covers(name) {
			t.Errorf("%s can be read", name)
		}
	}
	for _, name := range []string{"/usr/bin/env", "/usr/lib", "/etc/passwd", "/etc/ssl/certs", "/proc/self/status", "/etc/hosts"} {
		if _, err := os.Stat(name); err == nil && !g.covers(name) {
			t.Errorf("%s cannot be read", name)
		}
	}
}

// The same in force, in the strongest sandbox of this place.
func TestCommandsReadToolchainsAndNoCredentials(t *testing.T) {
	home := strangersHome(t)
	environ, path := homeVariables(home)
	for _, i := range knownInstalls {
		t.Setenv(i.variable, "")
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	t.Setenv("PATH", path)
	s := openWith(t, Options{Toolchains: []string{filepath.Join(home, "tools/own")}})
	script := "cd " + home + "\n"
	for _, name := range homeSecrets {
		script += "cat " + name + " 2>/dev/null && echo READ " + name + "\n"
	}
	for _, name := range homeTools {
		script += "cat " + name + " >/dev/null || echo CLOSED " + name + "\n"
	}
	script += "own; node; python3; cargo\necho over >> bin/own && echo WRITTEN\nexit 0\n"
	out := run(t, s, Command{Script: script}).Output()
	for _, bad := range []string{"READ", "CLOSED", "WRITTEN"} {
		if strings.Contains(out, bad) {
			t.Errorf("%s in\n%s", bad, out)
		}
	}
	if want := "bin/own\nnode-v24/bin/node\n.local/share/uv/python/3.13/bin/python3.13\n.cargo/bin/cargo\n"; !strings.Contains(out, want) {
		t.Errorf("programs of the home do not run: want\n%s in\n%s", want, out)
	}
}

func TestSettingsWithCredentialsAreRecognized(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"":                                       false,
		"registry=https://mirror.example/npm/\n": false,
		"//mirror.example/npm/:_authToken=abc\n": true,
		"//mirror.example/:_password=abc\n":      true,
		"[global]\nindex-url = https://mirror.example/simple\n":                                     false,
		"[global]\nindex-url = https://me:it@mirror.example/simple\n":                               true,
		"<settings><servers><!-- <password>x</password> --></servers></settings>":                   false,
		"<settings><servers><server><password>x</password></server></servers></settings>":           true,
		"<settings><!-- one --><server><privateKey>/k</privateKey></server><!-- two --></settings>": true,
		"[http]\n\textraheader = Authorization: token abc\n":                                        true,
	} {
		if got := holdsCredential(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestCertificatesOfVariablesCanBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const certificate = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
	lay(t, dir, map[string]string{
		"ca.pem": certificate, "both.pem": certificate + "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n", "token": "canary",
	})
	for name, want := range map[string]bool{"ca.pem": true, "both.pem": false, "token": false, "": false, "missing": false} {
		file := filepath.Join(dir, name)
		if got := findReads("", []string{"SSL_CERT_FILE=" + file}, nil, nil).covers(file); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func BenchmarkReadable(b *testing.B) {
	for b.Loop() {
		findReads(os.Getenv("PATH"), os.Environ(), nil, nil)
	}
}
