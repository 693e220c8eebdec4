package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupMounts are where a unified hierarchy is, alone or beside the older ones.
var cgroupMounts = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

// executorMemory is what the executor may take beside its commands, in bytes: it is in their group.
const executorMemory = 64 << 20

// groupBusy is how long the removal of a group whose processes are dying may take.
const groupBusy = 2 * time.Second

// A cgroup is a control group for one executor and its commands (Linux's admin-guide/cgroup-v2): the kernel itself bounds memory
// that the watch cannot see, counts threads, and kills all of them at once.
type cgroup struct {
	dir   string
	gives []string // "kill", "pids", "memory"
	ooms  int64    // seen
}

// newCgroup makes a group below the one that this process is in, whose own limits go on to hold. Only root may; the error says
// what is missing. Groups that dead runs left are removed.
func newCgroup(l Limits) (*cgroup, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may make a control group")
	}
	parent, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	removeDeadCgroups(parent)
	enableControllers(parent)
	for n := 0; ; n++ {
		dir := filepath.Join(parent, fmt.Sprintf("issuesmith-%d-%d", os.Getpid(), n))
		err := os.Mkdir(dir, 0o755) // #nosec G301 -- a control group; the kernel says what others may do in it
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("making a control group: %w", err)
		}
		return &cgroup{dir: dir, gives: limitCgroup(dir, l.withDefaults())}, nil
	}
}

// ownCgroup is the folder of the group this process is in, in the unified hierarchy.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("looking for the control group: %w", err)
	}
	for _, mount := range cgroupMounts {
		var st unix.Statfs_t
		if unix.Statfs(mount, &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		path, ok := unifiedPath(string(text))
		if !ok {
			return "", errors.New("this process's control group lies outside of what is mounted")
		}
		dir := filepath.Join(mount, path)
		if err := unix.Access(dir, unix.W_OK); err != nil {
			return "", fmt.Errorf("the control group %s: %w", dir, err)
		}
		return dir, nil
	}
	return "", errors.New("there is no unified control group hierarchy (cgroup version 2)")
}

// unifiedPath finds the path of the unified hierarchy in a /proc/PID/cgroup (cgroups(7)).
func unifiedPath(text string) (string, bool) {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			// Outside of the namespace's root it starts with "/..", and of a removed group it ends with a mark.
			return path, filepath.IsAbs(path) && filepath.Clean(path) == path && !strings.HasPrefix(path, "/..")
		}
	}
	return "", false
}

// enableControllers lets groups below parent have limits, where the kernel allows it: not below one that has processes, but
// for the root.
func enableControllers(parent string) {
	for _, controller := range []string{"memory", "pids"} {
		_ = setCgroup(parent, "cgroup.subtree_control", "+"+controller)
	}
}

// limitCgroup sets the limits that a group has files for, and says which things it gives.
func limitCgroup(dir string, l Limits) (gives []string) {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err == nil { // Linux 5.14
		gives = append(gives, "kill")
	}
	if setCgroup(dir, "pids.max", strconv.Itoa(l.Processes*threadsEach)) == nil {
		gives = append(gives, "pids")
	}
	if setCgroup(dir, "memory.max", strconv.FormatInt(l.Memory+executorMemory, 10)) == nil {
		_ = setCgroup(dir, "memory.swap.max", "0")
		_ = setCgroup(dir, "memory.oom.group", "1") // half a command is of no use
		gives = append(gives, "memory")
	}
	return gives
}

// setCgroup writes an interface file that exists.
func setCgroup(dir, name, value string) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0) // #nosec G304 -- of a control group
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

// add moves a process into the group; its children to come are born there.
func (c *cgroup) add(pid int) error {
	if err := setCgroup(c.dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("moving the executor into its control group: %w", err)
	}
	return nil
}

// kill kills every process of the group, the executor too.
func (c *cgroup) kill() error {
	if err := setCgroup(c.dir, "cgroup.kill", "1"); err != nil {
		return fmt.Errorf("killing a control group: %w", err)
	}
	return nil
}

// populated reports whether a process of the group lives.
func (c *cgroup) populated() bool { return c.event("cgroup.events", "populated") > 0 }

// exceeded returns the limit by which the kernel has ended a command since the last call, in the watch's words, or "".
func (c *cgroup) exceeded(l Limits) string {
	before := c.ooms
	if c.ooms = c.event("memory.events", "oom_kill"); c.ooms > before {
		return "memory-limit: the command used more than " + size(l.withDefaults().Memory)
	}
	return ""
}

// event is a number of a file of names and numbers; 0 for none.
func (c *cgroup) event(file, name string) int64 {
	text, err := os.ReadFile(filepath.Join(c.dir, file)) // #nosec G304 -- of a control group
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// close removes the group, once its last process is gone.
func (c *cgroup) close() error {
	for end := time.Now().Add(groupBusy); ; time.Sleep(time.Millisecond) {
		err := unix.Rmdir(c.dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("removing the control group %s: %w", c.dir, err)
		}
	}
}

// removeDeadCgroups removes the groups of runs that are gone. One that has a process stays: its run may only look gone, from
// another pid namespace.
func removeDeadCgroups(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		parts := strings.Split(entry.Name(), "-")
		if len(parts) != 3 || parts[0] != "issuesmith" {
			continue
		}
		if pid, err := strconv.Atoi(parts[1]); err == nil && pid > 1 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = unix.Rmdir(filepath.Join(parent, entry.Name()))
		}
	}
}
