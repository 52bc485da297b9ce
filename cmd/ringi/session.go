package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
)

// The flags of a store that this command reads and sets.
const (
	flagDecide   = "decide"             // "server": people decide at the server, with a login
	flagScripted = "scripted_decisions" // "on": a script may decide, with --yes and --digest
	flagReplayed = "simulated"          // set by a replay
)

// session is an open store with an engine over it that has no tools: it reads,
// and records what people say.
type session struct {
	store  ringi.Store
	engine *engine.Engine
	keys   *sign.Keyring
	// people are those of the server whose store it is; nil without one.
	people *directory
}

func (s *session) close() {
	if s.people != nil {
		s.people.close()
	}
	s.store.Close()
}

// reading opens the store to read. A keyed store can be read without its key.
func (e *env) reading(ctx context.Context) (*session, error) { return e.session(ctx, true) }

// deciding opens the store to record a person's word. It needs the key of a
// keyed store, and is refused where people decide at the server.
func (e *env) deciding(ctx context.Context) (*session, error) {
	s, err := e.session(ctx, false)
	if err != nil {
		return nil, err
	}
	if err := decidedHere(ctx, s.store); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// decidedHere refuses a store whose requests are decided at its server. It is
// asked again right before a decision is recorded: a server may have taken the
// store while a question stood at a terminal.
func decidedHere(ctx context.Context, store ringi.Store) error {
	where, err := store.Flag(ctx, flagDecide)
	if err != nil {
		return fmt.Errorf("read flag: %w", err)
	}
	if where == decideServer {
		return errors.New("this store's requests are decided at its server, where people log in; nothing was recorded")
	}
	return nil
}

// operating opens the store for its operator. It needs the key of a keyed
// store.
func (e *env) operating(ctx context.Context) (*session, error) { return e.session(ctx, false) }

// asPerson opens the store, and records what the person who types wants.
func (e *env) asPerson(ctx context.Context, open func(context.Context) (*session, error), record func(*session, ringi.Principal) error) error {
	by, err := person()
	if err != nil {
		return err
	}
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return record(s, by)
}

func (e *env) session(ctx context.Context, readOnly bool) (*session, error) {
	name, err := e.storeName()
	if err != nil {
		return nil, err
	}
	keys, err := keyring()
	if err != nil {
		return nil, err
	}
	store, err := openStore(name)
	if err != nil {
		return nil, err
	}
	if err := e.keysFit(ctx, store, keys); err != nil {
		store.Close()
		return nil, err
	}
	people, err := peopleBeside(ctx, store, name)
	if err != nil {
		store.Close()
		return nil, err
	}
	s := &session{store: store, keys: keys, people: people}
	cfg := engine.Config{
		Store: store, Keyring: keys, Space: e.space, ReadOnly: readOnly, Now: e.now,
		Logger: slog.New(&tellHandler{e: e}),
	}
	if people != nil {
		cfg.Persons, cfg.Members = people.Directory, people.Directory
	}
	if s.engine, err = engine.New(cfg); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// storeName is the value of --store, or of RINGI_STORE.
func (e *env) storeName() (string, error) {
	if e.server != "" {
		return "", usagef("this works on a store's file: --server is not for it")
	}
	if e.store != "" {
		return e.store, nil
	}
	if name := e.getenv("RINGI_STORE"); name != "" {
		return name, nil
	}
	return "", usagef("no store: say --store sqlite:FILE, or set RINGI_STORE; for a server say --server URL")
}

// keysFit refuses keys that are not the store's. Without that an engine would
// take a store of another key, or one that was never signed, for a forged one.
func (e *env) keysFit(ctx context.Context, store ringi.Store, keys *sign.Keyring) error {
	if keys == nil {
		return nil
	}
	used, err := store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read key memory: %w", err)
	}
	for id, check := range used {
		if keys.Has(id) && keys.Check(id) == check {
			return nil
		}
	}
	if len(used) > 0 {
		return fmt.Errorf("open store: %w: TOOL_APPROVAL_SECRET holds another", ringi.ErrNoKey)
	}
	runs, err := store.Runs(ctx, ringi.RunQuery{Space: e.space, Limit: 1})
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	if len(runs) > 0 {
		return errors.New("open store: its runs were made without a key and TOOL_APPROVAL_SECRET holds one; unset it to work on this store")
	}
	return nil
}

// person is who types: the user of the operating system.
func person() (ringi.Principal, error) {
	host, err := os.Hostname()
	if err != nil {
		return ringi.Principal{}, fmt.Errorf("read host name: %w", err)
	}
	p := ringi.Principal{Kind: ringi.Person, Auth: "os"}
	uid := os.Getuid()
	u, err := user.Current()
	switch {
	case uid >= 0:
		p.ID = "os:" + strconv.Itoa(uid) + "@" + host
	case err == nil: // Windows has no numbers for users
		p.ID = "os:" + u.Uid + "@" + host
	default:
		return ringi.Principal{}, fmt.Errorf("read user: %w", err)
	}
	if err == nil {
		p.Name = u.Username
	}
	return p, nil
}

// reasonFlag is the --reason of a command whose reason people read.
func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for people")
}

// tellHandler writes what the engine warns of to standard error, a line each.
type tellHandler struct {
	e     *env
	attrs []slog.Attr
}

func (h *tellHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (h *tellHandler) Handle(_ context.Context, r slog.Record) error {
	h.e.tell("ringi: %s", r.Message)
	each := func(a slog.Attr) bool {
		h.e.tell(" %s=%s", a.Key, a.Value.String())
		return true
	}
	for _, a := range h.attrs {
		each(a)
	}
	r.Attrs(each)
	h.e.tell("\n")
	return nil
}

func (h *tellHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tellHandler{h.e, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *tellHandler) WithGroup(string) slog.Handler { return h }
