package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/httpapi"
	"github.com/ringi-dev/ringi/inbox"
	"github.com/ringi-dev/ringi/internal/backoffice"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// This file is the only one that names concrete stores, tools and handlers, and
// where keys come from.

// makeStore opens the store that a --store value names, and makes it where it
// is missing: memory, or sqlite:FILE.
func makeStore(name string) (ringi.Store, error) {
	if name == "memory" {
		return memory.New(memory.Options{}), nil
	}
	path, err := sqlitePath(name)
	if err != nil {
		return nil, err
	}
	return openSQLite(path)
}

// openStore opens a store that is there already: a mistyped name makes none.
func openStore(name string) (ringi.Store, error) {
	if name == "memory" {
		return nil, usagef("the memory store lives in another process and ends with it: say --store sqlite:FILE")
	}
	path, err := sqlitePath(name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open store: there is no file %s", path)
	}
	return openSQLite(path)
}

func sqlitePath(name string) (string, error) {
	path, ok := strings.CutPrefix(name, "sqlite:")
	if !ok || path == "" {
		return "", usagef("unknown store %q: say memory or sqlite:FILE", name)
	}
	return path, nil
}

func openSQLite(path string) (ringi.Store, error) {
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return nil, asCorrupt(err)
	}
	return s, nil
}

// asCorrupt says of a store's error that the log is broken, where it says so.
func asCorrupt(err error) error {
	if isDamaged(err) {
		return fmt.Errorf("%w: %w", ringi.ErrCorrupt, err)
	}
	return err
}

// isDamaged reports whether a store's error says that its file is not what a
// store wrote: SQLite's SQLITE_CORRUPT (11) and SQLITE_NOTADB (26), the low
// byte of the code (sqlite.org/rescode.html).
func isDamaged(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && (e.Code()&0xff == 11 || e.Code()&0xff == 26)
}

// keyring reads the keys of the process; nil where it has none.
func keyring() (*sign.Keyring, error) {
	k, err := sign.FromEnv()
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return k, nil
}

// toolSets are the sets of tools that are built in, by name: each opens its
// tools over a folder of the agent's own, and has a model that demonstrates
// them.
var toolSets = map[string]func(dir string, reg *ringi.Registry) (demo ringi.Model, closing func() error, err error){
	"backoffice": func(dir string, reg *ringi.Registry) (ringi.Model, func() error, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, err
		}
		office, err := backoffice.Open(filepath.Join(dir, "office.db"))
		if err != nil {
			return nil, nil, err
		}
		if err := office.Register(reg); err != nil {
			return nil, nil, errors.Join(err, office.Close())
		}
		return backoffice.Model(), office.Close, nil
	},
	"shop": func(_ string, reg *ringi.Registry) (ringi.Model, func() error, error) {
		return agentModel{}, nil, newShop().register(reg)
	},
}

func toolSetNames() string {
	return strings.Join(slices.Sorted(maps.Keys(toolSets)), ", ")
}

// openAccessDB opens the database of people and tokens.
func openAccessDB(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?"+access.SQLiteParams)
}

// makeServerStore opens the server's store, and makes it where it is missing.
// woken is told of every run that becomes runnable.
func makeServerStore(path string, woken func(space, runID string)) (ringi.Store, error) {
	s, err := sqlite.Open(path, sqlite.Options{Woken: woken})
	if err != nil {
		return nil, asCorrupt(err)
	}
	return s, nil
}

// newHandler makes the server's handler: what people and programs reach it by.
func newHandler(s *server) (http.Handler, error) {
	proxies := access.Proxies(s.config.proxies)
	secure := s.config.tls() || s.config.public != nil && s.config.public.Scheme == "https"
	auth, err := access.NewAuthenticator(s.people.Directory, access.AuthOptions{Secure: secure, Proxies: proxies})
	if err != nil {
		return nil, fmt.Errorf("make authenticator: %w", err)
	}
	box := inbox.Options{Service: s.engine, Directory: s.people.Directory, Authenticator: auth, Start: true, Logger: s.log,
		Revealed: s.people.NoteReveal, Notices: s.notices.inbox(), NoLinks: !s.config.links()}
	if box.Provider, err = loginProvider(s, auth); err != nil {
		return nil, err
	}
	if s.demo {
		box.Scenarios = scenarios()
	}
	pages, err := inbox.New(box)
	if err != nil {
		return nil, fmt.Errorf("make inbox: %w", err)
	}
	limiter := access.NewLimiter(access.LimiterOptions{})
	o := httpapi.Options{Service: s.engine, Directory: s.people.Directory, Authenticator: auth, Proxies: proxies, Limiter: limiter,
		Verify: s.verify, Logger: s.log, Done: s.stopping.Done()}
	if s.keys != nil {
		secret, err := s.keys.Sign(sign.PurposeCursor, "httpapi")
		if err != nil {
			return nil, fmt.Errorf("make API: %w", err)
		}
		o.Secret = []byte(secret)
	}
	if changes, ok := s.store.(ringi.ChangeTeller); ok {
		o.Changed = changes.Changed
	}
	api, err := httpapi.New(o)
	if err != nil {
		return nil, fmt.Errorf("make API: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	guard := func(next http.Handler) http.Handler {
		return access.Headers(access.Hosts(s.config.hosts()).Guard(next))
	}
	mux.Handle("/v1/", guard(api)) // it counts requests itself
	if err := s.mountChat(mux, auth, func(h http.Handler) http.Handler { return guard(limiter.Guard(proxies, h)) }); err != nil {
		return nil, err
	}
	mux.Handle("/", guard(limiter.Guard(proxies, pages)))
	return mux, nil
}

// verify is the engine's check of a run, in the API's words.
func (s *server) verify(ctx context.Context, runID string) (httpapi.Verification, error) {
	v, err := s.engine.Verify(ctx, runID)
	return httpapi.Verification{RunID: v.RunID, Records: v.Records, Erased: v.Erased, Requests: v.Requests, Decisions: v.Decisions,
		Signed: v.Signed, Broken: v.Broken}, err
}

// scenarios are what the demo's start page offers.
func scenarios() []inbox.Scenario {
	var out []inbox.Scenario
	for _, s := range backoffice.Scenarios() {
		out = append(out, inbox.Scenario{Title: s.Title, Text: s.Text, Try: s.Try})
	}
	return out
}

// route is the server's agents as one service: a run is its agent's.
func route(agents []*agent) (*engine.Router, error) {
	engines := make([]*engine.Engine, len(agents))
	for i, a := range agents {
		engines[i] = a.engine
	}
	return engine.Route(engines...)
}
