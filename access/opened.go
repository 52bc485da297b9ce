package access

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// openedAge is how long it is known that somebody had a request before him.
	openedAge = 90 * 24 * time.Hour
	// openedAtOnce is how many requests one query is about.
	openedAtOnce = 50
)

// Opened returns those of some requests that w had before him in the last 90
// days: [Directory.Look] notes it. Others' are not told.
func (d *Directory) Opened(ctx context.Context, w Who, requests []string) (map[string]bool, error) {
	out := map[string]bool{}
	if w.Space != d.o.Space {
		return out, nil
	}
	for part := range slices.Chunk(requests, openedAtOnce) {
		args := []any{d.o.Space, w.Principal.ID}
		for i := range openedAtOnce { // one text for all lengths: it is prepared once
			args = append(args, part[min(i, len(part)-1)])
		}
		err := d.list(ctx, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			out[id] = true
			return err
		}, openedQuery, args...)
		if err != nil {
			return nil, fmt.Errorf("list opened requests: %w", err)
		}
	}
	return out, nil
}

var openedQuery = `SELECT request FROM opened WHERE space = ? AND user_id = ? AND request IN (?` + strings.Repeat(`, ?`, openedAtOnce-1) + `)`
