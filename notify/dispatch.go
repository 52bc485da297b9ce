package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// Source is where requests are found: a [ringi.Store]. Its rows are an index;
// what a notice says comes from Service.
type Source interface {
	Requests(ctx context.Context, q ringi.RequestQuery) ([]ringi.RequestRow, error)
	Request(ctx context.Context, space, id string) (ringi.RequestRow, error)
}

// Service reads a request from its checked log, and hands one over.
type Service interface {
	Request(ctx context.Context, id string) (ringi.ApprovalRequest, error)
	Reassign(ctx context.Context, requestID string, to ringi.Deciders, by ringi.Principal, reason string) (ringi.Settled, error)
}

// Options are what a dispatcher is made of. Book, Store, Service, Directory and
// PublicURL must be given.
type Options struct {
	Book      *Book
	Store     Source
	Service   Service
	Directory *access.Directory
	// Channels are the ways that there are.
	Channels map[Channel]Notifier
	// PublicURL is where people reach the inbox, for links.
	PublicURL string
	// Escalations say, by agent, when somebody is reminded.
	Escalations map[string]Escalation
	// Look is how often new requests are looked for; 0 means 2 s.
	Look time.Duration
	// Gather is how long a notice waits for more of its run; 0 means 3 s.
	Gather time.Duration
	// Timeout is how long one sending may take; 0 means 15 s; at most 45 s.
	Timeout time.Duration
	// GiveUp is how long a notice is tried; 0 means 24 hours.
	GiveUp time.Duration
	// Logger takes what an operator should know; nil discards it.
	Logger *slog.Logger
}

// Dispatcher tells people what waits for them.
type Dispatcher struct {
	o     Options
	log   *slog.Logger
	bells map[Channel]chan struct{}

	// Of the goroutine that looks alone.
	mark  time.Time            // the newest request that was seen
	known map[string]time.Time // requests that were seen lately
	later map[string]bool      // those that could not be read
	tended,
	pruneFrom time.Time

	mu     sync.Mutex
	people []access.User
	asOf   time.Time
	tries  map[string][]time.Time // tests of late, by user
}

// New makes a dispatcher. An error names what is missing.
func New(o Options) (*Dispatcher, error) {
	u, err := url.Parse(o.PublicURL)
	switch {
	case o.Book == nil || o.Store == nil || o.Service == nil || o.Directory == nil:
		return nil, errors.New("make dispatcher: book, store, service and directory must be given")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("make dispatcher: links need a public address, such as https://ringi.example.org")
	case o.Timeout > sendLease-15*time.Second:
		return nil, fmt.Errorf("make dispatcher: a sending takes at most %s", sendLease-15*time.Second)
	}
	for d, def := range map[*time.Duration]time.Duration{&o.Look: 2 * time.Second, &o.Gather: 3 * time.Second, &o.Timeout: 15 * time.Second, &o.GiveUp: 24 * time.Hour} {
		if *d < 0 {
			return nil, errors.New("make dispatcher: a time below zero")
		}
		if *d == 0 {
			*d = def
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	d := &Dispatcher{o: o, log: o.Logger, bells: map[Channel]chan struct{}{}, known: map[string]time.Time{}, later: map[string]bool{}}
	for c := range o.Channels {
		d.bells[c] = make(chan struct{}, 1)
	}
	return d, nil
}

// Has reports whether a channel is there.
func (d *Dispatcher) Has(c Channel) bool { return d.o.Channels[c] != nil }

// Run looks and sends until ctx is done. What was not sent then is sent by the
// next one.
func (d *Dispatcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for c := range d.o.Channels {
		wg.Go(func() { d.deliver(ctx, c) })
	}
	tick := time.NewTicker(d.o.Look)
	defer tick.Stop()
	for {
		d.step(ctx)
		select {
		case <-ctx.Done():
			wg.Wait()
			return
		case <-tick.C:
		}
	}
}

// step looks once, and writes what is due.
func (d *Dispatcher) step(ctx context.Context) {
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"look for requests", d.look}, {"remind", d.remind}, {"hand over", d.handOver}, {"write notices", d.settleDue}, {"tend notices", d.tend},
	} {
		if err := part.do(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn(part.what, "error", err)
		}
	}
	for _, bell := range d.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

func (d *Dispatcher) space() string { return d.o.Book.o.Space }
