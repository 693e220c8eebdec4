package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

var (
	// crowdedFolders hold credentials beside everything else; nobody means to open them whole.
	crowdedFolders = []string{
		"/", "/boot", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/var", "/var/cache", "/var/lib", "/var/run", "/var/tmp",
	}
	// systemTrees hold the machine's own settings and devices, at every depth.
	systemTrees = []string{"/dev", "/etc", "/proc", "/sys"}
	// credentialFolders are parts of a path that tools keep keys below.
	credentialFolders = []string{".aws", ".azure", ".docker", ".gnupg", ".kube", ".ssh"}
)

// folders is a list of folders that commands may read.
func folders(name, help string, at func(*Config) *[]string) setting {
	s := setting{Setting: Setting{Name: name, Default: "none", Range: "absolute folders, one a line", Help: help, Input: true}, list: true}
	s.read = func(c *Config, v value) error {
		var mistakes []error
		*at(c) = nil
		for i, folder := range v.lines() {
			clean := filepath.Clean(folder)
			err := checkFolder(folder)
			if err == nil && slices.Contains(*at(c), clean) {
				err = errors.New("is given twice")
			}
			if err != nil {
				mistakes = append(mistakes, &itemError{v.lineOf(i), folder, err.Error()})
				continue
			}
			*at(c) = append(*at(c), clean)
		}
		return errors.Join(mistakes...)
	}
	s.show = func(c *Config) any { return *at(c) }
	return s
}

// checkFolder judges the path alone; the sandbox looks at where its links lead.
func checkFolder(folder string) error {
	clean := filepath.Clean(folder)
	parts := strings.Split(clean, "/")
	switch {
	case !filepath.IsAbs(folder) || plain(folder) != nil:
		return errors.New("must be the absolute path of a folder")
	case slices.Contains(crowdedFolders, clean) || filepath.Dir(clean) == "/home":
		return errors.New("holds more than tools: name the folder of the tool itself")
	case slices.ContainsFunc(systemTrees, func(tree string) bool { return holds(tree, clean) }):
		return errors.New("belongs to the system: commands can read what they need of it already")
	case slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(credentialFolders, part) }):
		return errors.New("is a place of credentials")
	}
	return nil
}

// holds reports whether path is dir or lies below it.
func holds(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// checkHome refuses folders in which the caller's own home lies.
func (l *loader) checkHome() {
	home := filepath.Clean(l.env("HOME"))
	if !filepath.IsAbs(home) || home == "/" {
		return
	}
	for name, all := range map[string][]string{"toolchains": l.config.Toolchains, "caches": l.config.Caches} {
		for _, folder := range all {
			if holds(folder, home) {
				l.add(Problem{Where: l.where[name], Key: name, Value: folder, Message: "is a home folder or holds one: name the folder of the tool itself"})
			}
		}
	}
}
