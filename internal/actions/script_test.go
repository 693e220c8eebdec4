package actions

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A place is an action's folder with a runner around it, for the script of action.yml.
type place struct {
	t                          *testing.T
	action, temp, cache, tools string
	script                     string
	env                        []string
}

// program is a shell script that stands for issuesmith: it says what it was asked.
const program = "#!/bin/sh\necho \"program $0 got $* as $$\"\nexit 7\n"

// newPlace has everything a runner has, and no Go.
func newPlace(t *testing.T) *place {
	t.Helper()
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Runs struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal(data, &action); err != nil || len(action.Runs.Steps) != 1 {
		t.Fatalf("action.yml: %v, %d steps", err, len(action.Runs.Steps))
	}
	// A blank in the path, since a workspace may have one.
	base := filepath.Join(t.TempDir(), "a b")
	p := &place{
		t: t, action: filepath.Join(base, "action"), temp: filepath.Join(base, "temp"),
		cache: filepath.Join(base, "cache"), tools: filepath.Join(base, "tools"), script: filepath.Join(base, "step.sh"),
	}
	for _, dir := range []string{p.action, p.temp, p.cache, p.tools} {
		p.mkdir(dir)
	}
	p.write(p.script, action.Runs.Steps[0].Run, 0o600)
	for _, tool := range []string{"bash", "sh", "uname", "grep", "sha256sum", "mktemp", "cp", "mv", "rm", "chmod", "mkdir", "find", "sort", "xargs", "cut", "stat"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(p.tools, tool)); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{"PATH=" + p.tools, "GITHUB_ACTION_PATH=" + p.action, "RUNNER_TEMP=" + p.temp, "RUNNER_TOOL_CACHE=" + p.cache, "GITHUB_EVENT_NAME=issues"}
	return p
}

func (p *place) mkdir(dir string) {
	p.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) write(path, text string, mode os.FileMode) {
	p.t.Helper()
	p.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		p.t.Fatal(err)
	}
}

// run starts the script as runners do and returns what it printed and its exit code.
func (p *place) run(env ...string) (string, int) {
	p.t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", p.script)
	cmd.Env = append(p.env, env...)
	cmd.Dir = p.temp
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	text := string(out)
	// `exec` makes the program the runner's direct child.
	if strings.HasSuffix(strings.TrimRight(text, "0123456789\n"), " as ") && !strings.Contains(text, fmt.Sprintf(" as %d\n", cmd.Process.Pid)) {
		p.t.Errorf("the program is not the runner's child %d: %s", cmd.Process.Pid, text)
	}
	return text, cmd.ProcessState.ExitCode()
}

// release puts a program and its sum into dist/.
func (p *place) release(mode os.FileMode) string {
	p.t.Helper()
	arch := runtime.GOARCH
	path := filepath.Join(p.action, "dist", "issuesmith-linux-"+arch)
	p.write(path, program, mode)
	sums := fmt.Sprintf("%064d  issuesmith-linux-other\n%x  issuesmith-linux-%s\n", 0, sha256.Sum256([]byte(program)), arch)
	p.write(filepath.Join(p.action, "dist", "SHA256SUMS"), sums, 0o644)
	return path
}

// expect wants the exit code and texts, a text with ! in front not.
func expect(t *testing.T, out string, code, want int, texts ...string) {
	t.Helper()
	if code != want {
		t.Errorf("exit %d, want %d:\n%s", code, want, out)
	}
	for _, text := range texts {
		not, negated := strings.CutPrefix(text, "!")
		if negated && strings.Contains(out, not) || !negated && !strings.Contains(out, text) {
			t.Errorf("want %q in:\n%s", text, out)
		}
	}
}

func TestScriptRelease(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	path := p.release(0o755)
	out, code := p.run()
	expect(t, out, code, 7, "program "+path+" got run as ")
	out, code = p.run("GITHUB_EVENT_NAME=schedule")
	expect(t, out, code, 7, " got sweep as ")
	out, code = p.run("GITHUB_EVENT_NAME=schedule; touch " + filepath.Join(p.temp, "pwned"))
	expect(t, out, code, 7, " got run as ")
	if _, err := os.Stat(filepath.Join(p.temp, "pwned")); err == nil {
		t.Error("the event's name was run")
	}
	// Without an execute bit it runs from a copy.
	p.release(0o644)
	out, code = p.run()
	expect(t, out, code, 7, "program "+p.temp+"/issuesmith-bin.", " got run as ")
}

func TestScriptRefusesAChangedRelease(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*place, string){
		"changed program": func(p *place, path string) { p.write(path, program+"\n", 0o755) },
		"no sums":         func(p *place, path string) { _ = os.Remove(filepath.Join(filepath.Dir(path), "SHA256SUMS")) },
		"not in the sums": func(p *place, path string) { p.write(filepath.Join(filepath.Dir(path), "SHA256SUMS"), "", 0o644) },
		"sum of another file": func(p *place, path string) {
			p.write(filepath.Join(filepath.Dir(path), "SHA256SUMS"), fmt.Sprintf("%x  /dev/null\n", sha256.Sum256(nil)), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.sources()
			p.withFastGo() // a build would be possible, and must not hide it
			change(p, p.release(0o755))
			out, code := p.run()
			expect(t, out, code, 3, "::error::issuesmith: dist/issuesmith-linux-"+runtime.GOARCH+" does not match", "!program ")
		})
	}
}

