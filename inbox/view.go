package inbox

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/ringi-dev/ringi/access"
)

// kept lists the views that somebody keeps, and says which of them this list is.
// What is kept is read as an address is: it leads nowhere but to a list.
func (in *inbox) kept(ctx context.Context, who access.Who, b *listBody) error {
	views, err := in.people.Views(ctx, who)
	if err != nil {
		return err
	}
	here := b.at(in.base)
	if _, query, asks := strings.Cut(here, "?"); asks {
		b.Address = query
	}
	for _, v := range views {
		q, err := url.ParseQuery(v.Query)
		if err != nil {
			continue
		}
		of := listOf(who, q)
		t := tab{v.Name, of.at(in.base), of.at(in.base) == here}
		if t.Current {
			b.Name = v.Name
		}
		b.Kept = append(b.Kept, t)
	}
	return nil
}

// keepView keeps a list under a name.
func (in *inbox) keepView(w http.ResponseWriter, r *http.Request, who access.Who) error {
	q, err := url.ParseQuery(r.PostForm.Get("query"))
	if err != nil {
		q = url.Values{}
	}
	b := listOf(who, q)
	path := b.at("")
	_, query, _ := strings.Cut(path, "?")
	err = in.people.KeepView(r.Context(), who, access.View{Name: strings.TrimSpace(typed(r, "name")), Query: query})
	if errors.Is(err, access.ErrInvalid) {
		return in.showList(w, r, who, http.StatusUnprocessableEntity, q, "The view was not kept: give it a name of at most 40 characters, and keep at most 20.")
	}
	if err != nil {
		return err
	}
	return in.to(w, r, path)
}

// forgetView forgets one, and shows the plain list.
func (in *inbox) forgetView(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if err := in.people.DropView(r.Context(), who, r.PostForm.Get("name")); err != nil {
		return err
	}
	return in.to(w, r, "/")
}
