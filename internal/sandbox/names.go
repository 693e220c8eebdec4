package sandbox

import (
	"net/netip"
	"os"
	"slices"
	"strings"
)

// containerMarks are files that container engines make.
var containerMarks = []string{"/.dockerenv", "/run/.containerenv"}

// publishNames makes listed names known to commands that have no hosts file of their own: by lines in the container's, where
// root may write it. It says what does not resolve. The lines stay: the container ends with its job, and another sandbox
// of the job may rely on them.
func publishNames(file string, targets []target, container bool) (notes []string) {
	text, err := os.ReadFile(file) // #nosec G304 -- /etc/hosts, or a test's
	if err != nil {
		text = nil
	}
	var missing []target
	for _, t := range targets {
		if _, err := netip.ParseAddr(t.Name); err != nil && !named(string(text), t) {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if container && appendLines(file, text, missing) == nil {
		return nil
	}
	for _, t := range missing {
		notes = append(notes, t.Name+" does not resolve for commands: they can use "+t.Address.String())
	}
	return notes
}

// named reports whether the hosts file gives t's name its address.
func named(hosts string, t target) bool {
	for line := range strings.Lines(hosts) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == t.Address.Addr().String() && slices.Contains(fields[1:], t.Name) {
			return true
		}
	}
	return false
}

func appendLines(file string, text []byte, targets []target) error {
	lines := ""
	if len(text) > 0 && !strings.HasSuffix(string(text), "\n") {
		lines = "\n"
	}
	for _, t := range targets {
		if line := t.Address.Addr().String() + "\t" + t.Name + " # by issuesmith\n"; !strings.Contains(lines, line) {
			lines += line
		}
	}
	// One write in append mode: another run of the container may do the same.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0) // #nosec G304 -- /etc/hosts, or a test's
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// inContainer reports whether this process runs in a container.
func inContainer() bool {
	return slices.ContainsFunc(containerMarks, func(mark string) bool {
		_, err := os.Lstat(mark)
		return err == nil
	})
}
