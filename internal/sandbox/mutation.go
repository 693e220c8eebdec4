//go:build mutation

package sandbox

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// removed reports whether the escape suite has taken the layer away.
func removed(layer string) bool {
	return slices.Contains(strings.Split(os.Getenv("ISSUESMITH_MUTATION_REMOVE"), ","), layer)
}

// forcedABI is the Landlock version the escape suite wants; never more than there is.
func forcedABI(abi int) int {
	if forced, err := strconv.Atoi(os.Getenv("ISSUESMITH_MUTATION_LANDLOCK")); err == nil {
		return min(abi, forced)
	}
	return abi
}

// mutations go on to the executor.
func mutations() []string {
	return []string{
		"ISSUESMITH_MUTATION_REMOVE=" + os.Getenv("ISSUESMITH_MUTATION_REMOVE"),
		"ISSUESMITH_MUTATION_LANDLOCK=" + os.Getenv("ISSUESMITH_MUTATION_LANDLOCK"),
	}
}
