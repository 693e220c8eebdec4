package escape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Report is what `issuesmith sandbox --report` prints, as far as it is looked at.
type Report struct {
	Level  string
	Layers []struct{ Name, State, Why string }
	Open   []string
}

// on reports whether a layer is in force.
func (r *Report) on(layer string) bool {
	return slices.ContainsFunc(r.Layers, func(l struct{ Name, State, Why string }) bool { return l.Name == layer && l.State == "on" })
}

// Report asks the sandbox for its report.
func (s *Scene) Report(ctx context.Context, program string, env []string, flags ...string) (*Report, ran, error) {
	line := s.sandboxed(program, append([]string{"--report"}, flags...))
	got, err := s.run(ctx, 20*time.Second, env, line[:len(line)-1]...) // without "--"
	if err != nil || got.exit != 0 {
		return nil, got, err
	}
	r := &Report{}
	start := strings.IndexByte(got.output, '{')
	if start < 0 {
		return nil, got, errors.New("no report: " + got.output)
	}
	return r, got, json.NewDecoder(strings.NewReader(got.output[start:])).Decode(r)
}

// layers that a kernel with an older Landlock lacks, and the version that brought them.
var landlockLayers = map[string]int{"landlock files": 1, "landlock tcp": 4, "landlock scopes": 6}

// forced is row 30: a kernel whose Landlock is of version abi. Strict refuses, or the report names each layer that is missing, and what
// then is tried is refused or among what the report leaves open.
func (s *Scene) forced(ctx context.Context, abi int) (Outcome, error) {
	env := []string{fmt.Sprintf("ISSUESMITH_MUTATION_LANDLOCK=%d", abi), "ISSUESMITH_MUTATION_REMOVE="}
	r, got, err := s.Report(ctx, "mutable", env, "--sandbox", "strict")
	if err != nil {
		return Outcome{}, err
	}
	if r == nil {
		if got.exit == 3 && strings.Contains(got.output, "Landlock") {
			return Outcome{Refused, "strict refuses"}, nil
		}
		return Outcome{Failed, fmt.Sprintf("exit %d: %s", got.exit, tail(got.output))}, nil
	}
	var missing []string
	for name, since := range landlockLayers {
		i := slices.IndexFunc(r.Layers, func(l struct{ Name, State, Why string }) bool { return l.Name == name })
		if on := r.on(name); on != (abi >= since) {
			return Outcome{Escaped, fmt.Sprintf("with version %d the report has %q as on=%t: %+v", abi, name, on, r.Layers)}, nil
		}
		if abi < since {
			if i < 0 || r.Layers[i].Why == "" {
				return Outcome{Escaped, fmt.Sprintf("with version %d the report does not name %q as missing", abi, name)}, nil
			}
			missing = append(missing, name)
		}
	}
	tried := []string{
		"netrc, git and npm credentials", "environ of every process", "mem", "rename out", "truncate", "connect: other loopback address, other port",
		"docker.sock, ssh-agent", "abstract socket", "kill", "open block and other devices", "daemon that kills its executor",
	}
	for _, a := range Attempts() {
		if !slices.Contains(tried, a.Name) {
			continue
		}
		inside, err := s.try(ctx, &a, "mutable", env, []string{"--sandbox", "strict"})
		if err != nil {
			return Outcome{}, err
		}
		if o := s.verdict(&a, &inside, r.Open); o.Bad() {
			return Outcome{o.Word, a.Name + ": " + o.Why}, nil
		}
	}
	slices.Sort(missing)
	return Outcome{Refused, "the report names " + orNothing(missing)}, nil
}
