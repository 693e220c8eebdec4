package config

import (
	"fmt"
	"regexp"
	"strconv"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
	tib = int64(1) << 40
)

// size is a setting in bytes.
func size(name string, preset, low, high int64, help string, at func(*Config) *int64) setting {
	s := setting{Setting: Setting{Name: name, Default: shortSize(preset), Range: sizeRange(low, high), Help: help, Input: true}, preset: shortSize(preset)}
	s.read = func(c *Config, v value) (err error) {
		*at(c), err = parseSize(v.text, low, high)
		return err
	}
	s.show = func(c *Config) any { return shortSize(*at(c)) }
	return s
}

var sizeForm = regexp.MustCompile(`^([0-9]+) ?([KMGT])(iB|B)?$`)

// parseSize reads 512MiB, 4G or 4 GiB, all in powers of 1024.
func parseSize(text string, low, high int64) (int64, error) {
	between := sizeRange(low, high)
	if plainForm.MatchString(text) {
		return 0, fmt.Errorf("has no unit: write %sMiB or %sGiB, %s", text, text, between)
	}
	want := fmt.Errorf("must be a size like 512MiB or 4GiB, %s", between)
	match := sizeForm.FindStringSubmatch(text)
	if match == nil {
		return 0, want
	}
	unit := map[string]int64{"K": kib, "M": mib, "G": gib, "T": tib}[match[2]]
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || n > high/unit || n*unit < low {
		return 0, want
	}
	return n * unit, nil
}

func sizeRange(low, high int64) string { return shortSize(low) + "–" + shortSize(high) }

// shortSize is n in the largest unit that needs no fraction: 4GiB, 512MiB.
func shortSize(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"TiB", tib}, {"GiB", gib}, {"MiB", mib}, {"KiB", kib}} {
		if n >= unit.size && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
