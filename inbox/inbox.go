package inbox

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
)

// Options are what an inbox is made of. Service, Directory and Authenticator
// must be given.
type Options struct {
	// Service is what is shown and settled: engine.Router, or a client.
	Service ringi.Service
	// Directory knows people and teams, Authenticator who sends a request. The
	// inbox takes sessions alone: a token is refused. Give the directory to the
	// engine too, as engine.Config.Persons and Members: four eyes then count
	// people, and a decider's teams are the directory's.
	Directory     *access.Directory
	Authenticator *access.Authenticator
	// Provider logs people in, beside login links; nil: links alone. NoLinks says
	// that there are none: the directory takes none, and the page offers none.
	Provider Provider
	NoLinks  bool
	// Prefix is the path below which the handler is mounted, such as "/inbox",
	// without a slash at its end. The handler gets whole paths. Empty: "/".
	Prefix string
	// Title names the inbox; empty means "Ringi".
	Title string
	// Start offers to begin runs, of any agent of the service. Scenarios are
	// conversations that the page begins with; with any, Start is implied.
	Start     bool
	Scenarios []Scenario
	// Revealed records that somebody had masked values shown; an error shows
	// nothing. nil writes a line to Logger. Without both nothing is revealed.
	Revealed func(ctx context.Context, by ringi.Principal, requestID string, keys []string) error
	// Now is the clock of what is shown; nil means time.Now. Whether something
	// has expired is the store's to say.
	Now func() time.Time
	// Notices are how people are reached, and a page where each sets that for
	// himself; nil: nobody is.
	Notices *Notices
	// Logger takes what an operator should know; nil discards it.
	Logger *slog.Logger
	// Poll is how often the store is asked what is new while somebody listens; 0
	// means 1 s.
	Poll time.Duration
}

// Scenario is a conversation that the start page offers to begin.
type Scenario struct {
	Title string
	// Text is the first user message.
	Text string
	// Try says what a newcomer may do with what follows.
	Try string
	// Agent is the agent; empty means the first.
	Agent string
}

type inbox struct {
	o       Options
	service ringi.Service
	people  *access.Directory
	auth    *access.Authenticator
	log     *slog.Logger
	now     func() time.Time
	base    string
	pages   map[string]*template.Template
	assets  map[string]asset

	hub       *news.Hub
	listeners listeners
}

// New makes the inbox's handler. An error names what is missing.
func New(o Options) (http.Handler, error) {
	switch {
	case o.Service == nil:
		return nil, errors.New("make inbox: no service")
	case o.Directory == nil || o.Authenticator == nil:
		return nil, errors.New("make inbox: no directory or no authenticator")
	case o.Prefix != "" && (!strings.HasPrefix(o.Prefix, "/") || strings.HasSuffix(o.Prefix, "/") || access.LocalPath(o.Prefix) != o.Prefix):
		return nil, fmt.Errorf("make inbox: prefix %q is no path such as /inbox", o.Prefix)
	}
	in := &inbox{o: o, service: o.Service, people: o.Directory, auth: o.Authenticator, log: o.Logger, now: o.Now, base: o.Prefix}
	if in.now == nil {
		in.now = time.Now
	}
	if in.log == nil {
		in.log = slog.New(slog.DiscardHandler)
	}
	if in.o.Title == "" {
		in.o.Title = "Ringi"
	}
	if in.o.Poll <= 0 {
		in.o.Poll = time.Second
	}
	in.hub = in.newHub()
	in.o.Start = in.o.Start || len(in.o.Scenarios) > 0
	var err error
	if in.assets, err = loadAssets(); err != nil {
		return nil, fmt.Errorf("make inbox: %w", err)
	}
	if in.pages, err = in.loadPages(); err != nil {
		return nil, fmt.Errorf("make inbox: %w", err)
	}
	return access.Headers(in.routes()), nil
}

// handle is a page of somebody who is logged in. An error that it returns is
// shown; it has written nothing then.
type handle func(w http.ResponseWriter, r *http.Request, who access.Who) error

