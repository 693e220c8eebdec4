package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A loader reads one configuration.
type loader struct {
	sources  Sources
	config   *Config
	problems Problems
	table    []setting
	aliases  map[string][]alias
	names    []string         // of the environment, sorted
	file     map[string]value // of the repository file, by setting
	fileErr  map[string]error // where a value has the wrong shape
	where    map[string]string
	failed   map[string]bool // settings that have a problem already
}

// Load reads and checks everything. The error, if any, is Problems; the Config then holds what could be read.
func Load(s Sources) (*Config, error) {
	l := &loader{
		sources: s, config: &Config{}, table: table(), aliases: aliases(),
		file: map[string]value{}, fileErr: map[string]error{}, where: map[string]string{}, failed: map[string]bool{},
	}
	if l.sources.FileName == "" {
		l.sources.FileName = ".gitea/issuesmith.yml"
	}
	if s.Environ != nil {
		for _, pair := range s.Environ() {
			name, _, _ := strings.Cut(pair, "=")
			l.names = append(l.names, name)
		}
		slices.Sort(l.names)
		l.names = slices.Compact(l.names)
	}
	l.readFile()
	l.strangers()
	for _, setting := range l.table {
		l.read(setting)
	}
	l.addTestVariables()
	l.retired()
	l.keepBystanders()
	l.checkRequired()
	l.checkModel()
	l.checkDatabases()
	l.checkHome()
	l.checkLabels()
	l.checkDirect()
	l.warn()
	if len(l.problems) > 0 {
		slices.SortStableFunc(l.problems, byPlace)
		return l.config, l.problems
	}
	return l.config, nil
}

// env is a variable without surrounding blanks; "" where it is not set, which is the
// same: runners set inputs that nobody gave to nothing.
func (l *loader) env(name string) string {
	if l.sources.Lookup == nil {
		return ""
	}
	text, _ := l.sources.Lookup(name)
	return strings.TrimSpace(text)
}

func (l *loader) add(p Problem) {
	l.failed[p.Key] = true
	l.problems = append(l.problems, p)
}

func (l *loader) note(format string, args ...any) {
	l.config.Notes = append(l.config.Notes, fmt.Sprintf(format, args...))
}

// read gives a setting the value of its strongest source.
func (l *loader) read(s setting) {
	v, given, err := l.find(s)
	if !given {
		v = value{text: s.preset}
		if s.preset == "" {
			return
		}
	}
	l.where[s.Name] = v.where
	if err == nil {
		err = s.read(l.config, v)
	}
	if err != nil {
		l.tell(s, v, err)
	}
	// The file is checked as a whole, also what a stronger source takes the place of.
	if hidden, inFile := l.file[s.Name]; inFile && hidden.where != v.where {
		if err = l.fileErr[s.Name]; err == nil {
			err = s.read(&Config{}, hidden)
		}
		if err != nil {
			l.tell(s, hidden, err)
		}
	}
}

// tell makes problems of a setting's error, which may join several.
func (l *loader) tell(s setting, v value, err error) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			l.tell(s, v, e)
		}
		return
	}
	p := Problem{Where: v.where, Key: s.Name, Value: v.text, Message: err.Error()}
	var item *itemError
	if errors.As(err, &item) {
		p.Value = item.value
		if item.line > 0 {
			p.Where = l.fileLine(strconv.Itoa(item.line))
		}
	}
	// A step's own variable is not shown either: act puts a clone URL there, which may hold a token.
	if s.Secret || s.fallback != "" && v.where == "environment "+s.fallback {
		p.Value = ""
	}
	l.add(p)
}

// find looks for a value: flag, input, environment, file, the step's own variables.
func (l *loader) find(s setting) (value, bool, error) {
	if !s.FileOnly {
		if text := strings.TrimSpace(l.sources.Flags[s.Name]); text != "" {
			return value{where: "flag", text: text}, true, nil
		}
		for _, name := range inputVariables(s.Name) {
			if text := l.env(name); text != "" {
				return value{where: "input", text: text}, true, nil
			}
		}
		name := ownVariable(s.Name)
		if text := l.env(name); text != "" {
			return value{where: "environment " + name, text: text}, true, nil
		}
		if v, given, err := l.alias(s.Name); given {
			return v, true, err
		}
	}
	if v, given := l.file[s.Name]; given {
		return v, true, l.fileErr[s.Name]
	}
	if s.fallback == "" {
		return value{}, false, nil
	}
	text := l.env(s.fallback)
	if text == "" {
		return value{}, false, nil
	}
	v := value{where: "environment " + s.fallback, text: text}
	if err := s.read(&Config{}, v); err != nil {
		if l.sources.Local {
			return value{}, false, nil // nobody asked for it
		}
		return v, true, fmt.Errorf("%w; give the input %s to say another", err, s.Name)
	}
	return v, true, nil
}

