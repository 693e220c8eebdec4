package gate

import (
	"encoding/json"
	"testing"
	"time"
)

func TestCommandIsRecordedInSeconds(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Command{Command: "make", Exit: 2, Duration: 1500 * time.Millisecond, Output: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"command":"make","exit":2,"output":"x","seconds":1.5}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
