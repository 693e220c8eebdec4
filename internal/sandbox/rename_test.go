package sandbox

import "testing"

func TestRenameBetweenFolders(t *testing.T) {
	t.Parallel()
	s := open(t)
	script := "mkdir a b && echo x > a/f && ln a/f b/g && mv -n a/f b/f && git --version >/dev/null; cat b/g"
	if r := run(t, s, Command{Script: script}); r.Output() != "x\n" {
		t.Errorf("%+v %s", r, r.Output())
	}
}
