//go:build !mutation

package sandbox

// The released program has no switch that takes a layer away; the escape suite builds one with the tag "mutation".

func removed(string) bool { return false }

func forcedABI(abi int) int { return abi }

func mutations() []string { return nil }
