package sandbox

// readable lists what commands may read beside their own folders: system folders, listed files of /etc, the toolchains
// found on path and by their usual variables in environ (KEY=VALUE of the caller), the folders named in the configuration.
// No folder that holds credentials is among them.
func readable(path string, environ []string, toolchains, caches []string) []string { panic("not built") }

// devices are the device files commands may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
