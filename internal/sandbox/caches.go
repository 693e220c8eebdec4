package sandbox

// A cacheKind is a tool's cache, known by what lies in it.
type cacheKind struct {
	inPlace bool // the tool can read it where it is
}

// kindOf recognizes a tool's cache; nil for something else.
func kindOf(dir string) *cacheKind { return nil }

// fillCaches makes private copies of the configured caches below home and returns the variables (KEY=VALUE) that lead tools to
// them. A cache that is not one of a known tool is read in place.
func fillCaches(home string, caches []string, owner Owner) (env []string, err error) { return nil, nil }
