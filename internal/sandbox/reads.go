package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// readable lists what commands may read beside their own folders: system folders, listed files of /etc, the toolchains
// found on path and by their usual variables in environ (KEY=VALUE of the caller), the folders named in the configuration.
// No folder that holds credentials is among them.
// findReads is readable with what else is known about the places.
func findReads(path string, environ []string, toolchains, caches []string) *grants {
	g := newGrants(environ)
	g.system()
	g.installs(path)
	g.certificates()
	for _, dir := range toolchains {
		g.give(dir)
	}
	for _, dir := range caches {
		g.giveCache(dir)
	}
	return g
}

// devices are the device files commands may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// systemFolders hold programs and nothing of a person. /usr is given by its parts: see withoutEtc.
var systemFolders = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/nix/store",
	// Numbers of processors and the limits of the container, by which the JVM, Go and node size themselves.
	"/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
}

// etcFiles are what programs look up in /etc, as patterns of path/filepath. Not among them, since they hold credentials on some
// machines: environment, gitconfig, gemrc, netrc, wgetrc, apt, docker, mysql, php's fpm, ssh, ssl/private, pki/tls/private; and
// shadow and machine-id.
var etcFiles = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*.path",
	"passwd", "group", "nsswitch.conf", "hosts", "hostname", "networks", "resolv.conf", "host.conf", "gai.conf", "services", "protocols",
	"localtime", "timezone", "locale.alias", "locale.conf", "mime.types", "magic", "magic.mime",
	"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "crypto-policies",
	"pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "pki/java",
	"os-release", "debian_version", "lsb-release", "alpine-release", "redhat-release", "fedora-release",
	"bash.bashrc", "inputrc", "shells", "terminfo", "fonts", "xml", "sgml", "ImageMagick-*",
	"alternatives", "java", "java-*", "perl", "python*", "maven/m2.conf", "maven/logging", "maven/toolchains.xml",
	"php/*/cli", "php/*/mods-available", "php.ini", "php.d", "php[0-9]*/php.ini", "php[0-9]*/conf.d",
}

// settings are files of tools that name mirrors, which setup commands need, and on some machines hold credentials: each is given
// only when it holds none.
var settings = []string{"/etc/pip.conf", "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc", "/etc/maven/settings.xml"}

// system gives what every machine has.
func (g *grants) system() {
	for _, dir := range systemFolders {
		g.add(dir)
	}
	for _, dir := range []string{"/usr", "/usr/local"} {
		g.withoutEtc(dir)
	}
	for _, pattern := range etcFiles {
		matches, _ := filepath.Glob("/etc/" + pattern) // the only error is a wrong pattern
		for _, file := range matches {
			g.add(file)
		}
	}
	// The settings of PHP in its official images.
	g.add("/usr/local/etc/php")
	for _, file := range settings {
		if text, err := readSmall(file); err == nil && !holdsCredential(text) {
			g.add(file)
		}
	}
}

// certificates gives the files that variables name, when they hold certificates and no key.
func (g *grants) certificates() {
	for _, name := range passedFiles {
		file := lookup(g.environ, name)
		if g.covers(file) {
			continue
		}
		if text, err := readSmall(file); err == nil && strings.Contains(text, "-----BEGIN CERTIFICATE-----") && !strings.Contains(text, "PRIVATE KEY") {
			g.give(file)
		}
	}
}

// withoutEtc gives the folders in dir but etc, where npm and a git that was built here keep the machine's settings, tokens
// of registries among them.
func (g *grants) withoutEtc(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Name() != "etc" && path != "/usr/local" && !e.Type().IsRegular() {
			g.add(path)
		}
	}
}

// readSmall reads a file of settings or certificates; one of more than 1 MiB is neither.
func readSmall(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return "", os.ErrInvalid
	}
	text, err := os.ReadFile(file) // #nosec G304 -- a file of the machine's owner
	return string(text), err
}

var (
	credentialWords = regexp.MustCompile(`(?i)passw|passphrase|token|_auth|secret|private.?key|credential|://[^/\s]*@`)
	xmlComment      = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// holdsCredential reports whether settings look as if one were in them. Maven's are delivered with examples in comments.
func holdsCredential(text string) bool {
	return credentialWords.MatchString(xmlComment.ReplaceAllString(text, ""))
}

// lookup is a variable's value in KEY=VALUE entries, "" when it is not set; the last one counts, as in a shell.
func lookup(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if after, ok := strings.CutPrefix(entry, name+"="); ok {
			value = after
		}
	}
	return value
}
