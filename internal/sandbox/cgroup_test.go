package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCgroupKillsAndGoes(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		if _, err := newCgroup(Limits{}); err == nil {
			t.Error("an ordinary user got a control group")
		}
		return
	}
	if _, err := ownCgroup(); err != nil {
		t.Skip("needs a writable unified control group hierarchy: ", err)
	}
	c, err := newCgroup(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(c.gives, "kill") {
		t.Fatalf("gives %q", c.gives)
	}
	if c.populated() {
		t.Error("populated from the start")
	}
	// What is started before the move stays outside; this shell starts the others afterwards.
	cmd := exec.Command("sh", "-c", "read -r go; setsid sleep 6100.1 & setsid sh -c 'sleep 6100.1 & sleep 6100.1' & wait")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); alive("sleep\x006100.1") < 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the processes did not start")
		}
	}
	if !c.populated() {
		t.Error("not populated")
	}
	if err := c.kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if n := alive("6100.1"); n > 0 {
		t.Errorf("%d processes live", n)
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Error("the group is still there:", err)
	}
	if err := c.close(); err != nil {
		t.Error("closing twice:", err)
	}
}

func TestDeadRunsCgroupsGo(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{ // whether it stays
		fmt.Sprintf("issuesmith-%d-0", cmd.Process.Pid):  false,
		fmt.Sprintf("issuesmith-%d-17", cmd.Process.Pid): false,
		fmt.Sprintf("issuesmith-%d-0", os.Getpid()):      true,
		fmt.Sprintf("issuesmith-%d", cmd.Process.Pid):    true,
		fmt.Sprintf("other-%d-0", cmd.Process.Pid):       true,
		"issuesmith--1-0": true,
		"issuesmith-x-0":  true,
	}
	for name := range names {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeDeadCgroups(parent)
	for name, stays := range names {
		if _, err := os.Stat(filepath.Join(parent, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCgroupLimits writes into files that stand for the kernel's: most machines that run this give a test no controllers.
func TestCgroupLimits(t *testing.T) {
	t.Parallel()
	l := Limits{Memory: 1 << 30, Processes: 10}.withDefaults()
	for _, c := range []struct{ files, gives []string }{
		{nil, nil},
		{[]string{"cgroup.kill"}, []string{"kill"}},
		{[]string{"memory.max"}, []string{"memory"}},
		{[]string{"cgroup.kill", "pids.max", "memory.max", "memory.swap.max", "memory.oom.group"}, []string{"kill", "pids", "memory"}},
	} {
		dir := t.TempDir()
		for _, name := range c.files {
			write(t, filepath.Join(dir, name), 0)
		}
		if gives := limitCgroup(dir, l); !slices.Equal(gives, c.gives) {
			t.Errorf("%q give %q", c.files, gives)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != len(c.files) {
			t.Errorf("files were made: %v, %v", entries, err)
		}
		for name, want := range map[string]string{
			"pids.max": "80", "memory.max": fmt.Sprint(1<<30 + executorMemory), "memory.swap.max": "0", "memory.oom.group": "1",
		} {
			if !slices.Contains(c.files, name) {
				continue
			}
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
}

func TestCgroupTellsOfTheKernelsKill(t *testing.T) {
	t.Parallel()
	c := &cgroup{dir: t.TempDir()}
	for _, step := range []struct{ events, want string }{
		{"", ""},
		{"low 0\noom 0\noom_kill 0\n", ""},
		{"low 0\noom 1\noom_kill 2\noom_group_kill 1\n", "memory-limit: the command used more than 1 GiB"},
		{"low 0\noom 1\noom_kill 2\noom_group_kill 1\n", ""},
	} {
		if err := os.WriteFile(filepath.Join(c.dir, "memory.events"), []byte(step.events), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.exceeded(Limits{Memory: 1 << 30}); got != step.want {
			t.Errorf("%q: %q", step.events, got)
		}
	}
}

func FuzzUnifiedPath(f *testing.F) {
	for _, text := range []string{"0::/\n", "1:name=systemd:/x\n0::/system.slice/a.service\n", "0::/../..\n", "0::/a (deleted)\n", "0::relative", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, ok := unifiedPath(text)
		if ok && (!strings.HasPrefix(filepath.Join("/sys/fs/cgroup", path), "/sys/fs/cgroup") || strings.Contains(path, "\n")) {
			t.Errorf("%q leads to %q", text, path)
		}
	})
}
