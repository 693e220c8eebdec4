// Package parts builds the foreign programs the end-to-end tests run against, from
// the modules pinned beside it, and keeps them in a cache by version.
package parts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A Part is one foreign program.
type Part struct {
	Name    string // folder below e2e/ that holds its go.mod, and name of the binary
	Package string // main package, the tool of that go.mod
	Tags    string // build tags
	Cgo     bool   // needs a C compiler
	Folders bool   // wants Gitea's templates, options and public folders beside it
}

// The parts, pinned by the go.mod files in e2e/gitea, e2e/runner and e2e/act.
var (
	Gitea  = Part{Name: "gitea", Package: "code.gitea.io/gitea", Tags: "sqlite sqlite_unlock_notify", Cgo: true, Folders: true}
	Runner = Part{Name: "runner", Package: "gitea.com/gitea/runner"}
	Act    = Part{Name: "act", Package: "github.com/nektos/act"}
)

// All lists every part.
func All() []Part { return []Part{Gitea, Runner, Act} }

// A Built is where a part lies.
type Built struct {
	Bin    string // the program
	Static string // folder with templates, options and public; "" for parts without
	Took   time.Duration
}

// staticFolders are what Gitea reads beside its binary.
var staticFolders = []string{"templates", "options", "public"}

// Root is the e2e module's folder, found from the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		for _, c := range []string{d, filepath.Join(d, "e2e")} {
			if data, err := os.ReadFile(filepath.Join(c, "go.mod")); err == nil && strings.HasPrefix(string(data), "module issuesmith/e2e\n") {
				return c, nil
			}
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no e2e module found from %s upwards: run the tests inside the clone", dir)
		}
	}
}

// CacheDir is where built parts are kept: $ISSUESMITH_E2E_CACHE, else below the
// user's cache folder.
func CacheDir() (string, error) {
	if d := os.Getenv("ISSUESMITH_E2E_CACHE"); d != "" {
		return filepath.Abs(d)
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set ISSUESMITH_E2E_CACHE): %w", err)
	}
	return filepath.Join(d, "issuesmith-e2e"), nil
}

// Build returns the part from the cache and builds it first when it is not there.
// Two processes that ask at once build it once. A cold Gitea takes minutes.
func Build(ctx context.Context, p Part) (Built, error) {
	root, err := Root()
	if err != nil {
		return Built{}, err
	}
	module := filepath.Join(root, p.Name)
	key, err := p.key(module)
	if err != nil {
		return Built{}, err
	}
	cache, err := CacheDir()
	if err != nil {
		return Built{}, err
	}
	dir, took, err := Keep(ctx, cache, key, func(ctx context.Context, into string) error { return p.build(ctx, module, into) })
	if err != nil {
		return Built{}, fmt.Errorf("building %s in %s: %w", p.Name, module, err)
	}
	built := Built{Bin: filepath.Join(dir, p.Name), Took: took}
	if p.Folders {
		built.Static = dir
	}
	return built, nil
}

// Key names the cache entry: it changes with the pinned modules, the Go version and
// the architecture.
func (p Part) Key() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return p.key(filepath.Join(root, p.Name))
}

func (p Part) key(module string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		_, _ = h.Write(data) // a hash never fails to take bytes
	}
	_, _ = fmt.Fprintf(h, "%s %s %s %s", runtime.Version(), runtime.GOARCH, p.Package, p.Tags)
	return fmt.Sprintf("%s-%x", p.Name, h.Sum(nil)[:8]), nil
}

func (p Part) build(ctx context.Context, module, into string) error {
	cgo := "CGO_ENABLED=0"
	if p.Cgo {
		cgo = "CGO_ENABLED=1"
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(into, p.Name)}
	if p.Tags != "" {
		args = append(args, "-tags", p.Tags)
	}
	if _, err := goTool(ctx, module, []string{cgo}, append(args, p.Package)...); err != nil {
		return err
	}
	if !p.Folders {
		return nil
	}
	source, err := goTool(ctx, module, nil, "list", "-m", "-f", "{{.Dir}}", p.Package)
	if err != nil {
		return err
	}
	for _, f := range staticFolders {
		if err := CopyTree(filepath.Join(strings.TrimSpace(source), f), filepath.Join(into, f)); err != nil {
			return err
		}
	}
	return nil
}

// goTool runs the go command in a module and returns what it printed. GOFLAGS of the
// caller are left out: they are meant for another module.
func goTool(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "GOFLAGS=", "GOWORK=off")...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// CopyTree copies regular files and folders, readable by everybody and writable by
// the owner, keeping the executable bit. Other kinds are left out.
func CopyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return copyFile(path, target, 0o644|info.Mode()&0o111)
	})
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the copy's error is the one that matters
		return err
	}
	return out.Close()
}
