package escape

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A trial is one run of an attempt and what the world outside saw of it.
type trial struct {
	ran
	word, said string   // the attempt's own verdict; "" when it gave none
	evidence   []string // that it got out
}

// escaped reports whether it got out, and by what that is known.
func (t *trial) escaped() (bool, string) {
	switch {
	case len(t.evidence) > 0:
		return true, strings.Join(t.evidence[:min(len(t.evidence), 3)], "; ")
	case t.word == "escaped":
		return true, t.said
	}
	return false, t.said
}

var (
	verdictLine = regexp.MustCompile(`(?m)^verdict (escaped|refused|done|untested): (.*)$`)
	variable    = regexp.MustCompile(`\$\$?[a-zA-Z.]+`)
)

// expand puts the scene's things into arguments. missing is one that the place does not have.
func (s *Scene) expand(args []string) (out []string, missing string) {
	for _, arg := range args {
		out = append(out, variable.ReplaceAllStringFunc(arg, func(name string) string {
			if strings.HasPrefix(name, "$$") {
				return name[1:] // a variable of the command
			}
			value := s.value(name[1:])
			if value == "" {
				missing = name[1:]
			}
			return value
		}))
	}
	return out, missing
}

func (s *Scene) value(name string) string {
	switch name {
	case "dir":
		return s.Dir
	case "secret":
		return s.secret
	case "mark":
		return s.mark()
	case "key":
		if s.things.at(name) == "" {
			return "0" // the place has no keyrings: there is the rest to try
		}
	}
	return s.things.at(name)
}

func (s *Scene) mark() string { return fmt.Sprintf("mark-%s-%d", s.secret, s.count) }

// try makes an attempt: as a command of the program called program, or, when that is "", without a sandbox.
func (s *Scene) try(ctx context.Context, a *Attempt, program string, env, flags []string) (trial, error) {
	if a.Prepare != nil {
		if err := a.Prepare(s); err != nil {
			return trial{}, fmt.Errorf("preparing %q: %w", a.Name, err)
		}
	}
	s.count++
	for _, name := range []string{"beat", "ended"} {
		if err := os.RemoveAll(filepath.Join(s.work(), name)); err != nil {
			return trial{}, err
		}
	}
	args := a.Args
	if program == "" {
		args = a.fromControl()
	}
	args, missing := s.expand(args)
	if missing != "" {
		return trial{word: "untested", said: "there is no " + missing + " in this place"}, nil
	}
	before, err := s.quiet()
	if err != nil {
		return trial{}, err
	}
	line := append([]string{"./attempt"}, args...)
	if program != "" {
		line = s.sandboxed(program, slices.Concat(a.Flags, flags), line...)
	}
	limit := 20 * time.Second
	if a.Seconds > 0 {
		limit = time.Duration(a.Seconds) * time.Second
	}
	t := trial{}
	if t.ran, err = s.run(ctx, limit, env, line...); err != nil {
		return t, err
	}
	if verdict := verdictLine.FindAllStringSubmatch(t.output, -1); len(verdict) > 0 {
		last := verdict[len(verdict)-1]
		t.word, t.said = last[1], last[2]
	}
	err = s.gather(ctx, a, &t, before)
	return t, err
}

// quiet waits until nothing arrives any more of what came before, and returns the state of things.
func (s *Scene) quiet() (string, error) {
	for {
		state, err := s.things.ask("state")
		if err != nil || len(s.things.arrivals()) == 0 {
			return state, err
		}
	}
}

// ReachesListed reports how a connect to the listed address fails. Without it the refusals of others would say nothing.
func (s *Scene) ReachesListed(ctx context.Context) error {
	if _, err := s.quiet(); err != nil {
		return err
	}
	got, err := s.run(ctx, 20*time.Second, nil, s.sandboxed("issuesmith", nil, "./attempt", "connect", s.things.at("listed"))...)
	if err != nil {
		return err
	}
	if _, err := s.things.ask("state"); err != nil {
		return err
	}
	if !slices.Contains(s.things.arrivals(), "listed") {
		return fmt.Errorf("nothing arrived at the listed address:\n%s", tail(got.output))
	}
	return nil
}

