package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A cacheKind is a tool's cache. Only the parts that are named here are given to commands: settings with credentials
// lie beside them in the homes of cargo, Gradle, Maven and Composer.
type cacheKind struct {
	name   string
	marks  []string // patterns of path/filepath: any of these in a folder makes it one
	reads  []string // parts that the tool reads where they are
	copies []string // parts that it would write to: copied for the run
	target string   // below HOME, where the tool looks
}

// The order matters: the first whose mark is found counts.
var cacheKinds = []cacheKind{
	// The read-only folder is a proxy for Go (go.dev/ref/mod#module-cache), and go.sum is verified as with any other.
	{name: "Go modules", marks: []string{"cache/download"}, reads: []string{"cache/download"}},
	{name: "Go builds", marks: []string{"trim.txt"}, copies: []string{"."}, target: ".cache/go-build"},
	{name: "npm", marks: []string{"_cacache"}, copies: []string{"_cacache"}, target: ".npm"},
	{name: "cargo", marks: []string{"registry/index", "registry/cache"}, copies: []string{"registry/index", "registry/cache"}, target: ".cargo"},
	// GRADLE_RO_DEP_CACHE is a cache of others, which Gradle only reads; its distributions are locked before use.
	{name: "Gradle", marks: []string{"caches/modules-2"}, reads: []string{"caches/modules-2"}, copies: []string{"wrapper/dists"}, target: ".gradle"},
	{name: "Maven", marks: []string{"repository/org"}, copies: []string{"repository"}, target: ".m2"},
	{name: "Maven", marks: []string{"org/apache/maven"}, copies: []string{"."}, target: ".m2/repository"},
	{name: "pip", marks: []string{"http-v2", "http", "selfcheck"}, copies: []string{"http", "http-v2", "wheels"}, target: ".cache/pip"},
	{name: "Composer", marks: []string{"repo/http*---*"}, copies: []string{"files", "repo"}, target: ".cache/composer"},
}

// kindOf recognizes a tool's cache; nil for something else.
func kindOf(dir string) *cacheKind {
	for i, kind := range cacheKinds {
		for _, mark := range kind.marks {
			if found, err := filepath.Glob(filepath.Join(literal(dir), mark)); err == nil && len(found) > 0 {
				return &cacheKinds[i]
			}
		}
	}
	return nil
}

// literal is a path as a pattern that matches nothing else.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// giveCache opens what is read in place.
func (g *grants) giveCache(dir string) {
	kind := kindOf(dir)
	if kind == nil {
		g.give(dir)
		return
	}
	for _, part := range kind.reads {
		g.give(filepath.Join(dir, part))
	}
}

// cacheVariables lead tools to caches that they read in place. goproxy is where Go would look else.
func cacheVariables(caches []string, goproxy string) []string {
	var env, proxies []string
	for _, dir := range caches {
		kind := kindOf(dir)
		if kind == nil {
			continue
		}
		switch kind.name {
		case "Go modules":
			proxies = append(proxies, "file://"+filepath.Join(dir, "cache/download"))
		case "Gradle":
			env = append(env, "GRADLE_RO_DEP_CACHE="+filepath.Join(dir, "caches"))
		}
	}
	if len(proxies) > 0 {
		env = append(env, "GOPROXY="+strings.Join(append(proxies, goproxy), ","))
	}
	return env
}

// fillCaches makes private copies of the configured caches below home and returns the variables (KEY=VALUE) that lead tools to
// them. A cache that is not one of a known tool is read in place.
//
// Tools find copies where they look by themselves, so that there are no variables. A copy that is there already, of an earlier
// sandbox of the run, is kept. Where the file system cannot share blocks 500 MB in 5,000 files take 5 s on a
// slow disk.
func fillCaches(home string, caches []string, owner Owner) error {
	var errs []error
	for _, dir := range caches {
		if err := fillCache(home, dir, owner); err != nil {
			errs = append(errs, fmt.Errorf("the cache %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

func fillCache(home, dir string, owner Owner) error {
	if !filepath.IsAbs(dir) {
		return errors.New("it must be an absolute path")
	}
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return errors.New("it is not a folder")
	}
	kind := kindOf(dir)
	if kind == nil {
		if opens, refused := newGrants(os.Environ()).refuses(realPath(dir)); refused {
			return fmt.Errorf("it is no cache of a known tool, and to open it would open %s: name the cache itself", opens)
		}
		return nil
	}
	budget := &copyBudget{bytes: maxCacheSize, files: maxCacheFiles, owner: owner}
	for _, part := range kind.copies {
		source, target := filepath.Join(dir, part), filepath.Join(home, kind.target, part)
		if err := budget.once(home, source, target); err != nil {
			return fmt.Errorf("copying the cache of %s: %w", kind.name, err)
		}
	}
	return nil
}