func (in *inbox) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+in.base+"/assets/{name}", in.asset)
	mux.HandleFunc("GET "+in.base+"/icon/{n}", in.icon)
	mux.HandleFunc("GET "+in.base+"/login", in.loginPage)
	mux.HandleFunc("POST "+in.base+"/login", in.login)
	mux.HandleFunc("GET "+in.base+"/events", in.events)
	if in.o.Provider != nil {
		mux.HandleFunc("GET "+in.base+"/login/oidc", in.begin)
		mux.HandleFunc("GET "+in.base+"/login/oidc/callback", in.finish)
		mux.HandleFunc("GET "+in.base+"/login/oidc/logout", in.o.Provider.Logout)
	}
	mux.HandleFunc("GET "+in.base+"/manifest.webmanifest", in.manifest)
	mux.HandleFunc("GET "+in.base+"/sw.js", in.worker)
	mux.HandleFunc("GET "+in.base+"/app-icon/{name}", in.appIcon)
	for pattern, h := range map[string]handle{
		"GET /{$}":               in.list,
		"POST /logout":           in.logout,
		"GET /a/{id}":            in.request,
		"POST /a/{id}/decide":    in.decide,
		"GET /a/{id}/edit":       in.editPage,
		"POST /a/{id}/edit":      in.edit,
		"POST /a/{id}/fill":      in.fill,
		"POST /a/{id}/reveal":    in.reveal,
		"POST /a/{id}/takeback":  in.takeBack,
		"POST /a/{id}/withdraw":  in.withdraw,
		"POST /a/{id}/reassign":  in.reassign,
		"POST /a/{id}/extend":    in.extend,
		"POST /a/{id}/look":      in.look,
		"POST /views":            in.keepView,
		"POST /views/forget":     in.forgetView,
		"GET /batch":             in.batchPage,
		"POST /batch":            in.batch,
		"GET /run/{id}":          in.run,
		"POST /run/{id}/cancel":  in.cancel,
		"GET /day":               in.day,
		"GET /help":              in.help,
		"GET /me":                in.me,
		"POST /me":               in.saveMe,
		"POST /me/confirm":       in.confirmMe,
		"POST /me/test":          in.tryMe,
		"POST /me/device":        in.addDevice,
		"POST /me/device/remove": in.removeDevice,
		"GET /start":             in.startPage,
		"POST /start":            in.start,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+in.base+path, in.known(h))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { in.refuse(w, r, access.Who{}, ringi.ErrNotFound) })
	return mux
}

// known asks who sends a request, and shows errors.
func (in *inbox) known(h handle) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := in.who(r)
		if errors.Is(err, ringi.ErrNoPrincipal) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			http.Redirect(w, r, in.base+"/login?to="+escapeQuery(r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		if err == nil {
			err = h(w, r, who)
		}
		if err != nil {
			in.keepRefusal(r, who, err)
			in.refuse(w, r, who, err)
		}
	}
}

// keepRefusal keeps that the table of rights refused somebody something with a
// request: what the service refuses it keeps itself (S-31).
func (in *inbox) keepRefusal(r *http.Request, who access.Who, err error) {
	verb, id := path.Base(r.URL.Path), r.PathValue("id")
	if r.Method == http.MethodPost && id != "" && verb != "look" && (errors.Is(err, access.ErrForbidden) || errors.Is(err, access.ErrHidden)) {
		in.refused(r.Context(), who, id, verb, err)
	}
}

func (in *inbox) refused(ctx context.Context, who access.Who, id, what string, err error) {
	if k, ok := in.service.(ringi.RefusalKeeper); ok && !who.Principal.IsZero() {
		k.KeepRefusal(ctx, ringi.Decision{RequestID: id, Answer: ringi.Answer(what), By: who.Principal, Channel: who.Channel(channel)}, err)
	}
}

// who is the person behind a session. Tokens are for programs, which have an
// API: pages take none, so that nothing but a browser decides here.
func (in *inbox) who(r *http.Request) (access.Who, error) {
	who, err := in.auth.FromRequest(r)
	if err != nil {
		return access.Who{}, err
	}
	if who.TokenID != "" || who.Principal.Kind != ringi.Person {
		return access.Who{}, fmt.Errorf("%w: a token is no session", ringi.ErrNoPrincipal)
	}
	return who, nil
}

// to sends a browser on after a form.
func (in *inbox) to(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, in.base+path, http.StatusSeeOther)
	return nil
}
