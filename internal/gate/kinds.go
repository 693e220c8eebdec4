package gate

import (
	"fmt"

	"issuesmith/internal/worktree"
)

const (
	maxFile = 1 << 20  // bytes of a file after the change
	growth  = 64 << 10 // bytes by which a file that was larger already may grow
)

// findKinds refuses everything but plain text files of a moderate size.
func findKinds(c *candidate) ([]Finding, error) {
	var found []Finding
	for _, f := range c.files {
		for _, t := range kindTroubles(f) {
			t.Path = f.Path
			found = append(found, t)
		}
	}
	return found, nil
}

func kindTroubles(f worktree.File) []Finding {
	if t := entryTrouble(f); t.Message != "" {
		return []Finding{t}
	}
	var t []Finding
	if f.New.HardLinks > 1 {
		t = append(t, Finding{
			Message: fmt.Sprintf("the file has %d names (hard links), and some may lie outside of the repository", f.New.HardLinks),
			Hint:    "write the content into a file of its own",
		})
	}
	if f.New.Kind == worktree.KindExecutable && f.Old.Kind != worktree.KindExecutable {
		t = append(t, Finding{Message: "a new executable bit", Hint: "keep the mode of a file that exists; a new file needs none (chmod -x)"})
	}
	switch {
	case f.New.Size > max(maxFile, f.Old.Size+growth):
		t = append(t, Finding{
			Message: fmt.Sprintf("the file has %d bytes; %d are allowed", f.New.Size, maxFile),
			Hint:    "generate large data where it is used, or make it smaller",
		})
	case f.Binary: // what is too large to be looked into counts as binary, and is told by its size
		t = append(t, Finding{Message: "binary content " + done(f), Hint: "change text files only"})
	}
	return t
}

// entryTrouble is about entries that are not files, before or after. A link that becomes a file counts as
// well: tools that write a copy and move it into place turn links into files unasked.
func entryTrouble(f worktree.File) Finding {
	for _, kind := range []worktree.Kind{f.New.Kind, f.Old.Kind} {
		switch kind {
		case worktree.KindSymlink:
			return Finding{Message: "symbolic link " + done(f), Hint: "leave links as they are, and write files instead of new ones"}
		case worktree.KindSubmodule:
			return Finding{Message: "submodule " + done(f), Hint: "submodules cannot be changed here"}
		case worktree.KindRepository:
			return Finding{Message: "a git repository inside the worktree", Hint: "create no repository; use a temporary folder for experiments"}
		case worktree.KindOther:
			return Finding{Message: "a device, socket or named pipe", Hint: "create files only"}
		case worktree.KindNone, worktree.KindFile, worktree.KindExecutable:
		}
	}
	return Finding{}
}
