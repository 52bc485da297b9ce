package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
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
	best, least := "", len(id)/2+1
	for _, row := range rows {
		d := distance(id, row.ID)
		if len(id) >= 6 && strings.HasPrefix(row.ID, id) {
			d = 1
		}
		if d < least {
			best, least = row.ID, d
		}
	}
	return best, nil
}

// distance is how many letters must be added, removed or exchanged to make b
// of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