// inputVariables are the names an input arrives under: the runner's own spelling, and
// that which a shell can carry.
func inputVariables(name string) []string {
	upper := strings.ToUpper(name)
	if plain := strings.ReplaceAll(upper, "-", "_"); plain != upper {
		return []string{"INPUT_" + upper, "INPUT_" + plain}
	}
	return []string{"INPUT_" + upper}
}

func ownVariable(name string) string {
	return "ISSUESMITH_" + strings.ReplaceAll(strings.ToUpper(name), "-", "_")
}

// readFile sorts the repository file's keys into values, and tells those that have
// no place there.
func (l *loader) readFile() {
	entries, problems := parseFile(l.sources.File)
	for _, p := range problems {
		p.Where = l.fileLine(p.Where)
		l.add(p)
	}
	for _, e := range entries {
		where := l.fileLine(strconv.Itoa(e.line))
		s, known := l.setting(e.key)
		switch {
		case !known && slices.Contains(NotBuilt(), e.key):
			l.notBuilt(where, e.key, e.value.Value)
		case !known:
			l.add(Problem{Where: where, Key: e.key, Message: "is not a known setting" + nearest(e.key, l.keys(true))})
		case s.noFile != "":
			l.add(Problem{Where: where, Key: e.key, Message: "cannot be set in the file: " + s.noFile})
		default:
			v, err := fileValue(s, e.value)
			v.where = where
			l.file[s.Name], l.fileErr[s.Name] = v, err
		}
	}
}

func (l *loader) fileLine(line string) string {
	if line == "" {
		return l.sources.FileName
	}
	return l.sources.FileName + ":" + line
}

func (l *loader) setting(name string) (setting, bool) {
	i := slices.IndexFunc(l.table, func(s setting) bool { return s.Name == name })
	if i < 0 {
		return setting{}, false
	}
	return l.table[i], true
}

// keys are the names that can be given, to suggest one of them.
func (l *loader) keys(inFile bool) []string {
	var out []string
	for _, s := range l.table {
		if inFile && s.noFile == "" || !inFile && !s.FileOnly {
			out = append(out, s.Name)
		}
	}
	return out
}

// strangers tells flags, inputs and variables that look like settings and are none.
func (l *loader) strangers() {
	for name, text := range l.sources.Flags {
		l.stranger("flag", name, text)
	}
	told := map[string]bool{}
	for _, name := range l.names {
		input, isInput := strings.CutPrefix(name, "INPUT_")
		own, isOwn := strings.CutPrefix(name, "ISSUESMITH_")
		text := l.env(name)
		if text == "" || !isInput && !isOwn {
			continue
		}
		where, spelled := "input", input
		if isOwn {
			where, spelled = "environment "+name, own
		}
		key := strings.ReplaceAll(strings.ToLower(spelled), "_", "-")
		if !told[where+key] {
			told[where+key] = true
			l.stranger(where, key, text)
		}
	}
}

func (l *loader) stranger(where, key, text string) {
	s, known := l.setting(key)
	switch {
	case known && s.FileOnly:
		l.add(Problem{Where: where, Key: key, Message: "belongs into the repository file " + l.sources.FileName + " and can be set nowhere else"})
	case known:
	case slices.Contains(NotBuilt(), key):
		l.notBuilt(where, key, text)
	default:
		// The value is not shown: whatever was meant by the name, it may be a secret.
		l.add(Problem{Where: where, Key: key, Message: "is not a known setting" + nearest(key, l.keys(false))})
	}
}

// notBuilt answers a name of a later version. What this version does anyway is no mistake.
func (l *loader) notBuilt(where, key, text string) {
	if key == "tool-mode" && (text == "auto" || text == "native") {
		return
	}
	l.add(Problem{Where: where, Key: key, Message: "is not built yet: take it out"})
}

// keepBystanders remembers credentials that this run does not use and must not show.
func (l *loader) keepBystanders() {
	names := []string{"GITEA_TOKEN", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"}
	for _, p := range providers {
		if p.key != "" {
			names = append(names, p.key)
		}
	}
	for _, name := range names {
		if text := l.env(name); text != "" {
			l.config.bystanders = append(l.config.bystanders, text)
		}
	}
}
