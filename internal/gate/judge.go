package gate

import (
	"context"
	"fmt"

	"issuesmith/internal/worktree"
)

// ruleJudgedTree is the rule of findings about test commands that alter what was judged.
const ruleJudgedTree = "judged-tree"

// Judge normalises and judges what stands in the worktree, runs the test commands when policy
// passed, puts the judged tree back, and judges again. An *InfraError says that something around the
// tests failed; any other error is ctx's or the disk's.
func (g *Gate) Judge(ctx context.Context) (*Verdict, error) {
	v := &Verdict{}
	change, err := g.Tree.Change(ctx)
	if err != nil {
		return nil, ours("compare the worktree with the base commit", err)
	}
	if change, err = g.leaveOut(ctx, change, v); err != nil {
		return nil, ours("leave out what commands made", err)
	}
	if change, err = g.normalise(ctx, change); err != nil {
		return nil, ours("remove trailing blanks", err)
	}
	v.Change = change
	found, err := g.Policy(change)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		v.refuse(found)
		return v, nil
	}
	if err := g.test(ctx, v); err != nil {
		return nil, err
	}
	if found, err = g.restore(ctx, v); err != nil {
		return nil, err
	}
	v.refuse(found)
	v.Passed = len(found) == 0
	for _, c := range v.Commands {
		v.Passed = v.Passed && c.OK()
	}
	return v, nil
}

// normalise removes trailing blanks from what stays. Strays are left as they are: a file rewritten would be a new
// one, and what was wrong with it, such as a hard link to a file outside, would no longer show.
func (g *Gate) normalise(ctx context.Context, c *worktree.Change) (*worktree.Change, error) {
	k := g.candidate(c)
	if _, err := k.sift(); err != nil {
		return nil, err
	}
	part := *c
	part.Files = k.kept
	after, err := g.Tree.Normalise(ctx, &part)
	if err != nil || after != &part {
		return after, err
	}
	return c, nil // nothing was written
}

func (v *Verdict) refuse(found []Finding) {
	v.strays = strays(found)
	v.Findings = listed(found)
}

// test runs the test commands in order. All run even when one fails, so that the model is told
// everything at once; after one that hung the others would most likely hang as well.
func (g *Gate) test(ctx context.Context, v *Verdict) error {
	for i, script := range g.Tests {
		what := "test command " + quoted(script)
		if g.Progress != nil {
			g.Progress(what)
		}
		c, err := run(ctx, g.Sandbox, what, script, g.Timeout, g.Redact)
		if err != nil {
			return err
		}
		v.Commands = append(v.Commands, c)
		if c.OK() {
			continue
		}
		if err := g.surroundings(what, c); err != nil {
			return err
		}
		if rest := len(g.Tests) - i - 1; c.TimedOut && rest > 0 {
			v.Notes = append(v.Notes, fmt.Sprintf("%d further test commands were not run after the one that did not end", rest))
			break
		}
	}
	return nil
}

// restore puts the judged tree back after the tests, says what they did to it, and judges once more what stands there.
func (g *Gate) restore(ctx context.Context, v *Verdict) ([]Finding, error) {
	restored, err := g.Tree.Restore(ctx, v.Change)
	if err != nil {
		return nil, ours("put the judged tree back after the tests", err)
	}
	if len(restored.Tracked) > 0 {
		v.Notes = append(v.Notes, "put back after the test commands had altered them: "+some(restored.Tracked, 10))
	}
	if len(restored.Removed) > 0 {
		v.Notes = append(v.Notes, "taken away after the test commands had made them: "+some(restored.Removed, 10))
	}
	if len(restored.Left) > 0 {
		v.Notes = append(v.Notes, "altered by the test commands and too large to be put back: "+some(restored.Left, 10))
	}
	change, err := g.Tree.Change(ctx)
	if err != nil {
		return nil, ours("compare the worktree with the judged tree", err)
	}
	if change.Tree != v.Change.Tree {
		return nil, fmt.Errorf("the worktree could not be put back after the test commands: it is tree %s instead of %s; something outside of the commands writes into %s", change.Tree, v.Change.Tree, g.Tree.Dir())
	}
	v.Change = change // the same tree; its contents are the ones just read
	found, err := g.Policy(change)
	if err != nil {
		return nil, err
	}
	return append(found, altered(restored)...), nil
}

func altered(r *worktree.Restored) []Finding {
	var found []Finding
	for _, path := range r.Altered {
		found = append(found, Finding{
			Rule:    ruleJudgedTree,
			Path:    path,
			Message: "a test command altered or removed this file after it had been judged",
			Hint:    "the file was put back; let tests write into a temporary folder",
		})
	}
	return found
}
