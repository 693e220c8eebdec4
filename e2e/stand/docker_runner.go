package stand

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const dockerRunnerConfig = `
log: {level: info}
runner:
  file: .runner
  capacity: 1
  timeout: 30m
  fetch_timeout: 5s
  fetch_interval: 500ms
  fetch_interval_max: 500ms
  log_report_interval: 1s
  log_report_max_latency: 300ms
  state_report_interval: 1s
cache: {enabled: false}
container:
  force_pull: false
  docker_host: %q
  options: %q
host: {workdir_parent: %q}
`

// A DockerRunner is a runner whose jobs run in containers.
type DockerRunner struct {
	Label string // what a job's runs-on asks for
	Image string // what its jobs run in
	// Options are those of docker run for the job's container, such as --user root.
	Options string
	// Socket leaves the runner's docker_host at its default, which puts the daemon's socket
	// into every job container: whoever reaches it there owns the host.
	Socket bool
}

// DockerRunner registers and starts a runner in Docker mode, as an ordinary user of the
// docker group. It stands in the daemon's network, so that the instance has one address
// for the runner and for its jobs.
func (s *Stand) DockerRunner(ctx context.Context, r DockerRunner) error {
	home := filepath.Join(s.Dir, r.Label)
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	host := "-"
	if r.Socket {
		host = ""
	}
	config := filepath.Join(home, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, dockerRunnerConfig, host, r.Options, work), 0o600); err != nil {
		return err
	}
	if err := s.user.give(home); err != nil {
		return err
	}
	if err := os.Chown(s.docker.Socket, 0, s.user.gid); err != nil {
		return err
	}
	token, _, err := s.Admin.CreateAdminActionRunnerRegistrationToken()
	if err != nil {
		return fmt.Errorf("runner registration token: %w", err)
	}
	return s.docker.Inside(func() error {
		binary := filepath.Join(s.Dir, "parts", "runner")
		out, err := s.user.command(binary, home, home, "register", "--no-interactive", "--config", config, "--instance", s.Root,
			"--token", token.Token, "--name", r.Label, "--labels", r.Label+":docker://"+r.Image).CombinedOutput()
		if err != nil {
			return fmt.Errorf("registering %s: %w\n%s", r.Label, err, out)
		}
		cmd := s.user.command(binary, home, home, "daemon", "--config", config)
		cmd.Env = append(cmd.Env, "DOCKER_HOST=unix://"+s.docker.Socket)
		return s.runner(ctx, r.Label, cmd)
	})
}
