package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/live"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/worker"
)

const serveLong = `Run the agents of a configuration, and serve people and programs over HTTP.

Everything is in this process and one data folder: the store, and a worker that
goes on with runs as soon as somebody has decided. It may be killed at any
moment: the next start takes up what it left.

The configuration is ringi.yaml in the folder ringi of the user's configuration
folder, or of the system's; or the file that --config or RINGI_CONFIG names.
docs/config.md lists all settings.`

// newServeCommand makes ringi serve.
func newServeCommand(e *env) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the agents of a configuration, and serve them",
		Long:  serveLong,
		Example: "  ringi serve\n" +
			"  ringi serve --config ringi.yaml --listen 127.0.0.1:8080",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "the configuration (default: see above)")
	for _, s := range settings {
		flags.String(s.flag, "", s.usage())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if e.store != "" || e.space != "default" {
			return usagef("serve keeps its store in its data folder, and works in the default space: say --data")
		}
		c, err := e.readConfig(file, typedFlags(cmd))
		if err != nil {
			return err
		}
		return e.serve(cmd.Context(), c)
	}
	return cmd
}

// typedFlags gives the text of a flag that was typed.
func typedFlags(cmd *cobra.Command) func(string) (string, bool) {
	return func(name string) (string, bool) {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
}

// server is a running server: what its handler works with.
type server struct {
	config *config
	ground
	agents []*agent
	// accessPath is where logins, tokens and teams are kept.
	accessPath string
	people     *directory
	hooks      *hooks // nil for none
	notices    *notices
	// clientSecret is ours at the login provider.
	clientSecret string
	demo         bool // of ringi demo: a start page says what to try
	worker       *worker.Worker
	engine       *engine.Router
	health       health
	// stopping is done when the server is to stop: long answers end.
	stopping context.Context
}

// serve opens everything, says where it listens, and works until ctx is done.
func (e *env) serve(ctx context.Context, c *config) (err error) {
	s, err := e.openServer(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close()
	first := ""
	if c.links() {
		if first, err = s.people.firstUser(ctx, "You"); err != nil {
			return fmt.Errorf("make first login: %w", err)
		}
	}
	return s.work(ctx, listener, func(url string) {
		e.printf("Ringi serves at %s\n", url)
		if first != "" {
			e.offerLogin(ctx, s, url, first)
		}
	})
}

// offerLogin shows a login link for a person, on a terminal alone.
func (e *env) offerLogin(ctx context.Context, s *server, url, user string) {
	if !isTerminal(e.out) {
		e.say("`ringi user link %s` on a terminal shows a login link.\n", user)
		return
	}
	link, ends, err := s.people.MakeLink(ctx, operator(), user)
	if err != nil {
		s.log.Warn("make login link", "error", err)
		return
	}
	e.say("Log in, once, until %s:\n  %s\n", ends.Local().Format("15:04:05"), loginURL(url, link))
}

// openServer opens store, key, people and agents. Close it.
func (e *env) openServer(ctx context.Context, c *config) (_ *server, err error) {
	if len(c.Agents) == 0 {
		return nil, e.noAgents(c)
	}
	log := e.logger(c)
	data, err := e.dataFolder(c)
	if err != nil {
		return nil, err
	}
	if err := prepareData(data); err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	s := &server{
		config: c, accessPath: filepath.Join(data, accessFile),
		worker: worker.New(worker.Options{AtOnce: int(c.Worker.AtOnce), Grace: c.grace(), Logger: log}),
	}
	s.data = data
	store, err := makeServerStore(s.storePath(), s.worker.Wake)
	if err != nil {
		return nil, err
	}
	s.ground = ground{store: store, data: data, getenv: e.getenv, log: log, feed: &live.Feed{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.keys, err = e.claim(ctx, c, store); err != nil {
		return nil, err
	}
	if err = e.openPeople(ctx, s); err != nil {
		return nil, err
	}
	if s.agents, err = openAgents(c, s.ground); err != nil {
		return nil, err
	}
	if s.engine, err = route(s.agents); err != nil {
		return nil, err
	}
	if s.notices, err = e.openNotices(ctx, c, data, func(what string, err error) { log.Warn(what, "error", err) }); err != nil {
		return nil, err
	}
	if s.hooks, err = e.openServerHooks(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *server) storePath() string { return filepath.Join(s.data, storeFile) }

// noAgents says what to write where nothing is configured.
func (e *env) noAgents(c *config) error {
	where := c.file
	if where == "" {
		where = "ringi.yaml"
		if dir, err := e.userConfigDir(); err == nil {
			where = filepath.Join(dir, "ringi", where)
		}
	}
	return usagef("no agents: name one under agents: in %s, or another file with --config; docs/config.md shows how", where)
}

// claim takes the store for this server: refuses one that a replay made,
// reads or makes the key, and records where people decide. That is only ever
// tightened here: `ringi store set decide anywhere` takes it back.
func (e *env) claim(ctx context.Context, c *config, store ringi.Store) (*sign.Keyring, error) {
	replayed, err := store.Flag(ctx, flagReplayed)
	if err != nil {
		return nil, fmt.Errorf("read flag: %w", err)
	}
	if replayed != "" {
		return nil, fmt.Errorf("open store: %w", ringi.ErrSimulated)
	}
	keys, err := e.serverKeys(ctx, c, store)
	if err != nil {
		return nil, err
	}
	if err := e.keysFit(ctx, store, keys); err != nil {
		return nil, err
	}
	if c.Decide == decideServer {
		if err := store.SetFlag(ctx, flagDecide, decideServer); err != nil {
			return nil, fmt.Errorf("set decide: %w", err)
		}
	}
	return keys, nil
}

// dataFolder is where the server keeps what it has.
func (e *env) dataFolder(c *config) (string, error) {
	if c.Data != "" {
		return filepath.Abs(c.Data)
	}
	// The first of those that systemd.exec(5) made.
	if dir, _, _ := strings.Cut(e.getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return dir, nil
	}
	dir, err := e.userStateDir()
	if err != nil {
		return "", fmt.Errorf("find data folder: %w: set data", err)
	}
	if config, _ := e.userConfigDir(); config == dir { // one folder for all: the key is beside it
		return filepath.Join(dir, "ringi", "data"), nil
	}
	return filepath.Join(dir, "ringi"), nil
}

func (e *env) logger(c *config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		level = slog.LevelInfo // checked before
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(e.err, o))
	}
	return slog.New(slog.NewTextHandler(e.err, o))
}

// close closes what openServer opened.
func (s *server) close() error {
	var errs []error
	for _, a := range s.agents {
		errs = append(errs, a.close())
	}
	if s.notices != nil {
		errs = append(errs, s.notices.close())
	}
	if s.people != nil {
		errs = append(errs, s.people.close())
	}
	return errors.Join(append(errs, s.hooks.close(), s.store.Close())...)
}

// work serves until ctx is done, or until something of it fails; then it stops
// in order: no new run, no new connection, what is in flight is finished.
func (s *server) work(ctx context.Context, listener net.Listener, say func(url string)) error {
	web, serve, err := s.web(listener)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.stopping = ctx
	if err := s.notices.dispatch(s, s.url(listener.Addr())); err != nil {
		return err
	}
	if web.Handler, err = newHandler(s); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.people.tend(ctx, func(err error) { s.log.Warn("clear people and tokens", "error", err) }) })
	wg.Go(func() { s.notices.dispatcher.Run(ctx) })
	wg.Go(func() { s.hooks.run(ctx, s) })
	var workErr, webErr error
	wg.Go(func() {
		workErr = s.worker.Run(ctx, s.store, s.engine)
		cancel(workErr)
	})
	wg.Go(func() {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			webErr = fmt.Errorf("serve: %w", err)
			cancel(webErr)
		}
	})
	s.awaitWorker(ctx)
	say(s.url(listener.Addr()))
	s.log.Info("ready", "address", listener.Addr().String(), "agents", len(s.agents), "data", s.data, "key", s.keys.SigningID(), "config", s.config.file)
	notifyManager(s.log, "READY=1")

	<-ctx.Done()
	// A second signal ends the process at once; but not one that came with the
	// first, to the process and to its group.
	time.AfterFunc(time.Second, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	notifyManager(s.log, "STOPPING=1")
	s.log.Info("stopping", "grace", s.config.grace().String())
	over, end := context.WithTimeout(context.Background(), s.config.grace())
	defer end()
	err = web.Shutdown(over)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop serving: %w", err), web.Close())
	}
	wg.Wait()
	s.log.Info("stopped")
	return errors.Join(workErr, webErr, err)
}

// awaitWorker waits until the worker works: who is told the address may ask at
// once whether the server is ready.
func (s *server) awaitWorker(ctx context.Context) {
	for begun := time.Now(); s.worker.Check() != nil && ctx.Err() == nil && time.Since(begun) < time.Second; {
		time.Sleep(time.Millisecond / 4)
	}
}

// web is the HTTP server, and what serves the listener with it.
func (s *server) web(listener net.Listener) (*http.Server, func() error, error) {
	web := &http.Server{
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	if !s.config.tls() {
		return web, func() error { return web.Serve(listener) }, nil
	}
	var err error
	web.TLSConfig, err = loadPair(s.config.TLS.CertFile, s.config.TLS.KeyFile)
	return web, func() error { return web.ServeTLS(listener, "", "") }, err
}

// url is the address as people type it.
func (s *server) url(addr net.Addr) string {
	if s.config.public != nil {
		return s.config.public.String()
	}
	scheme := "http"
	if s.config.tls() {
		scheme = "https"
	}
	return scheme + "://" + addr.String()
}

var _ worker.Engine = (*engine.Engine)(nil)
