package stand

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
)

const giteaConfig = `
APP_NAME = end-to-end
RUN_USER = %[1]s
RUN_MODE = prod
WORK_PATH = %[2]s

[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]s
ROOT_URL = %[4]s/
STATIC_ROOT_PATH = %[5]s
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = false

[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
SQLITE_JOURNAL_MODE = WAL

[security]
INSTALL_LOCK = true
SECRET_KEY = %[6]s
PASSWORD_HASH_ALGO = pbkdf2_v1

[service]
DISABLE_REGISTRATION = true

[repository]
DEFAULT_BRANCH = main

[indexer]
ISSUE_INDEXER_TYPE = db

[actions]
ENABLED = true
DEFAULT_ACTIONS_URL = self

[log]
MODE = console
LEVEL = warn

[mailer]
ENABLED = false

[cron.start_schedule_tasks]
SCHEDULE = @every 24h

[cron.update_checker]
ENABLED = false
`

// startGitea writes the configuration, makes the first user and starts the server
// and the proxy in front of it.
func (s *Stand) startGitea(ctx context.Context, share string) error {
	dir := filepath.Join(s.Dir, "gitea")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	if s.Proxy, err = newProxy("http://127.0.0.1:" + port); err != nil {
		return err
	}
	s.URL, s.Root = s.Proxy.URL, s.Proxy.URL
	if s.docker != nil {
		address, err := s.docker.Forward(strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			return err
		}
		s.Root = "http://" + address
	}
	s.binary, s.config = filepath.Join(share, "gitea"), filepath.Join(dir, "app.ini")
	config := fmt.Sprintf(giteaConfig, s.user.name, dir, port, s.Root, share, Random())
	if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
		return err
	}
	if err := s.user.give(dir); err != nil {
		return err
	}
	if _, err := s.giteaCommand("migrate"); err != nil {
		return err
	}
	admin := &Person{Name: "admin-e2e", Password: Random()}
	if _, err := s.giteaCommand("admin", "user", "create", "--admin", "--username", admin.Name, "--password", admin.Password,
		"--email", "admin@example.test", "--must-change-password=false"); err != nil {
		return err
	}
	s.gitea, err = launch("gitea", s.user.command(s.binary, dir, dir, "web", "--config", s.config), filepath.Join(s.Dir, "gitea.log"))
	if err != nil {
		return err
	}
	if err := s.waitGitea(ctx); err != nil {
		return err
	}
	s.Admin, err = s.login(admin)
	return err
}

func (s *Stand) giteaCommand(args ...string) (string, error) {
	dir := filepath.Join(s.Dir, "gitea")
	out, err := s.user.command(s.binary, dir, dir, append(args, "--config", s.config)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gitea %s: %w\n%s", strings.Join(args[:min(3, len(args))], " "), err, out)
	}
	return string(out), nil
}

func (s *Stand) waitGitea(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/healthz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close() // nothing of it is read
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if s.gitea.dead() {
			return fmt.Errorf("gitea ended at once:\n%s", s.gitea.tail(4000))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gitea does not answer:\n%s", s.gitea.tail(4000))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// login gives a person with a password an API token and a client that uses it.
func (s *Stand) login(p *Person) (*Person, error) {
	first, err := gitea.NewClient(s.URL, gitea.SetGiteaVersion(""), gitea.SetBasicAuth(p.Name, p.Password))
	if err != nil {
		return nil, err
	}
	token, _, err := first.CreateAccessToken(gitea.CreateAccessTokenOption{Name: "e2e", Scopes: []gitea.AccessTokenScope{gitea.AccessTokenScopeAll}})
	if err != nil {
		return nil, fmt.Errorf("token for %s: %w", p.Name, err)
	}
	p.Token = token.Token
	p.Client, err = gitea.NewClient(s.URL, gitea.SetGiteaVersion(""), gitea.SetToken(p.Token))
	return p, err
}

// NewPerson makes an account.
func (s *Stand) NewPerson(name string) (*Person, error) {
	p := &Person{Name: name, Password: Random()}
	must := false
	if _, _, err := s.Admin.AdminCreateUser(gitea.CreateUserOption{
		LoginName: name, Username: name, Email: name + "@example.test", Password: p.Password, MustChangePassword: &must,
	}); err != nil {
		return nil, fmt.Errorf("creating %s: %w", name, err)
	}
	return s.login(p)
}

// Post sends a form as a signed-in person's browser would: for what the API cannot
// do, such as cancelling a run.
func (s *Stand) Post(ctx context.Context, p *Person, path string) error {
	client, err := browser(ctx, s.URL, p)
	if err != nil {
		return err
	}
	return postForm(ctx, client, s.URL+path, nil)
}

// Random is a value nobody guesses, for passwords and canaries.
func Random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // only its number was wanted
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

func postForm(ctx context.Context, client *http.Client, to string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing of it is read
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("POST %s: %s", to, resp.Status)
	}
	return nil
}
