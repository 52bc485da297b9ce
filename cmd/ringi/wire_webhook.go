package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ringi-dev/ringi/internal/outbound"
	"github.com/ringi-dev/ringi/webhook"
)

// webhookFile is the file of the data folder that holds what receivers are to
// be told.
const webhookFile = "webhook.db"

// hooks are the server's webhooks, open.
type hooks struct {
	*webhook.Outbox
	db *sql.DB
}

// openServerHooks opens the webhooks of a server; nil where there are none and
// never were.
func (e *env) openServerHooks(ctx context.Context, s *server) (*hooks, error) {
	path := filepath.Join(s.data, webhookFile)
	if _, err := os.Lstat(path); len(s.config.Webhooks) == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	log, ok := s.store.(webhook.Log)
	if !ok {
		return nil, errors.New("open webhooks: the store has no feed")
	}
	endpoints, err := e.endpoints(s.config)
	if err != nil {
		return nil, err
	}
	return openHooks(ctx, path, s.config, webhook.Options{Log: log, Runs: s.engine, Endpoints: endpoints, Logger: s.log})
}

// openHooks opens the table of messages, and makes it where it is missing: a
// file that its owner alone may read.
func openHooks(ctx context.Context, path string, c *config, o webhook.Options) (*hooks, error) {
	if err := makeSecret(path, nil); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	if err := checkGuarded(path, onlyOursRead); err != nil {
		return nil, fmt.Errorf("open webhooks: %w", err)
	}
	var err error
	if o.Client, err = outbound.New(c.outboundOptions()); err != nil {
		return nil, fmt.Errorf("open webhooks: %w", err)
	}
	o.BaseURL = c.base()
	if o.DB, err = openAccessDB(path); err != nil {
		return nil, fmt.Errorf("open webhooks: %w", err)
	}
	box, err := webhook.Open(ctx, o)
	if err != nil {
		return nil, errors.Join(err, o.DB.Close())
	}
	return &hooks{box, o.DB}, nil
}

// run tells receivers what happens until ctx is done. What goes wrong with them
// is logged, and does not concern the rest of the server.
func (h *hooks) run(ctx context.Context, s *server) {
	if h == nil {
		return
	}
	for ctx.Err() == nil {
		err := h.Run(ctx)
		if err == nil {
			return
		}
		s.log.Error("webhooks stand still", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
	}
}

func (h *hooks) close() error {
	if h == nil {
		return nil
	}
	return h.db.Close()
}
