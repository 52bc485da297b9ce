package inbox

import (
	"errors"
	"net/http"

	"github.com/ringi-dev/ringi/access"
)

type loginBody struct {
	// Link is the one-time secret; empty where somebody came without one.
	Link, To string
	Problem  string
	// Provider is the name of who logs people in; empty without one. Links says
	// that login links are taken.
	Provider string
	Links    bool
	// Out says that somebody has just logged out.
	Out bool
}

// loginPage shows the button that spends a login link. Looking at it spends
// nothing: mail programs and chats follow links (F146).
func (in *inbox) loginPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	in.showLogin(w, r, http.StatusOK, loginBody{Link: q.Get("link"), To: access.LocalPath(q.Get("to")), Out: q.Get("out") == "1"})
}

func (in *inbox) showLogin(w http.ResponseWriter, r *http.Request, status int, b loginBody) {
	b.Links = !in.o.NoLinks
	if in.o.Provider != nil {
		b.Provider = in.o.Provider.Name()
	}
	if err := in.show(w, status, access.Who{}, page{Name: "login", Title: "Log in", Count: -1, Body: b}); err != nil {
		in.refuse(w, r, access.Who{}, err)
	}
}

// login spends a link. The form has no token of a session yet; its origin is
// checked by Login.
func (in *inbox) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		in.refuse(w, r, access.Who{}, access.ErrInvalid)
		return
	}
	to := access.LocalPath(r.PostForm.Get("to"))
	err := in.auth.Login(w, r, r.PostForm.Get("link"))
	if errors.Is(err, access.ErrLink) {
		in.showLogin(w, r, http.StatusUnauthorized, loginBody{To: to,
			Problem: "This link was used already, or its ten minutes are over. Ask for a new one."})
		return
	}
	if err != nil {
		in.refuse(w, r, access.Who{}, err)
		return
	}
	if to == "/" {
		to = in.base + "/"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (in *inbox) logout(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if err := in.auth.Logout(w, r, who); err != nil {
		return err
	}
	if in.o.Provider != nil {
		return in.to(w, r, "/login?out=1")
	}
	return in.to(w, r, "/login")
}
