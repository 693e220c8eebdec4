package sandbox

import "strings"

// toolchainVariables may pass from the caller: they say where toolchains and
// certificates are, and builds fail without them. Everything else stays outside, since
// a step's environment holds tokens under any name.
var toolchainVariables = []string{
	"GOROOT", "GOTOOLCHAIN", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "JAVA_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// nonInteractive keeps tools from asking, paging, colouring and phoning home.
var nonInteractive = []string{
	"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "CI=true", "TERM=dumb", "USER=issuesmith", "LOGNAME=issuesmith",
	"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat", "PAGER=cat", "DEBIAN_FRONTEND=noninteractive",
	"COMPOSER_NO_INTERACTION=1", "PIP_NO_INPUT=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
	"npm_config_yes=true", "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false",
}

// environment is what commands see: the base environment, then test-env, which wins.
func environment(caller []string, path string, o Options) []string {
	env := append([]string{}, nonInteractive...)
	env = append(env, "PATH="+path, "HOME="+o.Home, "TMPDIR="+o.Tmp)
	have := map[string]string{}
	for _, entry := range caller {
		if name, value, ok := strings.Cut(entry, "="); ok {
			have[name] = value
		}
	}
	for _, name := range toolchainVariables {
		// A proxy or mirror address with user info is a credential.
		if value, ok := have[name]; ok && value != "" && !strings.Contains(value, "@") {
			env = append(env, name+"="+value)
		}
	}
	return append(env, o.Env...)
}
