package e2e

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"
)

// TestPathPrefixAndOwnCertificate: an instance below a path, with a certificate of an authority
// of its own, which SSL_CERT_FILE makes known; a person works from a desk.
func TestPathPrefixAndOwnCertificate(t *testing.T) {
	c := open(t, setup{queued: "never"}, repaired())
	issue, err := c.repo.Issue(pythonTitle, pythonBody)
	c.must(err)
	target, err := url.Parse(world.URL)
	c.must(err)
	front := httptest.NewTLSServer(http.StripPrefix("/gitea", httputil.NewSingleHostReverseProxy(target)))
	t.Cleanup(front.Close)
	authority := filepath.Join(t.TempDir(), "authority.pem")
	c.write(authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})))
	home := t.TempDir()
	clone, err := c.repo.Clone(c.ctx, home)
	c.must(err)
	args := []string{
		"run", "--issue", fmt.Sprint(issue), "--server-url", front.URL + "/gitea/", "--repository", c.repo.FullName(),
		"--model", "custom/scripted", "--model-base-url", c.script.Base, "--test-commands", tests["python"],
	}
	env := []string{"ISSUESMITH_TOKEN=" + world.maintainer.Token, "ISSUESMITH_MODEL_API_KEY=" + c.key}

	out, code := desk(t, clone, env, args...)
	if code != 3 || !strings.Contains(out, "SSL_CERT_FILE") {
		t.Errorf("without the authority: exit %d:\n%s", code, out)
	}
	c.untouched()

	out, code = desk(t, clone, append(env, "SSL_CERT_FILE="+authority), args...)
	if code != 0 {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	c.labels(issue, "ai:ready")
	c.noClaim()
	if pull := c.pull(); pull.State != gitea.StateOpen || c.file(pull.Head.Name, "pricing/discount.py") != pythonSource {
		t.Errorf("the pull request is %s from %s", pull.State, pull.Head.Name)
	}
	if strings.Contains(out, world.maintainer.Token) || strings.Contains(out, c.key) {
		t.Error("a secret was printed")
	}
}
