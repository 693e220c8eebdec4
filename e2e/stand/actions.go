package stand

import (
	"context"

	"code.gitea.io/sdk/gitea"
)

// Checkout puts the stand-in for actions/checkout on the instance.
func (s *Stand) Checkout(ctx context.Context) error {
	dir, err := CopyTemplate("checkout", s.Dir)
	if err != nil {
		return err
	}
	if err := s.Organization("actions"); err != nil {
		return err
	}
	return s.Action(ctx, "actions", "checkout", dir, "v4")
}

// Organization makes an organization of the admin's.
func (s *Stand) Organization(name string) error {
	_, _, err := s.Admin.CreateOrg(gitea.CreateOrgOption{Name: name, Visibility: gitea.VisibleTypePublic})
	return err
}

// Action publishes the content of a folder as an action OWNER/NAME with a tag. The
// organization exists.
func (s *Stand) Action(ctx context.Context, owner, name, dir, tag string) error {
	r, err := s.NewRepo(ctx, s.Admin, owner, name, dir, false)
	if err != nil {
		return err
	}
	return r.Push(ctx, dir, "HEAD:refs/tags/"+tag)
}
