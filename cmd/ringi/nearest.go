package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/nearest"
)

// request reads one request. Where there is none of that id it names the
// nearest: a mistyped id decides nothing.
func (e *env) request(ctx context.Context, s *session, id string) (ringi.ApprovalRequest, error) {
	r, err := s.engine.Request(ctx, id)
	if !errors.Is(err, ringi.ErrNotFound) {
		return r, err
	}
	near, err := nearestRequest(ctx, s, e.space, id)
	if err != nil {
		return r, err
	}
	if near == "" {
		return r, fmt.Errorf("there is no request %s in space %s", id, e.space)
	}
	return r, fmt.Errorf("there is no request %s in space %s; the nearest is %s", id, e.space, near)
}

// nearestRequest finds the request whose id is most like a mistyped one; ""
// where none is like it.
func nearestRequest(ctx context.Context, s *session, space, id string) (string, error) {
	rows, err := s.store.Requests(ctx, ringi.RequestQuery{Space: space, State: requestStates, Limit: 1000})
	if err != nil {
		return "", fmt.Errorf("list requests: %w", err)
	}
	return nearest.Of(id, func(yield func(string) bool) {
		for _, row := range rows {
			if !yield(row.ID) {
				return
			}
		}
	}), nil
}
