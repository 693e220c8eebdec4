package app

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// Programs read the report: its keys stay.
func TestReportKeys(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	state := t.TempDir()
	p := &program{environ: func() []string { return []string{"PATH=/usr/bin:/bin", "XDG_STATE_HOME=" + state} }, stdout: &out, stderr: &complaints}
	if code := p.run(t.Context(), []string{"sandbox", "--report"}); code != 0 && code != 3 {
		t.Fatalf("exit %d: %s", code, complaints.String())
	}
	var report map[string]json.RawMessage
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	for _, key := range []string{"level", "layers", "limits", "open"} {
		if report[key] == nil {
			t.Errorf("no %s among %q", key, slices.Sorted(maps.Keys(report)))
		}
	}
	var layers []map[string]string
	if err := json.Unmarshal(report["layers"], &layers); err != nil || len(layers) < 10 {
		t.Fatalf("layers: %s, %v", report["layers"], err)
	}
	for _, layer := range layers {
		if layer["name"] == "" || layer["state"] != "on" && layer["state"] != "off" {
			t.Errorf("layer %q", layer)
		}
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"echo $HOME | cat"}, "echo $HOME | cat"},
		{[]string{"echo", "$HOME"}, "'echo' '$HOME'"},
		{[]string{"printf", "it's", ""}, `'printf' 'it'\''s' ''`},
	} {
		if got := script(c.words); got != c.want {
			t.Errorf("%q: %s, want %s", c.words, got, c.want)
		}
	}
}
