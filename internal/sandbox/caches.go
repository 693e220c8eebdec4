package sandbox

// fillCaches makes private copies of the configured caches below home and returns the variables (KEY=VALUE) that lead tools to
// them. A cache that is not one of a known tool is read in place.
func fillCaches(home string, caches []string, owner Owner) (env []string, err error) { panic("not built") }
