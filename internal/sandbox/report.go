package sandbox

// The levels of isolation, strongest first.
const (
	LevelFull       = "dedicated user and namespaces"
	LevelNamespaces = "namespaces"
	LevelUser       = "dedicated user"
	LevelRules      = "rules only" // Landlock, system call filter and broker under the caller's own user
	LevelWeak       = "weak"       // a credential could be read or the network is open: strict refuses it
	LevelOff        = "off"
)

// A Layer is one mechanism and whether it is in force.
type Layer struct {
	Name  string `json:"name"`
	State string `json:"state"`         // "on" or "off"
	Why   string `json:"why,omitempty"` // what it gives when on; why it is missing when off
}

// A Report says what isolation was reached.
type Report struct {
	Level  string   `json:"level"`
	Layers []Layer  `json:"layers"`
	Limits Limits   `json:"limits"`
	Open   []string `json:"open"`            // what stays open, for a person
	Weak   []string `json:"weak,omitempty"`  // why strict refuses, each with its remedy
	Names  []string `json:"names,omitempty"` // what listed host names resolve to, or that they do not
}
