package sandbox

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// An order is all an executor is told at its start. It travels in a sealed memory file, not in an
// argument that all can read, and holds no secret.
type order struct {
	Env   []string // of the commands
	Shell string

	Files   fileRules
	Folders []string // worktree, HOME, TMPDIR: what counts against disk-limit
	Tmp     string   // also mounted at /tmp where there is a mount namespace
	Hosts   string   // text of the private /etc/hosts

	Off        bool // no isolation but user, environment and end
	UserNS     bool // namespaces through an own user namespace
	Namespaces bool // pid, mount, ipc, network (not when Open)
	Drop       bool // change to UID and GID
	UID, GID   int
	Lender     *lender // owner of the worktree where it is not the commands' user

	Targets []target
	Open    bool
	Limits  Limits
}

// isolated reports whether commands get a network namespace of their own.
func (o *order) isolated() bool { return o.Namespaces && !o.Open && !removed(layerNetworkNS) }

// seal puts the order into a memory file.
func (o *order) seal() (*os.File, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "order") // #nosec G115 -- a descriptor
	if _, err = file.Write(text); err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("writing the executor's order: %w", err)
	}
	return file, nil
}

// readOrder reads the memory file at descriptor orderFD, which every stage of the executor inherits.
func readOrder() (*order, error) {
	var size unix.Stat_t
	if err := unix.Fstat(orderFD, &size); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	text := make([]byte, size.Size)
	if _, err := unix.Pread(orderFD, text, 0); err != nil {
		return nil, os.NewSyscallError("pread", err)
	}
	o := &order{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, fmt.Errorf("reading the executor's order: %w", err)
	}
	return o, nil
}
