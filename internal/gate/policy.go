package gate

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"issuesmith/internal/redact"
	"issuesmith/internal/worktree"
)

// A rule is one check of the policy. It fills everything of a Finding but Rule.
type rule struct {
	name string
	find func(*candidate) ([]Finding, error)
}

// strayRules find files that have no place in any change: they are returned to the base
// commit, so that the next attempt does not carry them on.
var strayRules = []rule{
	{"path", findPaths},
	{"protected", findProtected},
	{"kind", findKinds},
	{"temporary", findTemporary},
}

// changeRules look at what remains when the strays are gone, so that 5,000 files
// of an unpacked archive are not told once as protected and again as too many.
var changeRules = []rule{
	{"empty", findEmpty},
	{"limits", findLimits},
	{"application", findApplication},
	{"whitespace", findWhitespace},
	{"secret", findSecrets},
}

// A candidate is a change under judgement.
type candidate struct {
	tree   *worktree.Tree
	rules  Rules
	redact *redact.Redactor // may be nil
	files  []worktree.File  // all of the change
	kept   []worktree.File  // without the strays

	added map[string][]worktree.Line // AddedLines, computed once
}

// lines are the lines that a text file of the change gains; none for other kinds.
func (c *candidate) lines(f worktree.File) ([]worktree.Line, error) {
	if !isText(f) {
		return nil, nil
	}
	if lines, ok := c.added[f.Path]; ok {
		return lines, nil
	}
	lines, err := c.tree.AddedLines(f)
	if err != nil {
		return nil, fmt.Errorf("read the added lines of %s: %w", shown(f.Path), err)
	}
	c.added[f.Path] = lines
	return lines, nil
}

// before and after are a file's contents on either side of the change; empty where there is no file.
func (c *candidate) before(f worktree.File) ([]byte, error) {
	if f.Old.Kind != worktree.KindFile && f.Old.Kind != worktree.KindExecutable {
		return nil, nil
	}
	b, err := c.tree.Content(f.Old)
	if err != nil {
		return nil, fmt.Errorf("read %s of the base commit: %w", shown(f.Path), err)
	}
	return b, nil
}

func (c *candidate) after(f worktree.File) ([]byte, error) {
	if f.New.Kind != worktree.KindFile && f.New.Kind != worktree.KindExecutable {
		return nil, nil
	}
	b, err := c.tree.Content(f.New)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", shown(f.Path), err)
	}
	return b, nil
}

// isText says that the file is there after the change, with lines in it.
func isText(f worktree.File) bool {
	return !f.Binary && (f.New.Kind == worktree.KindFile || f.New.Kind == worktree.KindExecutable)
}

// Policy judges the change: all findings, sorted by path and line.
func (g *Gate) Policy(c *worktree.Change) ([]Finding, error) {
	defer runtime.KeepAlive(c) // the tree knows the contents as long as their change lives
	k := g.candidate(c)
	found, err := k.sift()
	if err != nil {
		return nil, err
	}
	more, err := apply(changeRules, k)
	if err != nil {
		return nil, err
	}
	found = append(found, more...)
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return found, nil
}

func (g *Gate) candidate(c *worktree.Change) *candidate {
	return &candidate{tree: g.Tree, rules: g.Rules, redact: g.Redact, files: c.Files, added: map[string][]worktree.Line{}}
}

// sift finds the strays, and fills kept with the other files.
func (c *candidate) sift() ([]Finding, error) {
	found, err := apply(strayRules, c)
	if err != nil {
		return nil, err
	}
	stray := make(map[string]bool, len(found))
	for _, f := range found {
		stray[f.Path] = true
	}
	for _, f := range c.files {
		if !stray[f.Path] {
			c.kept = append(c.kept, f)
		}
	}
	return found, nil
}

func apply(rules []rule, c *candidate) ([]Finding, error) {
	var all []Finding
	for _, r := range rules {
		found, err := r.find(c)
		if err != nil {
			return nil, fmt.Errorf("policy rule %s: %w", r.name, err)
		}
		for i := range found {
			found[i].Rule = r.name
		}
		all = append(all, found...)
	}
	return all, nil
}

// strays are the paths of findings whose files are returned to the base commit, sorted.
func strays(found []Finding) []string {
	var paths []string
	for _, f := range found {
		if f.Path != "" && slices.ContainsFunc(strayRules, func(r rule) bool { return r.name == f.Rule }) {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// maxListed bounds the findings of one rule in a verdict: an agent that unpacks an archive must
// not fill the record of the run.
const maxListed = 200

// listed keeps the first findings of each rule, in order, and says how many more there are.
func listed(found []Finding) []Finding {
	count := map[string]int{}
	var kept []Finding
	for _, f := range found {
		if count[f.Rule]++; count[f.Rule] <= maxListed {
			kept = append(kept, f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if more := count[name] - maxListed; more > 0 {
			kept = append(kept, Finding{Rule: name, Message: fmt.Sprintf("and %d more findings of this rule", more)})
		}
	}
	return kept
}
