package stand

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"issuesmith/e2e/parts"
)

// goRecipe puts the toolchain of the tests where Go's own image has it.
const goRecipe = `ARG BASE
FROM ${BASE}
COPY go /usr/local/go
ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOTOOLCHAIN=local
`

// goFolders are what a build needs of a Go installation.
var goFolders = []string{"bin", "lib", "pkg", "src", "go.env", "VERSION"}

// GoImage makes an image that can stand for Go's own: the base with this machine's Go.
func (d *Docker) GoImage(ctx context.Context, base string) (string, error) {
	root, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(d.Dir, "go-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // goes with the daemon's folder
	for _, f := range goFolders {
		if err := parts.CopyTree(filepath.Join(root, f), filepath.Join(dir, "go", f)); err != nil {
			return "", fmt.Errorf("copying Go: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(goRecipe), 0o600); err != nil {
		return "", err
	}
	return d.Image(ctx, Recipe{Name: "go", Dir: dir, Args: map[string]string{"BASE": base}, Throw: true})
}

// modulePort is where GoProxy listens: always the same, so that what was built with it
// before is found again.
const modulePort = 3000

// GoProxy serves the modules this machine has downloaded to builds in containers and
// returns what they set GOPROXY to. All modules of the main module in dir are there.
func (d *Docker) GoProxy(ctx context.Context, dir string) (string, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download")
	download.Dir = dir
	if out, err := download.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go mod download in %s: %w\n%s", dir, err, out)
	}
	cache, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return "", err
	}
	l, err := d.Listen(modulePort)
	if err != nil {
		return "", err
	}
	// The module cache's download folder is laid out as a module proxy (go help goproxy).
	server := &http.Server{Handler: http.FileServer(http.Dir(filepath.Join(cache, "cache", "download"))), ReadHeaderTimeout: time.Minute}
	d.closes = append(d.closes, func() { _ = server.Close() }) // only files were served
	go func() { _ = server.Serve(l) }()                        // ends by Close
	return "http://" + l.Addr().String(), nil
}

func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
