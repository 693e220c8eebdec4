package sandbox

// installGit puts the small git into folder, which stands first on the commands' PATH: the real one, on the read-only history
// where the current folder has no repository of its own. real is the real git's path, top the worktree.
func installGit(folder, real, history, top string) error { return nil }
