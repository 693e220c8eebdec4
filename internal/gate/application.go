package gate

import (
	"path"
	"strings"
)

// What sort of change is wanted.
const (
	kindCode  = "code"
	kindTests = "tests"
	kindDocs  = "docs"
)

// findApplication refuses a change that has nothing of the wanted sort in it: by default
// application source, since tests and documents alone repair nothing.
func findApplication(c *candidate) ([]Finding, error) {
	if len(c.files) == 0 {
		return nil, nil // said by rule empty
	}
	want := c.rules.Kind
	if want == "" {
		want = kindCode
	}
	for _, f := range c.kept {
		if sortOf(f.Path) == want {
			return nil, nil
		}
	}
	messages := map[string]Finding{
		kindCode:  {Message: "no application source changed, only tests or documents", Hint: "repair the cause in the application itself"},
		kindTests: {Message: "no test changed", Hint: "this issue asks for tests"},
		kindDocs:  {Message: "no document changed", Hint: "this issue asks for documents"},
	}
	f, ok := messages[want]
	if !ok {
		f = Finding{Message: "no file of the kind " + want + " changed"}
	}
	return []Finding{f}, nil
}

// sortOf tells application source, tests and documents apart by the conventions of the common languages.
func sortOf(file string) string {
	switch {
	case isTest(file):
		return kindTests
	case isDoc(file):
		return kindDocs
	}
	return kindCode
}

// testFolders hold tests at any depth.
var testFolders = map[string]bool{
	"test": true, "tests": true, "spec": true, "specs": true, "__tests__": true, "__mocks__": true, "__snapshots__": true, "testdata": true, "e2e": true,
}

// testNames are names of test files, in lower case: Go, Python, JavaScript, Ruby, C and Rust habits.
var testNames = []string{
	"*_test.*", "test_*.py", "conftest.py", "*_spec.rb", "*.test.*", "*.spec.*", "*.cy.*", "phpunit.xml*", "jest.config.*", "vitest.config.*", "pytest.ini",
}

// testClasses end the names of test classes before the suffix: PHP, Java, Kotlin, C#, Swift, Scala. Case counts, so that a Latest.php is none.
var testClasses = []string{"Test", "Tests", "TestCase", "IT", "Spec"}

var classSuffixes = map[string]bool{".php": true, ".java": true, ".kt": true, ".cs": true, ".fs": true, ".swift": true, ".scala": true, ".groovy": true, ".vb": true}

func isTest(file string) bool {
	dir, base := path.Split(file)
	for part := range strings.SplitSeq(fold(dir), "/") {
		if testFolders[part] {
			return true
		}
	}
	lower := fold(base)
	for _, pattern := range testNames {
		// The patterns are constants and known to be well-formed.
		if ok, _ := path.Match(pattern, lower); ok {
			return true
		}
	}
	suffix := path.Ext(base)
	if !classSuffixes[suffix] {
		return false
	}
	for _, end := range testClasses {
		if strings.HasSuffix(strings.TrimSuffix(base, suffix), end) {
			return true
		}
	}
	return false
}

var docSuffixes = map[string]bool{".md": true, ".markdown": true, ".mdx": true, ".rst": true, ".txt": true, ".adoc": true, ".asciidoc": true, ".org": true, ".textile": true, ".pod": true}

// docNames start the names of documents that often have no suffix.
var docNames = []string{"license", "licence", "copying", "notice", "authors", "contributors", "changelog", "changes", "readme", "contributing", "codeowners"}

func isDoc(file string) bool {
	name := fold(file)
	base := path.Base(name)
	suffix := path.Ext(base)
	if base == "cmakelists.txt" || base == "robots.txt" {
		return false // text by suffix, but the build or the site reads it
	}
	if docSuffixes[suffix] || strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "doc/") {
		return true
	}
	for _, start := range docNames {
		if strings.TrimSuffix(base, suffix) == start && (suffix == "" || docSuffixes[suffix]) {
			return true
		}
	}
	return false
}
