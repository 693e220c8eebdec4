package escape

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Mutation takes a layer away, in a place where the others that cover the same attempt are away too. With the layer
// the attempt is refused, without it it gets out: so the layer does something, and the suite would see it missing.
type Mutation struct {
	Layer   string
	Place   string
	Also    []string // what else is taken away, in both runs
	Attempt string
}

// Mutations lists one a layer.
func Mutations() []Mutation {
	const (
		files, tcp, scopes = "landlock files", "landlock tcp", "landlock scopes"
		filter, broker     = "system call filter", "connect broker"
		mounts, user       = "mount namespace", "dedicated user"
	)
	return []Mutation{
		{user, PlaceRoot, []string{files}, "/etc/shadow"},
		{"no capabilities", PlaceRoot, []string{user, files, scopes, tcp, filter, broker, mounts}, "chroot, pivot_root"},
		{"no new privileges", PlaceRoot, []string{files, scopes, tcp, filter, broker, mounts}, "set-uid and capable files"},
		{"user namespace", PlaceUser, []string{files, scopes, tcp}, "environ of every process"},
		{"pid namespace", PlaceUser, nil, "secrets in other cmdlines"},
		{mounts, PlaceUser, []string{files}, "make files in the home"},
		{"ipc namespace", PlaceUser, []string{filter, broker}, "planted SysV segment"},
		{"network namespace", PlaceUser, []string{filter, broker, tcp, files}, "connect: other loopback address, other port"},
		{files, PlaceUser, nil, "netrc, git and npm credentials"},
		{tcp, PlaceUserBare, []string{filter, broker}, "connect: other loopback address, other port"},
		{scopes, PlaceUserBare, nil, "kill"},
		{filter, PlaceUserBare, nil, "UDP, UDP-Lite, ping"},
		{broker, PlaceUserBare, []string{tcp}, "connect: other loopback address, other port"},
		{"closed memory", PlaceUser, []string{files, scopes, tcp}, "mem"},
		{"resource limits", PlaceUser, nil, "100 MiB file"},
		{"watch over limits", PlaceUser, []string{"cgroup"}, "2 GiB of memory"},
		{"cgroup", PlaceRoot, []string{"watch over limits"}, "2 GiB of memory"},
		{"sweep", PlaceUserBare, nil, "daemon: setsid, double fork, holds stdout"},
		{"clean environment", PlaceUserBare, nil, "own environment and descriptors"},
		{"closed descriptors", PlaceUserBare, nil, "own environment and descriptors"},
	}
}

// A Proof is what a mutation showed.
type Proof struct {
	Mutation
	With, Without trial
}

// Proves reports whether the layer did something.
func (p *Proof) Proves() bool {
	with, _ := p.With.escaped()
	without, _ := p.Without.escaped()
	return !with && without
}

func (p *Proof) String() string {
	_, with := p.With.escaped()
	_, without := p.Without.escaped()
	if p.Proves() {
		return fmt.Sprintf("%s → also removed: %s → %q then succeeds in %s: %s", p.Layer, orNothing(p.Also), p.Attempt, p.Place, without)
	}
	return fmt.Sprintf("%s is redundant: also removed: %s, %q in %s: with it %q, without it %q", p.Layer, orNothing(p.Also), p.Attempt, p.Place, with, without)
}

func orNothing(layers []string) string {
	if len(layers) == 0 {
		return "nothing"
	}
	return strings.Join(layers, ", ")
}

// Mutate makes the mutation's attempt with and without the layer.
func (s *Scene) Mutate(ctx context.Context, m Mutation) (*Proof, error) {
	all := Attempts()
	i := slices.IndexFunc(all, func(a Attempt) bool { return a.Name == m.Attempt })
	if i < 0 {
		return nil, fmt.Errorf("there is no attempt %q", m.Attempt)
	}
	p := &Proof{Mutation: m}
	var err error
	if p.With, err = s.mutant(ctx, &all[i], "", m.Also...); err != nil {
		return nil, err
	}
	p.Without, err = s.mutant(ctx, &all[i], "", append([]string{m.Layer}, m.Also...)...)
	return p, err
}

// mutant makes an attempt with layers taken away, or with a kernel whose Landlock has the version abi.
func (s *Scene) mutant(ctx context.Context, a *Attempt, abi string, layers ...string) (trial, error) {
	env := []string{"ISSUESMITH_MUTATION_REMOVE=" + strings.Join(layers, ",")}
	if abi != "" {
		env = append(env, "ISSUESMITH_MUTATION_LANDLOCK="+abi)
	}
	t, err := s.try(ctx, a, "mutable", env, []string{"--sandbox", "best-effort"})
	if err == nil && t.word == "" && a.Limit == "" && len(t.evidence) == 0 {
		err = fmt.Errorf("%q without %v said nothing, exit %d:\n%s", a.Name, layers, t.exit, tail(t.output))
	}
	return t, err
}
