package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCachesAreCopiedWithoutWhatLiesBesideThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files []string // of the host; those with "canary" must not be copied
		want  string   // below HOME
	}{
		{"Go builds", []string{"trim.txt", "00/00aa-d", "README"}, ".cache/go-build/00/00aa-d"},
		{"npm", []string{"_cacache/index-v5/aa/bb", "_logs/canary.log", "canary"}, ".npm/_cacache/index-v5/aa/bb"},
		{"cargo", []string{"registry/index/x/config.json", "registry/cache/x/a.crate", "canary.toml", "git/db/canary"}, ".cargo/registry/cache/x/a.crate"},
		{"Gradle", []string{"caches/modules-2/files-2.1/a.jar", "gradle.properties.canary", "wrapper/dists/gradle-9/x"}, ".gradle/wrapper/dists/gradle-9/x"},
		{"Maven's home", []string{"repository/org/a/a.jar", "canary-settings.xml"}, ".m2/repository/org/a/a.jar"},
		{"Maven's repository", []string{"org/apache/maven/a.jar", "com/b.jar"}, ".m2/repository/com/b.jar"},
		{"pip", []string{"http-v2/a/b", "wheels/x.whl", "canary"}, ".cache/pip/wheels/x.whl"},
		{"Composer", []string{"repo/https---packages.example/p.json", "files/a/b.zip", "vcs/canary"}, ".cache/composer/files/a/b.zip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host, home := t.TempDir(), t.TempDir()
			for _, name := range c.files {
				lay(t, host, map[string]string{name: "text of " + name})
			}
			if err := os.Symlink("/etc/passwd", filepath.Join(filepath.Dir(filepath.Join(host, c.files[0])), "link-canary")); err != nil {
				t.Fatal(err)
			}
			if err := fillCaches(home, []string{host}, DropOwner()); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(filepath.Join(home, c.want)); err != nil || !strings.HasPrefix(string(text), "text of ") {
				t.Errorf("%q %v", text, err)
			}
			err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
				if err == nil && (strings.Contains(path, "canary") || strings.HasSuffix(path, ".part")) {
					t.Errorf("copied: %s", path)
				}
				if info, err := d.Info(); err == nil && path != home && DropOwner().Drop && info.Sys().(*syscall.Stat_t).Uid != commandUser {
					t.Errorf("%s is not the commands'", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCopiedCacheIsNotTheHosts(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	lay(t, host, map[string]string{"_cacache/content": "host"})
	old := time.Now().Add(-100 * time.Hour).Truncate(time.Second)
	if err := os.Chtimes(filepath.Join(host, "_cacache/content"), old, old); err != nil {
		t.Fatal(err)
	}
	s := openWith(t, Options{Caches: []string{host}})
	out := run(t, s, Command{Script: "stat -c %Y ~/.npm/_cacache/content; cat ~/.npm/_cacache/content && echo mine > ~/.npm/_cacache/content && rm -r ~/.npm/_cacache/content"}).Output()
	if out != fmt.Sprintf("%d\nhost", old.Unix()) {
		t.Errorf("got %q", out)
	}
	if text, err := os.ReadFile(filepath.Join(host, "_cacache/content")); err != nil || string(text) != "host" {
		t.Errorf("the host's cache is changed: %q %v", text, err)
	}
	// A later sandbox of the run goes on with what is there.
	if err := fillCaches(s.options.Home, []string{host}, s.owner); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.options.Home, ".npm/_cacache/content")); err == nil {
		t.Error("copied again")
	}
}

func TestLinkInHomeIsNotFollowed(t *testing.T) {
	t.Parallel()
	host, home, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	lay(t, host, map[string]string{"_cacache/content": "host"})
	if err := os.Symlink(elsewhere, filepath.Join(home, ".npm")); err != nil {
		t.Fatal(err)
	}
	if err := fillCaches(home, []string{host}, DropOwner()); err == nil {
		t.Error("no error")
	}
	if entries, _ := os.ReadDir(elsewhere); len(entries) > 0 {
		t.Errorf("written through a link: %v", entries)
	}
}

func TestCachesThatCannotBeGivenAreNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	lay(t, filepath.Dir(file), map[string]string{"file": ""})
	caches := []string{"/", "/etc", "/root", "relative", file, "/no/such/folder"}
	err := fillCaches(t.TempDir(), caches, DropOwner())
	if err == nil {
		t.Fatal("no error")
	}
	for _, dir := range caches {
		if !strings.Contains(err.Error(), "the cache "+dir+": ") {
			t.Errorf("%s is not named in: %v", dir, err)
		}
	}
}

func TestCopyKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]copyBudget{"larger than": {bytes: 99, files: 10}, "more than": {bytes: 1000, files: 1}} {
		source, home := t.TempDir(), t.TempDir()
		lay(t, source, map[string]string{"a": strings.Repeat("x", 50), "b": strings.Repeat("x", 50)})
		err := budget.once(home, source, filepath.Join(home, ".cache/x"))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(home, ".cache/*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// An unknown folder is read where it is and cannot be written.
func TestUnknownCacheIsReadInPlace(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	for dir := host; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lay(t, host, map[string]string{"data": "text"})
	s := openWith(t, Options{Caches: []string{host}})
	out := run(t, s, Command{Script: "cat " + host + "/data; echo more >> " + host + "/data || echo refused"}).Output()
	if !strings.HasPrefix(out, "text") || !strings.HasSuffix(out, "refused\n") {
		t.Errorf("got %q", out)
	}
}

// BenchmarkCopy copies a cache of 500 MB in 5,000 files.
func BenchmarkCopy(b *testing.B) {
	source, home := b.TempDir(), b.TempDir()
	text := strings.Repeat("x", 100_000)
	for i := range 5000 {
		lay(b, source, map[string]string{fmt.Sprintf("%02x/%d", i%256, i): text})
	}
	b.SetBytes(500_000_000)
	for b.Loop() {
		c := copyBudget{bytes: maxCacheSize, files: maxCacheFiles, owner: DropOwner()}
		if err := c.once(home, source, filepath.Join(home, "copy")); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := os.RemoveAll(filepath.Join(home, "copy")); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
