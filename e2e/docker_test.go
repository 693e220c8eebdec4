package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"issuesmith/e2e/parts"
	"issuesmith/e2e/stand"
)

// dockerTime bounds all that is done in containers: cold, a Debian is made of packages,
// and three images of it, while other tests want the processors as well.
const dockerTime = 25 * time.Minute

// TestDocker is about the Dockerfile: the image is built as users do it, but for its base,
// which comes from packages instead of a registry, and used alone and by a runner.
func TestDocker(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: needs root")
	}
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), dockerTime)
	t.Cleanup(stop)
	cache, err := parts.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	d, err := stand.OpenDocker(ctx, cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(d.Log())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &containers{TB: t, ctx: ctx, docker: d}
	c.buildImages()
	t.Run("tools", func(t *testing.T) { c.with(t).tools() })
	for name, user := range map[string]string{"as its user": "", "as root": "0:0"} {
		t.Run("demo "+name, func(t *testing.T) { c.with(t).demo(user) })
	}
	c.stand, c.owner = c.dockerStand()
	for _, j := range c.jobs() {
		t.Run(j.runner.Label, func(t *testing.T) { c.with(t).mode(j) })
	}
}

// containers are a daemon with the images of these tests.
type containers struct {
	testing.TB
	ctx    context.Context
	docker *stand.Docker
	base   string // Debian alone
	image  string // what the Dockerfile makes
	// database is the image of a MariaDB.
	database string

	stand *stand.Stand
	owner *stand.Person // of the repositories there
}

func (c *containers) with(t testing.TB) *containers {
	copied := *c
	copied.TB = t
	return &copied
}

func (c *containers) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// took logs how long something took.
func (c *containers) took(what string, f func() error) {
	c.Helper()
	start := time.Now()
	c.must(f())
	c.Logf("%s: %v", what, time.Since(start).Round(100*time.Millisecond))
}

func (c *containers) buildImages() {
	c.Helper()
	root, err := parts.Root()
	c.must(err)
	top := filepath.Dir(root)
	var builder, tools, proxy string
	c.took("Debian", func() (err error) {
		c.base, err = c.docker.Base(c.ctx)
		return err
	})
	// The stage that takes long and seldom changes is kept; the whole finds it again.
	c.took("tools", func() (err error) {
		tools, err = c.docker.Image(c.ctx, stand.Recipe{Name: "tools", Dir: top, Target: "tools", Files: []string{}, Args: map[string]string{"BASE": c.base}})
		return err
	})
	c.took("MariaDB", func() (err error) {
		c.database, err = c.docker.Image(c.ctx, stand.Recipe{Name: "mariadb", Dir: filepath.Join(root, "testdata", "images", "mariadb"), Args: map[string]string{"BASE": c.base}})
		return err
	})
	c.took("Go", func() (err error) {
		if builder, err = c.docker.GoImage(c.ctx, c.base); err == nil {
			proxy, err = c.docker.GoProxy(c.ctx, top)
		}
		return err
	})
	c.took("issuesmith", func() (err error) {
		c.image, err = c.docker.Image(c.ctx, stand.Recipe{
			Name: "issuesmith", Dir: top, Files: []string{"go.mod", "go.sum", "main.go", "internal"}, From: tools, Throw: true,
			Args: map[string]string{"BASE": c.base, "BUILDER": builder, "GOPROXY": proxy, "VERSION": "v0.0.0-e2e"},
		})
		return err
	})
	// Else the stage was made a second time: minutes.
	if made, kept := c.layers(c.image), c.layers(tools); !strings.HasPrefix(made, strings.TrimSuffix(kept, "]")) {
		c.Errorf("the image is not made of the kept stage:\n%s\n%s", made, kept)
	}
}

// layers are the hashes of an image's layers, as a list in JSON.
func (c *containers) layers(image string) string {
	c.Helper()
	out, err := c.docker.Run(c.ctx, "image", "inspect", "--format", "{{json .RootFS.Layers}}", image)
	c.must(err)
	return out
}

// run runs a shell script in a container of the image.
func (c *containers) run(script string, options ...string) string {
	c.Helper()
	args := append([]string{"run", "--rm", "--entrypoint", "bash"}, options...)
	out, err := c.docker.Run(c.ctx, append(args, c.image, "-ec", script)...)
	c.must(err)
	return out
}

// holds checks that a text holds others, case aside.
func (c *containers) holds(text string, wanted ...string) {
	c.Helper()
	for _, w := range wanted {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
			c.Errorf("%q does not stand in:\n%s", w, text)
		}
	}
}

// tools checks what the image brings.
func (c *containers) tools() {
	c.holds(c.run("id -un; issuesmith version; git --version; php --version; composer --version 2>&1; node --version; npm --version; unzip -v | head -n 1"),
		"issuesmith\n", "issuesmith v0.0.0-e2e", "git version 2", "PHP 8", "Composer version 2", "v18.", "UnZip 6")
	c.holds(c.run("php -m"), "curl\n", "mbstring\n", "mysqli\n", "pdo_mysql\n", "dom\n", "xml\n", "zip")
	c.run(`cd "$(mktemp -d)" && echo '{}' > package.json && npm install --offline --no-audit && node --test && php -r 'exit(0);'`)
	if uid := c.run("id -u"); uid == "0" {
		c.Error("the image's user is root")
	}
	// It is static: it starts where there is no libc.
	if out := c.run("(ldd /usr/local/bin/issuesmith || true) 2>&1"); !strings.Contains(out, "not a dynamic executable") {
		c.Errorf("the program is linked to libraries:\n%s", out)
	}
}

// demo runs the main job in a container, once with what isolation there is and again, from
// its record, with no less than strict wants.
func (c *containers) demo(user string) {
	out := c.run(`issuesmith sandbox --sandbox strict --report
		issuesmith sandbox --sandbox strict -- 'php -r "echo 6*7, PHP_EOL;"; node -p 6*8; id -u'
		issuesmith demo >/dev/null 2>&1
		cd ~/.local/state/issuesmith
		issuesmith replay --sandbox strict --repo *-demo-*/project */transcript.jsonl 2>&1`, "--user", user)
	c.holds(out, `"level": "`, "42\n48\n", "done: opened", "isolation: ")
	c.Log(out[:strings.Index(out, "42\n")])
}
