package inbox

import (
	"net/http"

	"github.com/ringi-dev/ringi/access"
)

// Provider logs people in at an OpenID Connect provider; access/oidc has one.
// The inbox gives it the addresses /login/oidc, /login/oidc/callback and
// /login/oidc/logout below its prefix.
type Provider interface {
	// Name is the provider's, for people.
	Name() string
	// Begin sends the browser to the provider. Where it errs it has written
	// nothing.
	Begin(w http.ResponseWriter, r *http.Request) error
	// Finish takes the browser that comes back, and begins a session. It returns
	// a path of ours, where the browser goes on. Where it errs nobody was logged
	// in.
	Finish(w http.ResponseWriter, r *http.Request) (to string, err error)
	// Logout sends the browser to the provider's own log-out, once the session
	// here has ended.
	Logout(w http.ResponseWriter, r *http.Request)
}

func (in *inbox) begin(w http.ResponseWriter, r *http.Request) {
	if err := in.o.Provider.Begin(w, r); err != nil {
		in.refuse(w, r, access.Who{}, err)
	}
}

func (in *inbox) finish(w http.ResponseWriter, r *http.Request) {
	to, err := in.o.Provider.Finish(w, r)
	if err != nil {
		in.refuse(w, r, access.Who{}, err)
		return
	}
	if to == "/" {
		to = in.base + "/"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
