package stand

import (
	"context"
	"os"

	"code.gitea.io/sdk/gitea"
)

// Checkout puts the stand-in for actions/checkout on the instance.
func (s *Stand) Checkout(ctx context.Context) error {
	dir, err := CopyTemplate("checkout", s.Dir)
	if err != nil {
		return err
	}
	return s.Action(ctx, "actions", "checkout", dir, "v4")
}

// Action publishes the content of a folder as an action OWNER/NAME with a tag.
func (s *Stand) Action(ctx context.Context, owner, name, dir, tag string) error {
	if _, _, err := s.Admin.CreateOrg(gitea.CreateOrgOption{Name: owner, Visibility: gitea.VisibleTypePublic}); err != nil {
		return err
	}
	r, err := s.NewRepo(ctx, s.Admin, owner, name, dir, false)
	if err != nil {
		return err
	}
	if err := r.Push(ctx, dir, "HEAD:refs/tags/"+tag); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
