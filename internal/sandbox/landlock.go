package sandbox

// fileRules are the folders and files a command may use; everything else is closed to it. Paths that do not
// exist are left out. A file in place of a folder gets only the rights that files have.
type fileRules struct {
	Write   []string // read, write, make, remove, rename, execute
	Read    []string // read, list, execute
	Devices []string // read, write and ioctl of single device files
}

// landlockABI is the kernel's Landlock version; 0 where there is none.
func landlockABI() int { panic("not built") }

// newRuleset builds the domain of a command for a kernel of this version: files, TCP unless tcp is true (all of it closed, since the
// broker's sockets are made outside of the domain), and signal and abstract-socket scopes where the version has them.
// The descriptor is close-on-exec and can be used for any number of commands.
func newRuleset(abi int, files fileRules, tcp bool) (fd int, err error) { panic("not built") }

// newScopes builds the executor's own domain, which has no file rules but the scopes (version 6 and later).
func newScopes(abi int) (fd int, err error) { panic("not built") }

// restrict puts the calling thread, which must be locked and have no-new-privs, into the domain.
func restrict(fd int) error { panic("not built") }
