package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/httpapi"
	masking "github.com/ringi-dev/ringi/internal/mask"
)

// desk is where requests are read and settled: over a store's file, or at a
// server. A command speaks to it alone, so that it is the same command at both.
type desk interface {
	ringi.Service
	// typist is who types: what he settles is recorded as his.
	typist() ringi.Principal
	// space names the space that is worked in.
	space() string
	// scripts reports whether --yes may answer here.
	scripts(ctx context.Context) (bool, error)
	// reveal returns a request with its masked values in clear.
	reveal(ctx context.Context, r ringi.ApprovalRequest) (ringi.ApprovalRequest, error)
	// ids lists some requests, to find the one nearest to a mistyped id.
	ids(ctx context.Context) ([]string, error)
	close()
}

// looking opens the desk to read.
func (e *env) looking(ctx context.Context) (desk, error) {
	return e.desk(ctx, e.reading)
}

// settling opens the desk to record a person's word.
func (e *env) settling(ctx context.Context) (desk, error) {
	return e.desk(ctx, e.deciding)
}

func (e *env) desk(ctx context.Context, open func(context.Context) (*session, error)) (desk, error) {
	address, err := e.serverAddress()
	if err != nil {
		return nil, err
	}
	if address != "" {
		return e.serverDesk(ctx, address)
	}
	by, err := person()
	if err != nil {
		return nil, err
	}
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return &storeDesk{Service: s.engine, s: s, by: by, in: e.space}, nil
}

// at runs a command at a desk, and closes it.
func (e *env) at(ctx context.Context, open func(context.Context) (desk, error), do func(desk) error) error {
	d, err := open(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	return do(d)
}

// storeDesk is a desk over a store's file: who types is the user of the
// operating system, and sees what the file holds.
type storeDesk struct {
	ringi.Service
	s  *session
	by ringi.Principal
	in string
}

func (d *storeDesk) typist() ringi.Principal { return d.by }
func (d *storeDesk) space() string           { return d.in }
func (d *storeDesk) close()                  { d.s.close() }

// Decide records a decision, where that is still done here.
func (d *storeDesk) Decide(ctx context.Context, said ringi.Decision) (ringi.Settled, error) {
	if err := decidedHere(ctx, d.s.store); err != nil {
		return ringi.Settled{}, err
	}
	return d.Service.Decide(ctx, said)
}

func (d *storeDesk) scripts(ctx context.Context) (bool, error) {
	on, err := d.s.store.Flag(ctx, flagScripted)
	return on == "on", err
}

func (d *storeDesk) reveal(_ context.Context, r ringi.ApprovalRequest) (ringi.ApprovalRequest, error) {
	return r, nil
}

func (d *storeDesk) ids(ctx context.Context) ([]string, error) {
	rows, err := d.s.store.Requests(ctx, ringi.RequestQuery{Space: d.in, State: requestStates, Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = row.ID
	}
	return out, nil
}

// serverDesk is a desk at a server: who types is whose the token is.
type serverDesk struct {
	*httpapi.Client
	address string
	me      httpapi.Me
}

// serverDesk opens the desk at a server, and asks who the token is.
func (e *env) serverDesk(ctx context.Context, address string) (*serverDesk, error) {
	if e.space != "default" {
		return nil, usagef("--space is for a store: at a server the token has a space")
	}
	token, err := e.token()
	if err != nil {
		return nil, err
	}
	client, err := httpapi.NewClient(address, token)
	if err != nil {
		return nil, usagef("%w", err)
	}
	me, err := client.Me(ctx)
	if err != nil {
		return nil, err
	}
	return &serverDesk{Client: client, address: address, me: me}, nil
}

func (d *serverDesk) typist() ringi.Principal {
	return ringi.Principal{ID: d.me.ID, Name: d.me.Name, Kind: d.me.Kind, Teams: d.me.Teams}
}

func (d *serverDesk) space() string { return d.me.Space }
func (d *serverDesk) close()        {}

// scripts: an admin granted the token's scope decide, and that is the leave.
func (d *serverDesk) scripts(context.Context) (bool, error) { return true, nil }

// reveal asks the server, which records it, where something is masked.
func (d *serverDesk) reveal(ctx context.Context, r ringi.ApprovalRequest) (ringi.ApprovalRequest, error) {
	if !strings.Contains(string(r.Call.Input)+string(r.Call.Raw)+string(r.Proposed), masking.Mark) {
		return r, nil
	}
	shown, err := d.Reveal(ctx, r.ID)
	if err != nil {
		return r, err
	}
	r.Call.Input, r.Call.Raw, r.Proposed = ringi.Input(shown.Input), ringi.Input(shown.Raw), ringi.Input(shown.Proposed)
	return r, nil
}

func (d *serverDesk) ids(ctx context.Context) ([]string, error) {
	page, err := d.Requests(ctx, ringi.RequestQuery{State: requestStates, Limit: 200})
	if err != nil {
		return nil, err
	}
	out := make([]string, len(page.Requests))
	for i, r := range page.Requests {
		out[i] = r.ID
	}
	return out, nil
}
