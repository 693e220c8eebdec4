package gitea

import (
	"context"
	"fmt"
	"net/http"

	sdk "code.gitea.io/sdk/gitea"

	"issuesmith/internal/forge"
)

// known maps the names of the labels that issues of the repository can bear to their ids: the
// repository's and its organization's. Names may be doubled; the repository's oldest is taken.
func (f *Forge) known(ctx context.Context) (map[string]int64, error) {
	own, res, err := pages(labelID, func(o sdk.ListOptions) ([]*sdk.Label, *sdk.Response, error) {
		return f.Client(ctx).ListRepoLabels(f.owner, f.name, sdk.ListLabelsOptions{ListOptions: o})
	})
	if err != nil {
		return nil, f.failed("listing the repository's labels", issues, res, err)
	}
	// 404 for an owner who is a person.
	shared, res, err := pages(labelID, func(o sdk.ListOptions) ([]*sdk.Label, *sdk.Response, error) {
		return f.Client(ctx).ListOrgLabels(f.owner, sdk.ListOrgLabelsOptions{ListOptions: o})
	})
	if code := status(res); err != nil && code != http.StatusNotFound && code != http.StatusForbidden {
		return nil, f.failed("listing the organization's labels", issues, res, err)
	}
	ids := make(map[string]int64, len(own)+len(shared))
	for _, list := range [][]*sdk.Label{own, shared} {
		oldest := make(map[string]int64, len(list))
		for _, l := range list {
			if id, ok := oldest[l.Name]; !ok || l.ID < id {
				oldest[l.Name] = l.ID
			}
		}
		for name, id := range oldest {
			if _, ok := ids[name]; !ok {
				ids[name] = id
			}
		}
	}
	return ids, nil
}

func labelID(l *sdk.Label) int64 { return l.ID }

// EnsureLabels makes those that neither the repository nor its organization has.
func (f *Forge) EnsureLabels(ctx context.Context, labels []forge.Label) error {
	known, err := f.known(ctx)
	if err != nil {
		return err
	}
	for _, l := range labels {
		if known[l.Name] != 0 {
			continue
		}
		made, res, err := f.Client(ctx).CreateLabel(f.owner, f.name, sdk.CreateLabelOption{
			Name: l.Name, Color: l.Color, Description: l.Description,
		})
		if err != nil {
			return f.failed("making the label "+l.Name, issues, res, err)
		}
		known[l.Name] = made.ID
	}
	return nil
}

// on lists the labels on an issue.
func (f *Forge) on(ctx context.Context, number int, doing string) ([]*sdk.Label, error) {
	all, res, err := pages(labelID, func(o sdk.ListOptions) ([]*sdk.Label, *sdk.Response, error) {
		return f.Client(ctx).GetIssueLabels(f.owner, f.name, int64(number), sdk.ListLabelsOptions{ListOptions: o})
	})
	if err != nil {
		return nil, f.failedOn(ctx, doing, fmt.Sprintf("there is no issue #%d", number), issues, res, err)
	}
	return all, nil
}

// AddLabel puts one label on an issue. One that is there already is not added again: that would start
// workflows once more.
func (f *Forge) AddLabel(ctx context.Context, number int, name string) error {
	doing := fmt.Sprintf("adding the label %s to #%d", name, number)
	there, err := f.on(ctx, number, doing)
	if err != nil {
		return err
	}
	if bears(there, name) {
		return nil
	}
	known, err := f.known(ctx)
	if err != nil {
		return err
	}
	id := known[name]
	if id == 0 {
		return fmt.Errorf("%s: neither the repository nor its organization has it: %w", doing, forge.ErrNotFound)
	}
	after, res, err := f.Client(repeatable(ctx)).AddIssueLabels(f.owner, f.name, int64(number), sdk.IssueLabelsOption{Labels: []int64{id}})
	if err != nil {
		return f.failedOn(ctx, doing, fmt.Sprintf("there is no issue #%d", number), issues, res, err)
	}
	if !bears(after, name) {
		return &forge.PermissionError{Doing: doing, Permission: issues, Detail: "the forge said yes and did not do it"}
	}
	return nil
}

// RemoveLabel takes one label off an issue, doubles of its name included; others are not touched.
func (f *Forge) RemoveLabel(ctx context.Context, number int, name string) error {
	doing := fmt.Sprintf("removing the label %s from #%d", name, number)
	there, err := f.on(ctx, number, doing)
	if err != nil {
		return err
	}
	for _, l := range there {
		if l.Name != name {
			continue
		}
		res, err := f.Client(repeatable(ctx)).DeleteIssueLabel(f.owner, f.name, int64(number), l.ID)
		if err == nil {
			continue
		}
		// Somebody else may have been faster, or a first try that seemed to fail.
		if now, e := f.on(ctx, number, doing); e == nil && !bears(now, name) {
			return nil
		}
		return f.failed(doing, issues, res, err)
	}
	return nil
}

func bears(ls []*sdk.Label, name string) bool {
	for _, l := range ls {
		if l.Name == name {
			return true
		}
	}
	return false
}
