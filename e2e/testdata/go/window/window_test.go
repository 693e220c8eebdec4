package window

import "testing"

func TestFewer(t *testing.T) {
	if got := Last([]int{1, 2}, 5); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}
