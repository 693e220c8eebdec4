package escape

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"issuesmith/e2e/model"
	"issuesmith/e2e/parts"
	"issuesmith/e2e/stand"
)

func TestMain(m *testing.M) {
	// Children die with the thread that started them (Pdeathsig): this one stays.
	runtime.LockOSThread()
	os.Exit(m.Run())
}

// TestEscape is the escape suite: every attempt in every place, then the proof that the suite can fail.
func TestEscape(t *testing.T) {
	binaries := build(t)
	table := NewTable(PlaceUser, PlaceUserBare, PlaceRoot, PlaceContainer)
	scenes := map[string]*Scene{}
	for _, p := range openPlaces(t) {
		scenes[p.place.Name] = openScene(t, p.place, p.dir, binaries)
	}
	server, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	t.Run("places", func(t *testing.T) {
		for name, scene := range scenes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inPlace(t, table, scene, server)
			})
		}
	})
	t.Run("mutation", func(t *testing.T) { mutations(t, table, scenes) })
	bad, notRun := table.Settle()
	for _, line := range bad {
		t.Error(line)
	}
	if os.Geteuid() == 0 && len(notRun) > 0 {
		t.Errorf("not run, although this is root:\n%s", strings.Join(notRun, "\n"))
	}
	text := table.String()
	t.Log("\n" + text)
	if err := os.MkdirAll(filepath.Join(top(t), "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top(t), "build", "escape.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func top(t *testing.T) string {
	t.Helper()
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(root)
}

// build builds the program as users get it, the one that layers can be taken from, and the attempts.
func build(t *testing.T) Binaries {
	t.Helper()
	dir := t.TempDir()
	b := Binaries{filepath.Join(dir, "issuesmith"), filepath.Join(dir, "mutable"), filepath.Join(dir, "attempt")}
	for _, args := range [][]string{
		{"-C", top(t), "build", "-o", b.Released, "."},
		{"-C", top(t), "build", "-tags", "mutation", "-o", b.Mutable, "."},
		{"-C", filepath.Join(top(t), "e2e"), "build", "-o", b.Attempt, "./escape/attempt"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	return b
}

type openPlace struct {
	place *Place
	dir   string
}

// openPlaces makes the places of this machine, each with a folder for its scene.
func openPlaces(t *testing.T) []openPlace {
	t.Helper()
	var places []openPlace
	folder := func() string {
		dir, err := SceneFolder()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
		return dir
	}
	for _, p := range Users() {
		places = append(places, openPlace{p, folder()})
	}
	if os.Geteuid() != 0 {
		return places
	}
	places = append(places, openPlace{Machine(), folder()})
	dir := folder()
	return append(places, openPlace{container(t, dir), dir})
}

// container starts a container of the default profile that has dir under the same name.
func container(t *testing.T, dir string) *Place {
	t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	t.Cleanup(stop)
	cache, err := parts.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	docker, err := stand.OpenDocker(ctx, cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := docker.Close(); err != nil {
			t.Error(err)
		}
	})
	base, err := docker.Base(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id, err := docker.Run(ctx, "run", "--detach", "--init", "-v", dir+":"+dir, base, "sleep", "3600")
	if err != nil {
		t.Fatal(err)
	}
	return Container(docker, id)
}

func openScene(t *testing.T, p *Place, dir string, b Binaries) *Scene {
	t.Helper()
	s, err := Open(context.WithoutCancel(t.Context()), p, dir, b)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	t.Cleanup(s.Close)
	return s
}

// inPlace makes all attempts in one place.
func inPlace(t *testing.T, table *Table, s *Scene, server *model.Server) {
	report, got, err := s.Report(t.Context(), "issuesmith", nil)
	if err != nil || report == nil {
		t.Fatalf("no report, exit %d, %v:\n%s", got.exit, err, got.output)
	}
	t.Logf("level %q, open: %q", report.Level, report.Open)
	try := func(row int, name string, attempt func(context.Context) (Outcome, error)) {
		t.Run(fmt.Sprintf("%d %s", row, strings.ReplaceAll(name, "/", "-")), func(t *testing.T) {
			outcome, err := attempt(t.Context())
			if err != nil {
				outcome = Outcome{Failed, err.Error()}
			}
			table.Add(row, name, s.Place.Name, outcome)
			if outcome.Bad() {
				t.Errorf("%s: %s", outcome.Word, outcome.Why)
			}
		})
	}
	for _, a := range Attempts() {
		try(a.Row, a.Name, func(ctx context.Context) (Outcome, error) { return s.Judge(ctx, &a, report.Open) })
	}
	try(25, "SIGKILL of the action", s.killed)
	try(26, "memory of the product in a flood of 256 MiB", s.flooded)
	try(28, "hostile repository", func(ctx context.Context) (Outcome, error) { return s.hostile(ctx, server, s.Place.reaches) })
	for _, abi := range []int{0, 3, 5, 6} {
		try(30, fmt.Sprintf("Landlock version %d", abi), func(ctx context.Context) (Outcome, error) { return s.forced(ctx, abi) })
	}
	t.Run("the listed address is reached", func(t *testing.T) {
		if err := s.ReachesListed(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("every layer is in the mutations", func(t *testing.T) {
		for _, layer := range report.Layers {
			if !slices.ContainsFunc(Mutations(), func(m Mutation) bool { return m.Layer == layer.Name }) {
				t.Errorf("no mutation removes %q", layer.Name)
			}
		}
	})
}

// mutations shows of each layer that it does something.
func mutations(t *testing.T, table *Table, scenes map[string]*Scene) {
	byPlace := map[string][]Mutation{}
	for _, m := range Mutations() {
		byPlace[m.Place] = append(byPlace[m.Place], m)
	}
	for place, all := range byPlace {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			s := scenes[place]
			if s == nil {
				for _, m := range all {
					table.Note("%s: %s", m.Layer, NotRun)
				}
				return
			}
			report, got, err := s.Report(t.Context(), "mutable", nil)
			if err != nil || report == nil {
				t.Fatalf("no report, exit %d, %v:\n%s", got.exit, err, got.output)
			}
			for _, m := range all {
				t.Run(m.Layer, func(t *testing.T) {
					if !report.on(m.Layer) {
						table.Note("%s: not in force in %s, so there is nothing to remove", m.Layer, m.Place)
						return
					}
					proof, err := s.Mutate(t.Context(), m)
					if err != nil {
						t.Fatal(err)
					}
					table.Note("%s", proof)
				})
			}
		})
	}
}
