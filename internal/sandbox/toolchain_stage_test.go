package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A stage is what the toolchain cases find on the machine: caches, a history, a database. It is made outside of any sandbox, and
// every user may read it. The caches are copies of some that stay for the next time.
type stage struct {
	Base string
	Port int    // of MariaDB on loopback; 0 where there is none
	Lock string // package-lock.json that goes with packageJSON
}

// What the projects of the cases need.
const (
	goMod = `module example.com/project

go 1.24

require github.com/pmezard/go-difflib v1.0.0
`
	goSum = `github.com/pmezard/go-difflib v1.0.0 h1:4DBwDE0NGyQoBHbLQYPwSUPoCMWR5BEzIk/f1lZbAQM=
github.com/pmezard/go-difflib v1.0.0/go.mod h1:iKH77koFhYxTK1pcRnkKkqfTogsbg7gZNVY4sRDYZ/4=
`
	packageJSON = `{"name": "project", "version": "1.0.0", "private": true, "dependencies": {"ms": "2.1.3"}, "devDependencies": {"typescript": "5.9.3"}}
`
)

func newStage(t *testing.T) *stage {
	base, err := os.MkdirTemp("/var/tmp", "sandbox-stage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	kept, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kept = filepath.Join(kept, "issuesmith-toolchains")
	st := &stage{Base: base}
	st.fillGo(t, kept)
	st.fillNode(t, kept)
	outsideOf(t, base, nil, "sh", "-c", `cp -r "$1"/* .`, "sh", kept)
	st.makeHistory(t)
	if err := exec.Command("chmod", "-R", "a+rX", base).Run(); err != nil {
		t.Fatal(err)
	}
	st.startDatabase(t)
	text, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	lay(t, base, map[string]string{"stage.json": string(text)})
	return st
}

// outsideOf runs a program as the caller, with its network and its settings.
func outsideOf(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// fillGo makes a module cache with the dependency, which is one of this module's own, and a build cache with the standard library.
func (st *stage) fillGo(t *testing.T, kept string) {
	project := filepath.Join(st.Base, "project")
	lay(t, project, map[string]string{"go.mod": goMod, "go.sum": goSum})
	for _, c := range toolchainCases {
		if c.dir == "go" {
			for name, text := range c.files {
				lay(t, st.Base, map[string]string{"project" + strings.TrimPrefix(name, "go"): text})
			}
		}
	}
	env := []string{
		"GOMODCACHE=" + filepath.Join(kept, "modules"), "GOCACHE=" + filepath.Join(kept, "builds"), "GOTOOLCHAIN=local",
		"GOPROXY=file://" + filepath.Join(outsideOf(t, ".", nil, "go", "env", "GOMODCACHE"), "cache/download") + "," + outsideOf(t, ".", nil, "go", "env", "GOPROXY"),
	}
	outsideOf(t, project, env, "go", "mod", "download")
	outsideOf(t, project, env, "go", "vet", "./...")
	outsideOf(t, project, env, "go", "test", "-run", "^$", "./...")
	outsideOf(t, project, env, "go", "test", "-race", "-run", "^$", "./race")
}

// fillNode makes an npm cache with the packages.
func (st *stage) fillNode(t *testing.T, kept string) {
	if lookIn(os.Getenv("PATH"), "npm") == "" {
		return
	}
	project := filepath.Join(st.Base, "node")
	lay(t, project, map[string]string{"package.json": packageJSON})
	outsideOf(t, project, nil, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved=false", "--cache", filepath.Join(kept, "npm"))
	lock, err := os.ReadFile(filepath.Join(project, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	st.Lock = string(lock)
}

// makeHistory makes what Options.History is: a repository with an index and one commit of a worktree.
func (st *stage) makeHistory(t *testing.T) {
	tree := filepath.Join(st.Base, "begin")
	lay(t, tree, map[string]string{"README": "one\n", "code/a.txt": "a\n"})
	env := []string{"GIT_DIR=" + filepath.Join(st.Base, "history"), "GIT_WORK_TREE=" + tree, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=The beginning"},
		{"config", "core.bare", "false"},
		{"config", "core.checkStat", "minimal"},
		{"config", "core.trustctime", "false"},
	} {
		outsideOf(t, tree, env, "git", args...)
	}
}

// startDatabase starts MariaDB on a loopback port, with a user whose password test-env gives.
func (st *stage) startDatabase(t *testing.T) {
	path := os.Getenv("PATH")
	install, server := lookIn(path, "mariadb-install-db"), lookIn(path+":/usr/sbin", "mariadbd")
	if install == "" || server == "" {
		return
	}
	dir := filepath.Join(st.Base, "database")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var more []string
	if os.Getuid() == 0 {
		who, err := user.Lookup("mysql")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		more = []string{"--user=mysql"}
	}
	lay(t, st.Base, map[string]string{"init.sql": "CREATE DATABASE app_test;\nCREATE USER 'app'@'%' IDENTIFIED BY 'test-secret';\nGRANT ALL ON app_test.* TO 'app'@'%';\n"})
	outsideOf(t, st.Base, nil, install, append([]string{"--no-defaults", "--datadir=" + dir, "--skip-test-db", "--auth-root-authentication-method=normal"}, more...)...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	st.Port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(st.Base, "database.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(server, append([]string{
		"--no-defaults", "--datadir=" + dir, "--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", st.Port), "--socket=" + filepath.Join(dir, "socket"),
		"--pid-file=" + filepath.Join(dir, "pid"), "--innodb-buffer-pool-size=16M", "--skip-name-resolve", "--init-file=" + filepath.Join(st.Base, "init.sql"),
	}, more...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", st.Port))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("MariaDB does not start: %v\n%s", err, text)
		}
	}
}
