package stand

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const runnerConfig = `
log: {level: info}
runner:
  file: .runner
  capacity: %d
  timeout: 30m
  fetch_timeout: 5s
  fetch_interval: 500ms
  fetch_interval_max: 500ms
  log_report_interval: 1s
  log_report_max_latency: 300ms
  state_report_interval: 1s
  labels: ["ubuntu-latest:host", "%s:host"]
  envs:
%s
cache: {enabled: false}
host: {workdir_parent: %s}
`

// startRunner registers a runner and starts it, in host mode. Each has its own
// home, so tool cache, as if it stood on another machine; its name is a label as well.
func (s *Stand) startRunner(ctx context.Context, binary string, n int, o Options) error {
	name := fmt.Sprintf("runner-%d", n)
	home := filepath.Join(s.Dir, name)
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	var envs strings.Builder
	for _, kv := range append([]string{"E2E_KEEP=" + s.Keep}, o.Env...) {
		k, v, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&envs, "    %s: %q\n", k, v)
	}
	config := filepath.Join(home, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, runnerConfig, o.Capacity, name, envs.String(), work), 0o600); err != nil {
		return err
	}
	if err := s.user.give(home); err != nil {
		return err
	}
	token, _, err := s.Admin.CreateAdminActionRunnerRegistrationToken()
	if err != nil {
		return fmt.Errorf("runner registration token: %w", err)
	}
	out, err := s.user.command(binary, home, home, "register", "--no-interactive", "--config", config,
		"--instance", s.URL, "--token", token.Token, "--name", name, "--labels", "ubuntu-latest:host,"+name+":host").CombinedOutput()
	if err != nil {
		return fmt.Errorf("registering %s: %w\n%s", name, err, out)
	}
	return s.runner(ctx, name, s.user.command(binary, home, home, "daemon", "--config", config))
}

// runner starts a registered runner. One that dies at once (a bad setting) would show only
// as a test that waits.
func (s *Stand) runner(ctx context.Context, name string, daemon *exec.Cmd) error {
	p, err := launch(name, daemon, filepath.Join(s.Dir, name+".log"))
	if err != nil {
		return err
	}
	s.runners = append(s.runners, p)
	select {
	case <-p.done:
		return fmt.Errorf("%s ended at once:\n%s", name, p.tail(4000))
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(300 * time.Millisecond):
		return nil
	}
}
