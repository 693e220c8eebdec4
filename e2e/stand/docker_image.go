package stand

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"issuesmith/e2e/parts"
)

// Base returns the image everything else is made of: a minimal Debian, from packages.
func (d *Docker) Base(ctx context.Context) (string, error) {
	debian, err := parts.BuildDebian(ctx, d.cache)
	if err != nil {
		return "", err
	}
	// Kept as an image too: imported anew it would be another one, and nothing that was
	// built of it would be found again.
	return d.keep(ctx, "debian", debian.Key, func(image string) error {
		_, err := d.Run(ctx, "import", debian.Tar, image)
		return err
	})
}

// A Recipe is what an image is made of.
type Recipe struct {
	Name  string
	Dir   string            // the build's context, with a Dockerfile
	Files []string          // what of Dir goes into the image; nil is all of it
	Args  map[string]string // build arguments: an image named here brings its key along
	// Target is the stage to build; "" is the last.
	Target string
	// From is an image whose layers are taken where the build would make the same.
	From string
	// Throw means that the image is not kept for the next run: it changes with every change.
	Throw bool
}

// Image builds an image, or takes it from this daemon or from the cache, and returns its
// name, whose tag changes with everything it is made of. Commands of the build reach
// Debian's packages through a proxy and nothing else.
func (d *Docker) Image(ctx context.Context, r Recipe) (string, error) {
	key, err := r.key()
	if err != nil {
		return "", err
	}
	if image := r.Name + ":" + key; r.Throw {
		return image, d.build(ctx, r, image)
	}
	return d.keep(ctx, r.Name, key, func(image string) error { return d.build(ctx, r, image) })
}

// keep returns the image NAME:KEY from this daemon or from the cache, and makes it first
// where neither has it.
func (d *Docker) keep(ctx context.Context, name, key string, make func(image string) error) (string, error) {
	image := name + ":" + key
	if d.has(ctx, image) {
		return image, nil
	}
	dir, took, err := parts.Keep(ctx, d.cache, "image-"+name+"-"+key, func(ctx context.Context, into string) error {
		if err := make(image); err != nil {
			return err
		}
		_, err := d.Run(ctx, "save", "--output", filepath.Join(into, "image.tar"), image)
		return err
	})
	if err != nil || took > 0 {
		return image, err
	}
	_, err = d.Run(ctx, "load", "--input", filepath.Join(dir, "image.tar"))
	return image, err
}

func (d *Docker) has(ctx context.Context, image string) bool {
	_, err := d.Run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}

func (d *Docker) build(ctx context.Context, r Recipe, image string) error {
	proxy, stop, err := d.webProxy(ctx)
	if err != nil {
		return err
	}
	defer stop()
	// Docker hands arguments of these names to every command and keeps them out of the image.
	args := []string{"build", "--quiet", "--tag", image, "--build-arg", "http_proxy=" + proxy, "--build-arg", "no_proxy=" + dockerAddress}
	for _, k := range slices.Sorted(maps.Keys(r.Args)) {
		args = append(args, "--build-arg", k+"="+r.Args[k])
	}
	if r.From != "" {
		args = append(args, "--cache-from", r.From)
	}
	if r.Target != "" {
		args = append(args, "--target", r.Target)
	}
	if _, err := d.Run(ctx, append(args, r.Dir)...); err != nil {
		return fmt.Errorf("building the image %s: %w", r.Name, err)
	}
	return nil
}

// key is a hash of everything the image is made of. Packages are taken as they are when
// it is built.
func (r Recipe) key() (string, error) {
	h := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(r.Args)) {
		_, _ = fmt.Fprintf(h, "%s=%q\n", k, r.Args[k]) // a hash never fails to take bytes
	}
	_, _ = fmt.Fprintf(h, "target %q\n", r.Target)
	files := r.Files
	if files == nil {
		files = []string{"."}
	}
	for _, f := range append(files, "Dockerfile", ".dockerignore") {
		err := filepath.WalkDir(filepath.Join(r.Dir, f), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			return hashFile(h, strings.TrimPrefix(path, r.Dir), path)
		})
		if err != nil && (!errors.Is(err, fs.ErrNotExist) || f != ".dockerignore") {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

func hashFile(h io.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(h, "%q %v %d\n", name, info.Mode(), info.Size()) // a hash never fails to take bytes
	_, err = io.Copy(h, f)
	return err
}
