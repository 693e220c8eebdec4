package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// grants collects what commands may read and refuses what no setting and no variable may open to them.
type grants struct {
	environ []string
	home    string   // of the caller
	homes   []string // real paths of the homes that are known by name
	closed  []string // real paths that are given neither themselves nor by a folder above them
	sealed  []string // closed, and so is everything below
	read    []string // real paths, none below another that came before it
}

// closedFolders hold the system's own files, homes, sockets, credentials, or what others leave lying around.
var closedFolders = []string{
	"/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/sys", "/tmp", "/var", "/var/lib", "/var/run",
	"/var/tmp",
}

// closedVariables name folders of the runner and of this program that must stay closed.
var closedVariables = []string{"GITHUB_WORKSPACE", "RUNNER_TEMP", "RUNNER_WORKSPACE", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"}

// In a home, mixedFolders are closed themselves, credentialFolders with everything below.
var (
	mixedFolders      = []string{".cache", ".config", ".local/share", ".local/state"}
	credentialFolders = []string{".aws", ".azure", ".docker", ".gnupg", ".kube", ".ssh", ".local/share/keyrings"}
)

func newGrants(environ []string) *grants {
	g := &grants{environ: environ, home: lookup(environ, "HOME")}
	homes := []string{g.home, "/root"}
	if who, err := user.Current(); err == nil {
		homes = append(homes, who.HomeDir)
	}
	for _, dir := range homes {
		if dir = realPath(dir); dir != "" && dir != "/" && !slices.Contains(g.homes, dir) {
			g.homes = append(g.homes, dir)
		}
	}
	for _, dir := range closedFolders {
		g.close(dir)
	}
	for _, name := range closedVariables {
		g.close(lookup(environ, name))
	}
	for _, dir := range g.homes {
		g.close(dir)
		for _, below := range mixedFolders {
			g.close(filepath.Join(dir, below))
		}
		for _, below := range credentialFolders {
			if real := realPath(filepath.Join(dir, below)); real != "" {
				g.closed, g.sealed = append(g.closed, real), append(g.sealed, real)
			}
		}
	}
	return g
}

func (g *grants) close(dir string) {
	if dir = realPath(dir); dir != "" {
		g.closed = append(g.closed, dir)
	}
}

// realPath is an absolute path without links, "" when there is nothing or the path is relative.
func realPath(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return "" // as most of what is looked for, and quicker found out than below
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return real
}

// within reports whether path is dir or lies below it; both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// refuses says whether the folder must not be given, with what it would open.
func (g *grants) refuses(real string) (opens string, refused bool) {
	for _, dir := range g.closed {
		if within(dir, real) {
			return dir, true
		}
	}
	for _, dir := range g.sealed {
		if within(real, dir) {
			return dir, true
		}
	}
	if filepath.Dir(real) == "/home" {
		return real, true
	}
	return "", false
}

// give gives a file or folder as a whole, unless it is missing or would open something that stays closed.
func (g *grants) give(path string) {
	real := realPath(path)
	if real == "" {
		return
	}
	if _, refused := g.refuses(real); !refused {
		g.add(real)
	}
}

// add gives what is known to be harmless.
func (g *grants) add(path string) {
	if real := realPath(path); real != "" && !g.has(real) {
		g.read = append(g.read, real)
	}
}

// covers reports whether commands may read path.
func (g *grants) covers(path string) bool {
	real := realPath(path)
	return real != "" && g.has(real)
}

func (g *grants) has(real string) bool {
	return slices.ContainsFunc(g.read, func(dir string) bool { return within(real, dir) })
}

// inHome reports whether a folder lies directly in a home, where tools keep credentials beside their programs.
func (g *grants) inHome(real string) bool {
	parent := filepath.Dir(real)
	return filepath.Dir(parent) == "/home" || slices.Contains(g.homes, parent)
}

// isHome reports whether a folder is a home.
func (g *grants) isHome(real string) bool {
	return filepath.Dir(real) == "/home" || slices.Contains(g.homes, real)
}