func TestScriptWithoutGo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.sources()
	out, code := p.run()
	expect(t, out, code, 3, "::error::issuesmith: this ref of the action carries no program", "release tag", "actions/setup-go", "image that has Go 1.26")
}

// sources puts a small program where the action's sources are.
func (p *place) sources() {
	p.write(filepath.Join(p.action, "go.mod"), "module issuesmith\n\ngo 1.24\n", 0o644)
	p.write(filepath.Join(p.action, "go.sum"), "", 0o644)
	p.write(filepath.Join(p.action, "action.yml"), "name: x\n", 0o644)
	p.write(filepath.Join(p.action, "main.go"), "package main\n\nimport \"issuesmith/internal/say\"\n\nfunc main() { say.Say() }\n", 0o644)
	p.say("built")
}

func (p *place) say(text string) {
	p.write(filepath.Join(p.action, "internal", "say", "say.go"), fmt.Sprintf(`package say

import "os"

func Say() {
	println("program %s got", os.Args[1], "as", os.Getpid())
	os.Exit(7)
}
`, text), 0o644)
}

// withGo gives the place the Go that runs this test, with its build cache.
func (p *place) withGo() {
	p.t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		p.t.Fatal(err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		p.t.Fatal(err)
	}
	cache, err := exec.Command(path, "env", "GOCACHE").Output()
	if err != nil {
		p.t.Fatal(err)
	}
	p.env = append(p.env, "PATH="+p.tools+":"+filepath.Dir(path), "GOCACHE="+strings.TrimSpace(string(cache)), "HOME="+p.temp, "GOPROXY=off", "GOTOOLCHAIN=local")
}

// withFastGo stands for Go where a minute of building would say nothing more: its
// programs say what the sources do.
func (p *place) withFastGo() {
	p.write(filepath.Join(p.tools, "go"), `#!/bin/sh
[ "$1" = version ] && { echo "go version ${FAST_GO_VERSION:-go1.26.0} linux"; exit; }
[ "$1" = build ] || exit 9
while [ "$1" != -o ]; do shift; done
says="$(grep -o 'program [a-z]* got' internal/say/say.go)" || exit 1
printf '#!/bin/sh\necho "%s $* as $$"\nexit 7\n' "$says" >"$2"
`, 0o755)
}

func TestScriptBuildsWithGo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.sources()
	p.withGo()
	out, code := p.run()
	expect(t, out, code, 7, "issuesmith: building", "program built got run")
	out, code = p.run()
	expect(t, out, code, 7, "!building", "program built got run")
}

func TestScriptBuilds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.sources()
	p.withFastGo()
	out, code := p.run()
	expect(t, out, code, 7, "issuesmith: building", "program built got run")
	found, err := filepath.Glob(filepath.Join(p.cache, "issuesmith", "*", "*"))
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != "issuesmith" {
		t.Fatalf("the cache holds %q, %v", found, err)
	}
	if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	// The second time it is there, also for a fresh checkout with other times.
	p.say("built")
	out, code = p.run()
	expect(t, out, code, 7, "!building", "program built got run")

	// Anyone may write to it: not taken, not put there.
	if err := os.Chmod(found[0], 0o777); err != nil {
		t.Fatal(err)
	}
	out, code = p.run()
	expect(t, out, code, 7, "building", "program built got run")
	p.write(found[0], program, 0o755)
	if err := os.Chmod(filepath.Dir(found[0]), 0o777); err != nil {
		t.Fatal(err)
	}
	out, code = p.run()
	expect(t, out, code, 7, "building", "program built got run")
	if left, err := filepath.Glob(filepath.Join(p.temp, "issuesmith-bin.*", "*", "issuesmith")); err != nil || len(left) != 1 {
		t.Errorf("no program in a folder of our own: %q, %v", left, err)
	}

	// Another Go, another program.
	out, code = p.run("FAST_GO_VERSION=go1.27.0")
	expect(t, out, code, 7, "building", "program built got run")
	out, code = p.run("FAST_GO_VERSION=go1.27.0")
	expect(t, out, code, 7, "!building", "program built got run")

	// Other files, another program.
	p.say("changed")
	out, code = p.run()
	expect(t, out, code, 7, "building", "program changed got run")

	// What cannot be built.
	p.say("broken \" quote")
	out, code = p.run()
	expect(t, out, code, 3, "::error::issuesmith: go build failed", "release tag", "GOPROXY", "!program ")
}

// A tool cache that does not exist and cannot be made is no obstacle.
func TestScriptWithoutACache(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.sources()
	p.withFastGo()
	p.write(filepath.Join(p.temp, "file"), "", 0o600)
	out, code := p.run("RUNNER_TOOL_CACHE=" + filepath.Join(p.temp, "file"))
	expect(t, out, code, 7, "building", "program built got run")
	out, code = p.run("RUNNER_TOOL_CACHE=")
	expect(t, out, code, 7, "building", "program built got run")
	out, code = p.run("RUNNER_TOOL_CACHE=")
	expect(t, out, code, 7, "!building", "program built got run")
}
