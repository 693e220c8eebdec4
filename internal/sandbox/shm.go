package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// sharedFiles takes care of /dev/shm where it is not private: what a command leaves there goes after it.
type sharedFiles struct {
	folder string
	all    bool // every file of this user goes: nobody else has the commands' user
	before map[uint64]bool
}

// noteShared notes what is there before a command.
func noteShared(folder string, dedicated bool) *sharedFiles {
	s := &sharedFiles{folder: folder, all: dedicated, before: map[uint64]bool{}}
	s.each(func(_ string, inode uint64) { s.before[inode] = true })
	return s
}

// each calls f for every entry that belongs to this process's user.
func (s *sharedFiles) each(f func(path string, inode uint64)) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		path := filepath.Join(s.folder, entry.Name())
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && int(st.Uid) == os.Getuid() {
			f(path, st.Ino)
		}
	}
}

// remove removes what has come since; the command's processes are dead. Under the caller's own user a new file may be
// another program's: one that somebody has open or mapped stays.
func (s *sharedFiles) remove() {
	var candidates []string
	s.each(func(path string, inode uint64) {
		if s.all || !s.before[inode] {
			candidates = append(candidates, path)
		}
	})
	if len(candidates) == 0 {
		return
	}
	inUse := map[string]bool{}
	if !s.all {
		inUse = usedBelow(s.folder)
	}
	for _, path := range candidates {
		if !inUse[path] {
			_ = removeEntry(path)
		}
	}
}

// usedBelow lists the paths below folder that some process this user may look into has open or mapped.
func usedBelow(folder string) map[string]bool {
	used := map[string]bool{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return used
	}
	prefix := []byte(folder + "/")
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		_ = eachDescriptor("/proc/"+entry.Name(), func(_, to string) bool { // what cannot be looked at is not known to use it
			used[to] = true
			return true
		})
		maps, _ := os.ReadFile("/proc/" + entry.Name() + "/maps")
		for line := range bytes.Lines(maps) {
			if at := bytes.Index(line, prefix); at >= 0 {
				used[string(bytes.TrimSpace(line[at:]))] = true
			}
		}
	}
	return used
}

// removeEntry removes a file, or a folder however deep it is.
func removeEntry(path string) error {
	err := unix.Unlink(path)
	if errors.Is(err, unix.EISDIR) {
		if err = emptyFolder(path); err == nil {
			err = unix.Rmdir(path)
		}
	}
	return err
}
