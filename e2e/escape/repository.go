package escape

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"issuesmith/e2e/model"
)

// hooks are all that git runs by itself.
var hooks = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive",
	"post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg",
	"proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
}

const evilAttributes = "* filter=evil diff=evil merge=evil ident export-subst\n"

// evilConfig makes git start a program on every occasion.
func evilConfig(program string) string {
	return fmt.Sprintf(`[core]
	repositoryformatversion = 0
	bare = false
	hooksPath = hooks
	fsmonitor = %[1]s
	sshCommand = %[1]s
	pager = %[1]s
	editor = %[1]s
	askPass = %[1]s
	gitProxy = %[1]s
	alternateRefsCommand = %[1]s
[filter "evil"]
	clean = %[1]s
	smudge = %[1]s
	required = true
[diff]
	external = %[1]s
[diff "evil"]
	textconv = %[1]s
	command = %[1]s
[merge "evil"]
	driver = %[1]s
[credential]
	helper = %[1]s
[gpg]
	program = %[1]s
[commit]
	gpgSign = true
[uploadpack]
	packObjectsHook = %[1]s
[remote "origin"]
	url = ext::%[1]s
	fetch = +refs/heads/*:refs/remotes/origin/*
	uploadpack = %[1]s
	receivepack = %[1]s
[protocol]
	allow = always
`, program)
}

// hostile is row 28: the action works on a repository whose git configuration, hooks, filters and attributes start
// a program, while the agent's commands plant more of them. The program leaves a marker when it runs.
func (s *Scene) hostile(ctx context.Context, server *model.Server, base func(string) (string, error)) (Outcome, error) {
	s.count++
	name, key := s.mark(), "key-"+s.secret
	marker := s.path("marker")
	if err := s.plantRepository(marker); err != nil {
		return Outcome{}, err
	}
	evil := s.path("marker/program")
	script, err := server.Script(name, key, model.Conversation{Turns: []model.Turn{
		model.Bash(fmt.Sprintf("mkdir -p .git/hooks sub/.git; printf '%s' > sub/.gitattributes; printf '%%s' '%s' > .git/config; cp .git/config sub/.git/config; "+
			"printf '[core]\\n\\tfsmonitor = %s\\n' > \"$HOME/.gitconfig\"; for h in %s; do printf '#!/bin/sh\\n%s\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
			strings.TrimSpace(evilAttributes), evilConfig(evil), evil, strings.Join(hooks, " "), evil)),
		model.Bash("git status; git diff; git log -1; git -c core.pager=" + evil + " log -p; rm -rf .git sub"),
		model.Read("value.py"),
		model.Write("value.py", "VALUE = \"right\"\n"),
		model.Submit("The value is right."),
	}, Cut: true})
	if err != nil {
		return Outcome{}, err
	}
	url, err := base(script.Base)
	if err != nil {
		return Outcome{}, err
	}
	got, err := s.run(ctx, 60*time.Second, []string{"ISSUESMITH_MODEL_API_KEY=" + key}, s.path("bin/issuesmith"), "run",
		"--repo", s.path("hostile"), "--issue-file", s.path("hostile-issue.md"), "--model", "custom/scripted", "--model-base-url", url, "--test-commands", "sh check.sh")
	if err != nil {
		return Outcome{}, err
	}
	if hit := s.marks(marker); hit != "" {
		return Outcome{Escaped, "the program ran: " + hit}, nil
	}
	// Exit 1 is a gate that found the planted files; what counts is that the run got to its git work.
	if len(script.Requests()) < 2 || got.exit > 1 {
		return Outcome{Failed, fmt.Sprintf("exit %d after %d requests:\n%s", got.exit, len(script.Requests()), tail(got.output))}, nil
	}
	if s.Place.Name != PlaceUser {
		return Outcome{Refused, "no marker"}, nil
	}
	// The control: the same work with git itself.
	control := "git -C " + s.path("hostile") + " status; git -C " + s.path("hostile") + " checkout -q -b other; git -C " + s.path("hostile") + " diff HEAD"
	if _, err := s.run(ctx, 20*time.Second, nil, "sh", "-c", control); err != nil {
		return Outcome{}, err
	}
	if s.marks(marker) == "" {
		return Outcome{ByPlace, "git itself does not start the program"}, nil
	}
	return Outcome{Refused, fmt.Sprintf("no marker; exit %d", got.exit)}, nil
}

// plantRepository makes the hostile repository and the program that leaves marks.
func (s *Scene) plantRepository(marker string) error {
	files := map[string]string{
		"marker/program":         "#!/bin/sh\necho \"$0 $*\" >> " + marker + "/hit\ncat\n",
		"hostile/value.py":       "VALUE = \"wrong\"\n",
		"hostile/check.sh":       "test -s value.py\n",
		"hostile/.gitattributes": evilAttributes,
		"hostile/.gitmodules":    "[submodule \"evil\"]\n\tpath = evil\n\turl = ext::" + marker + "/program\n\tupdate = !" + marker + "/program\n",
		"hostile/.lfsconfig":     "[lfs]\n\turl = https://127.0.0.1:1/\n",
		"hostile-issue.md":       "The value is wrong\n\nvalue.py says wrong and should say right.\n",
	}
	for _, hook := range hooks {
		files["hostile/hooks/"+hook] = "#!/bin/sh\n" + marker + "/program hook " + hook + "\n"
	}
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := s.write(name, text, mode); err != nil {
			return err
		}
	}
	if err := os.Chmod(marker, 0o777); err != nil {
		return err
	}
	if err := s.commit(); err != nil {
		return err
	}
	for _, hook := range hooks {
		if err := s.write("hostile/.git/hooks/"+hook, files["hostile/hooks/"+hook], 0o755); err != nil {
			return err
		}
	}
	if err := s.write("hostile/.git/config", evilConfig(marker+"/program"), 0o644); err != nil {
		return err
	}
	return s.give()
}

// commit makes a repository of the folder, before its configuration is evil.
func (s *Scene) commit() error {
	dir := s.path("hostile")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "Start"}} {
		cmd := gitCommand(dir, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w\n%s", args, err, out)
		}
	}
	return nil
}

func (s *Scene) marks(marker string) string {
	text, err := os.ReadFile(filepath.Join(marker, "hit"))
	if err != nil {
		return ""
	}
	return string(text)
}
