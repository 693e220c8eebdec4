package escape

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"syscall"

	"issuesmith/e2e/stand"
)

// Names of the places.
const (
	PlaceUser      = "user"
	PlaceUserBare  = "user, no user namespaces"
	PlaceRoot      = "root"
	PlaceContainer = "root in Docker"
)

// A Place is where the program runs.
type Place struct {
	Name string
	Root bool // the program is root there
	// Own says that the user is nobody else's: everything that runs as it may be harmed.
	Own bool

	uid, gid  int  // of the program, on this machine
	drop      bool // change to them
	bare      bool // refuse user namespaces
	docker    *stand.Docker
	container string
}

// Users hands out places on this machine. As root each gets a user id of its own, so that harm done in one is not felt
// in another.
func Users() []*Place {
	places := []*Place{{Name: PlaceUser}, {Name: PlaceUserBare, bare: true}}
	for i, p := range places {
		p.uid, p.gid = os.Getuid(), os.Getgid()
		if os.Geteuid() == 0 {
			// No distribution hands out these; the process id keeps two runs on one machine apart.
			p.uid = 62000 + 2*(os.Getpid()%1000) + i
			p.gid, p.drop, p.Own = p.uid, true, true
		}
	}
	return places
}

// Machine is this machine as root.
func Machine() *Place { return &Place{Name: PlaceRoot, Root: true} }

// Container is a running container, made with docker's default profile, in which everything runs as root.
func Container(docker *stand.Docker, name string) *Place {
	return &Place{Name: PlaceContainer, Root: true, docker: docker, container: name}
}

// command makes a command that runs in the place, in dir, with env and nothing else of this process's environment.
func (p *Place) command(ctx context.Context, dir string, env []string, argv ...string) *exec.Cmd {
	if p.docker != nil {
		args := []string{"exec", "-i", "-w", dir}
		for _, e := range env {
			args = append(args, "-e", e)
		}
		return p.docker.Command(append(append(args, p.container), argv...)...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.gid)} // #nosec G115 -- small positive numbers
	}
	return cmd
}

// entered is argv as it is started in the place.
func (p *Place) entered(attempt string, argv ...string) []string {
	if p.bare {
		return append([]string{attempt, "without-user-namespaces"}, argv...)
	}
	return argv
}

// reaches is a URL of this machine's loopback as the place reaches it.
func (p *Place) reaches(base string) (string, error) {
	if p.docker == nil {
		return base, nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u.Host, err = p.docker.Forward(u.Host)
	return u.String(), err
}
