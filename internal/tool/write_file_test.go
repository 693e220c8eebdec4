package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	s := newSet(t, map[string]string{"old.txt": "one\n", "crlf.txt": "\uFEFFa\r\nb\r\n", "run.sh": "#!/bin/sh\n", "edited.txt": "one\n"})
	want(t, call(t, s, "write_file", args("path", "a/b/new.txt", "content", "x\ny")), false, "made a/b/new.txt: 2 lines.")
	want(t, call(t, s, "write_file", args("path", "a/b/new.txt", "content", "z\n")), false, "replaced a/b/new.txt")
	want(t, call(t, s, "write_file", args("path", "empty.txt", "content", "")), false, "made empty.txt: 0 lines.")
	want(t, call(t, s, "bash", args("command", "cat a/b/new.txt && echo more >> a/b/new.txt && touch a/b/c")), false, "z") // the commands' own file and folder

	want(t, call(t, s, "write_file", args("path", "old.txt", "content", "two\n")), true, "was not read", "edit_file")
	want(t, call(t, s, "search", args("pattern", "one")), false, "old.txt:1:one")
	want(t, call(t, s, "write_file", args("path", "./old.txt", "content", "two\n")), true, "was not read")
	call(t, s, "read_file", args("path", "old.txt"))
	want(t, call(t, s, "write_file", args("path", "./old.txt", "content", "one\n")), true, "has this content already")
	want(t, call(t, s, "write_file", args("path", "./old.txt", "content", "two\n")), false, "replaced old.txt: 1 lines.")
	if got := read(t, s, "old.txt"); got != "two\n" {
		t.Errorf("old.txt is %q", got)
	}

	call(t, s, "edit_file", args("path", "edited.txt", "old", "one", "new", "two"))
	want(t, call(t, s, "write_file", args("path", "edited.txt", "content", "three\n")), false, "replaced")

	call(t, s, "read_file", args("path", "crlf.txt"))
	call(t, s, "write_file", args("path", "crlf.txt", "content", "a\nc\n"))
	if got := read(t, s, "crlf.txt"); got != "\uFEFFa\r\nc\r\n" {
		t.Errorf("crlf.txt is %q", got)
	}

	call(t, s, "read_file", args("path", "run.sh"))
	call(t, s, "write_file", args("path", "run.sh", "content", "#!/bin/sh\nexit 0\n"))
	if info, err := os.Stat(filepath.Join(s.bench.Tree.Dir(), "run.sh")); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("run.sh has mode %v (%v)", info.Mode(), err)
	}

	want(t, call(t, s, "write_file", args("path", strings.Repeat("d/", 490)+"x", "content", "")), false, "made d/d/")
	want(t, call(t, s, "write_file", args("path", "folder/", "content", "")), true, "names a folder")
	want(t, call(t, s, "write_file", args("path", "a", "content", "")), true, "a is a folder, not a file")
}
