// Package window works on the last values of a series.
package window

// Last returns the last n values, or all when there are fewer.
func Last(values []int, n int) []int {
	if n > len(values) {
		return values
	}
	return values[len(values)-n-1:]
}
