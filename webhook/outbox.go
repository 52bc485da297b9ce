package webhook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/outbound"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Log is what an outbox reads: the feed of a store, and what the store is.
type Log interface {
	ringi.Feed
	ID(ctx context.Context) (string, error)
}

// Runs gives the checked log of a run; an engine does.
type Runs interface {
	Events(ctx context.Context, runID string, after int64) ([]ringi.Event, error)
}

// Options say what an outbox works with. DB is needed; Log and Runs too for
// [Outbox.Run].
type Options struct {
	// DB holds the outbox's tables, which are made where they are missing. It
	// stays the caller's to close. SQLite needs _txlock=immediate, a busy_timeout
	// and synchronous FULL.
	DB      *sql.DB
	Dialect Dialect
	// Space is the space whose runs are told of; empty means "default".
	Space string
	Log   Log
	Runs  Runs
	// Endpoints are those that messages are sent to; at most [MaxEndpoints].
	Endpoints []Endpoint
	// Client sends. Nil means one that reaches public addresses over TLS, follows
	// no redirect and gives up after 10 s. Another one must follow none either.
	Client *http.Client
	// BaseURL is where people reach the inbox, for the url of a message; empty
	// leaves it out.
	BaseURL string
	// Logger is told of failures; nil means slog.Default. Addresses and secrets
	// are never in its lines.
	Logger *slog.Logger
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Look is how often the feed and the table are looked at; 0 means one second.
	Look time.Duration
	// AtOnce is how many messages are on their way to one endpoint; 0 means 4.
	AtOnce int
	// MaxWaiting is how many messages wait for one endpoint; 0 means 10,000. What
	// comes later stays in the feed, and is taken up when some have gone.
	MaxWaiting int
	// KeepDelivered and KeepDead are how long the rows of messages stay that have
	// arrived, or were given up; 0 means 7 and 30 days.
	KeepDelivered, KeepDead time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.DB == nil {
		return o, errors.New("no database")
	}
	if o.Dialect != SQLite && o.Dialect != PostgreSQL {
		return o, fmt.Errorf("unknown dialect %q", o.Dialect)
	}
	if o.Space == "" {
		o.Space = "default"
	}
	if o.Client == nil {
		var err error
		if o.Client, err = outbound.New(outbound.Options{}); err != nil {
			return o, err
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&o.Look, time.Second}, {&o.KeepDelivered, 7 * 24 * time.Hour}, {&o.KeepDead, 30 * 24 * time.Hour}} {
		if *d.v < 0 {
			return o, errors.New("a time below zero")
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	for _, n := range []struct {
		v   *int
		def int
	}{{&o.AtOnce, 4}, {&o.MaxWaiting, 10_000}} {
		if *n.v < 0 {
			return o, errors.New("a number below zero")
		}
		if *n.v == 0 {
			*n.v = n.def
		}
	}
	return o, nil
}

// Outbox tells endpoints what happens. It is safe for goroutines, and several
// processes may share its tables.
type Outbox struct {
	o         Options
	t         *tables
	endpoints map[string]*Endpoint
	bell      chan struct{} // a place is free, or more is to be read
	batch     int           // how many records are looked at for one transaction

	mu     sync.Mutex
	flying map[string]int // messages on their way, by endpoint
	wg     sync.WaitGroup
}

// Open makes the tables where they are missing, and checks the endpoints. It
// sends nothing.
func Open(ctx context.Context, o Options) (*Outbox, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open webhooks: %w", err)
	}
	if len(o.Endpoints) > MaxEndpoints {
		return nil, fmt.Errorf("open webhooks: there are %d endpoints, at most %d are served", len(o.Endpoints), MaxEndpoints)
	}
	b := &Outbox{o: o, t: &tables{db: o.DB, dialect: o.Dialect}, endpoints: map[string]*Endpoint{}, bell: make(chan struct{}, 1),
		batch: 500, flying: map[string]int{}}
	for i := range o.Endpoints {
		e := &o.Endpoints[i]
		if err := e.Check(); err != nil {
			return nil, fmt.Errorf("open webhooks: endpoint %d (%s): %w", i+1, e.Name, err)
		}
		if b.endpoints[e.Name] != nil {
			return nil, fmt.Errorf("open webhooks: two endpoints are named %s", e.Name)
		}
		b.endpoints[e.Name] = e
	}
	if err := b.t.migrate(ctx, sqltable.Time(b.now())); err != nil {
		return nil, fmt.Errorf("open webhooks: %w", err)
	}
	return b, nil
}

func (b *Outbox) now() int64 { return b.o.Now().UnixMicro() }

// Run follows the feed and sends until ctx is done; what is on its way then is
// finished and recorded. An endpoint that is new begins with what happens from
// now on. One that is no longer among the endpoints is forgotten, and what waited
// for it becomes dead letters. Nothing that an endpoint does ends Run: its error
// says that the outbox could not begin.
func (b *Outbox) Run(ctx context.Context) error {
	if b.o.Log == nil || b.o.Runs == nil {
		return errors.New("run webhooks: no log")
	}
	defer b.wg.Wait()
	if err := b.enrol(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("run webhooks: %w", err)
	}
	var pruned time.Time
	pause := b.o.Look
	for {
		err := b.step(ctx)
		if err == nil && time.Since(pruned) > time.Hour {
			pruned, err = time.Now(), b.prune(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			b.o.Logger.Warn("webhooks wait", "error", outbound.Bare(err))
			pause = min(2*pause, time.Minute)
		default:
			pause = b.o.Look
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.bell:
		case <-time.After(pause):
		}
	}
}

// step reads what is new, and sends what is due. What cannot be read does not
// keep what is there from being sent.
func (b *Outbox) step(ctx context.Context) error {
	return errors.Join(b.read(ctx), b.send(ctx))
}

func (b *Outbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// schedule is how long after a failed try the next one comes: ten in all, over
// three days (Standard Webhooks).
var schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// wait is the time after the nth try, a tenth more or less: receivers that were
// down together are not all asked at the same moment. false after the last.
func wait(tries int) (time.Duration, bool) {
	if tries > len(schedule) {
		return 0, false
	}
	d := schedule[max(tries, 1)-1]
	return d + time.Duration((rand.Float64()-0.5)/5*float64(d)), true
}
