package stand

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// goFolders are what a build needs of a Go installation.
var goFolders = []string{"bin", "lib", "pkg", "src", "go.env", "VERSION"}

// GoImage makes an image that can stand for Go's own: the base with this machine's Go. It
// is copied into a container instead of built: it is large, and this copies it once.
func (d *Docker) GoImage(ctx context.Context, base string) (string, error) {
	root, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return "", err
	}
	image := "go:" + strings.ReplaceAll(base, ":", "-")
	if d.has(ctx, image) {
		return image, nil
	}
	container, err := d.Run(ctx, "create", base, "true")
	if err != nil {
		return "", err
	}
	pack := exec.CommandContext(ctx, "tar", append([]string{"-C", root, "--owner=0", "--group=0", "--transform=s,^,go/,", "-cf", "-"}, goFolders...)...)
	pack.WaitDelay = time.Second
	unpack := d.Command("cp", "-", container+":/usr/local")
	var out strings.Builder
	unpack.Stdout, unpack.Stderr, pack.Stderr = &out, &out, &out
	if unpack.Stdin, err = pack.StdoutPipe(); err != nil {
		return "", err
	}
	if err := pack.Start(); err != nil {
		return "", err
	}
	if err := errors.Join(unpack.Run(), pack.Wait()); err != nil {
		return "", fmt.Errorf("copying Go from %s: %w\n%s", root, err, out.String())
	}
	_, err = d.Run(ctx, "commit", "--change", "ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOTOOLCHAIN=local", container, image)
	return image, err
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
