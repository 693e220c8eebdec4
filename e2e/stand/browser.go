package stand

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
)

// browser is a client with the cookies of a signed-in person. Gitea 1.26 checks
// where a form comes from by the browser's own headers, which a client without
// them passes; it has no form token.
func browser(ctx context.Context, base string, p *Person) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Jar: jar}
	if err := postForm(ctx, client, base+"/user/login", url.Values{"user_name": {p.Name}, "password": {p.Password}}); err != nil {
		return nil, err
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if len(jar.Cookies(u)) == 0 {
		return nil, errors.New("signing in as " + p.Name + " set no cookie")
	}
	return client, nil
}