// gather looks at the world after an attempt.
func (s *Scene) gather(ctx context.Context, a *Attempt, t *trial, before string) error {
	found := func(format string, args ...any) { t.evidence = append(t.evidence, fmt.Sprintf(format, args...)) }
	if t.overtime {
		found("it still ran after %v", t.took.Round(time.Second))
	}
	if t.exit == -1 && !t.overtime {
		found("the step around it was killed")
	}
	if a.Beat {
		t.evidence = append(t.evidence, s.left()...)
	}
	if t.output != "" {
		for _, secret := range regexp.MustCompile(`canary-([a-z]+)-`+s.secret).FindAllStringSubmatch(t.output, -1) {
			found("the output holds the secret %q", secret[1])
		}
	}
	after, err := s.things.ask("state")
	if err != nil {
		// Killed or stopped: set up again, and tell.
		found("%v", err)
		s.things.close()
		return s.start(context.WithoutCancel(ctx))
	}
	if after != before {
		found("the sibling was changed: %s → %s", before, after)
	}
	for _, name := range s.things.arrivals() {
		if name != "listed" {
			found("a connection arrived at %s", name)
		}
	}
	gone, _ := s.expand(a.Gone)
	for _, path := range gone {
		exists, err := s.things.ask("exists " + path)
		if err != nil {
			return err
		}
		if exists == "true" {
			found("%s exists", path)
			if _, err := s.things.ask("remove " + path); err != nil {
				return err
			}
		}
	}
	tree, err := s.tree()
	if err != nil {
		return err
	}
	changed := differences(s.planted, tree)
	t.evidence = append(t.evidence, changed...)
	return s.restore(after != before, len(changed) > 0)
}

// restore puts things back after an attempt that worked.
func (s *Scene) restore(sibling, tree bool) error {
	if tree {
		if err := s.plant(); err != nil {
			return err
		}
	}
	if sibling {
		if _, err := s.things.ask("restore"); err != nil {
			return err
		}
	}
	return nil
}

// left is what lives 100 ms after the command, or lived that long.
func (s *Scene) left() (found []string) {
	time.Sleep(100 * time.Millisecond)
	if s.beats() {
		found = append(found, "what it left behind lives")
	}
	if life := s.afterlife(); life > 100*time.Millisecond {
		found = append(found, fmt.Sprintf("what it left behind lived for %v after it", life))
	}
	if left := s.marked(s.mark()); len(left) > 0 {
		found = append(found, fmt.Sprintf("it left processes behind: %v", left))
	}
	return found
}

// beats reports whether the file "beat" of the worktree grows.
func (s *Scene) beats() bool {
	size := func() int64 {
		info, err := os.Stat(filepath.Join(s.work(), "beat"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := size()
	time.Sleep(60 * time.Millisecond)
	return size() != before
}

// afterlife is how long the file "beat" grew after the command had ended.
func (s *Scene) afterlife() time.Duration {
	beat, err := os.Stat(filepath.Join(s.work(), "beat"))
	if err != nil {
		return 0
	}
	ended, err := os.Stat(filepath.Join(s.work(), "ended"))
	if err != nil {
		return 0
	}
	return beat.ModTime().Sub(ended.ModTime())
}

// marked lists the processes of this machine, containers included, with mark among their arguments.
func (s *Scene) marked(mark string) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // a good pattern
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err == nil && slices.Contains(strings.Split(string(line), "\x00"), mark) {
			found = append(found, strings.TrimSuffix(path, "/cmdline")+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// Judge makes an attempt in the sandbox and without it, and says how it ended. open is what the sandbox's report leaves open.
func (s *Scene) Judge(ctx context.Context, a *Attempt, open []string) (Outcome, error) {
	if a.Root && os.Geteuid() != 0 || a.Own && !s.Place.Own && !s.Place.Root {
		return Outcome{NotRun, "it needs root to be prepared, or to be harmless"}, nil
	}
	inside, err := s.try(ctx, a, "issuesmith", nil, nil)
	if err != nil {
		return Outcome{}, err
	}
	if o := s.verdict(a, &inside, open); o.Word != Refused {
		return o, nil
	}
	_, why := inside.escaped()
	if a.ControlAt != "" && a.ControlAt != s.Place.Name {
		return Outcome{Refused, why}, nil
	}
	control, err := s.try(ctx, a, "", nil, nil)
	if err != nil {
		return Outcome{}, err
	}
	if works, _ := control.escaped(); !works {
		return Outcome{ByPlace, "inside: " + why + "; outside: " + control.said}, nil
	}
	return Outcome{Refused, why}, nil
}

// verdict is the outcome of the run inside.
func (s *Scene) verdict(a *Attempt, inside *trial, open []string) Outcome {
	got, why := inside.escaped()
	reported := a.Open != "" && slices.ContainsFunc(open, func(line string) bool { return strings.Contains(line, a.Open) })
	switch {
	case got && reported:
		return Outcome{Reported, why}
	case got:
		return Outcome{Escaped, why + "\n" + tail(inside.output)}
	case a.Limit != "" && !strings.Contains(inside.output, a.Limit) && inside.word != "untested":
		return Outcome{Failed, "the message does not name " + a.Limit + ":\n" + tail(inside.output)}
	case inside.word == "" && a.Killed && inside.exit == 128+int(syscall.SIGKILL):
		return Outcome{Refused, "killed with its executor"}
	case inside.word == "" && a.Limit == "":
		return Outcome{Failed, fmt.Sprintf("it said nothing, exit %d:\n%s", inside.exit, tail(inside.output))}
	case inside.word == "untested":
		return Outcome{Untested, inside.said}
	}
	return Outcome{Refused, why}
}

func tail(text string) string { return text[max(0, len(text)-1500):] }
