package gate

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

// directWords are protected in mode direct wherever they stand in a path as a word of their own: "AuthController",
// "auth_test" and "auth/" but not "author".
var directWords = map[string]bool{
	"migration": true, "migrations": true, "migrate": true,
	"route": true, "routes": true, "router": true, "routing": true, "urls": true,
	"middleware": true, "middlewares": true,
	"auth": true, "authn": true, "authz": true, "oauth": true, "oauth2": true, "authentication": true, "authenticate": true, "authenticator": true,
	"authenticated": true, "authorization": true, "authorize": true, "authorizer": true, "login": true, "logout": true, "signin": true,
	"password": true, "passwords": true, "session": true, "sessions": true, "permission": true, "permissions": true, "saml": true, "ldap": true, "jwt": true, "sso": true,
}

// databaseWords name a database; in a configuration file they are protected in mode direct.
var databaseWords = map[string]bool{
	"database": true, "databases": true, "db": true, "schema": true, "knexfile": true, "ormconfig": true, "alembic": true, "datasource": true,
}

var configSuffixes = map[string]bool{
	".yml": true, ".yaml": true, ".json": true, ".toml": true, ".ini": true, ".conf": true, ".cfg": true, ".xml": true, ".properties": true, ".sql": true, ".prisma": true,
}

// protectsDirect says why mode direct may not change a path; "" when it may.
func (r Rules) protectsDirect(file string) (string, error) {
	open := false
	for _, pattern := range r.DirectPaths {
		ok, err := doublestar.Match(pattern, file)
		if err != nil {
			return "", fmt.Errorf("direct-paths %q: %w", pattern, err)
		}
		open = open || ok
	}
	if !open {
		return whyNotDirect, nil
	}
	config := configSuffixes[strings.ToLower(path.Ext(file))]
	var database bool
	for part := range strings.SplitSeq(path.Clean(file), "/") {
		config = config || strings.EqualFold(part, "config") || strings.EqualFold(part, "settings")
		for _, word := range words(part) {
			if directWords[word] {
				return whyDirect, nil
			}
			database = database || databaseWords[word]
		}
	}
	if database && config {
		return whyDirect, nil
	}
	return "", nil
}

// words splits a name at everything that is no letter or digit, and where camel case starts a word.
func words(name string) []string {
	var (
		all  []string
		word []rune
	)
	end := func() {
		if len(word) > 0 {
			all = append(all, fold(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		// "JWTAuth" is JWT and Auth: a capital starts a word after a small letter, or before one.
		if unicode.IsUpper(r) && i > 0 {
			small := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && small {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return all
}
