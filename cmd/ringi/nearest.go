package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/nearest"
)

// request reads one request. Where there is none of that id it names the
// nearest: a mistyped id decides nothing.
func (e *env) request(ctx context.Context, d desk, id string) (ringi.ApprovalRequest, error) {
	r, err := d.Request(ctx, id)
	if !errors.Is(err, ringi.ErrNotFound) {
		return r, err
	}
	near, err := nearestRequest(ctx, d, id)
	if err != nil {
		return r, err
	}
	if near == "" {
		return r, fmt.Errorf("there is no request %s in space %s", id, d.space())
	}
	return r, fmt.Errorf("there is no request %s in space %s; the nearest is %s", id, d.space(), near)
}

// nearestRequest finds the request whose id is most like a mistyped one; ""
// where none is like it.
func nearestRequest(ctx context.Context, d desk, id string) (string, error) {
	ids, err := d.ids(ctx)
	if err != nil {
		return "", err
	}
	return nearest.Of(id, slices.Values(ids)), nil
}
