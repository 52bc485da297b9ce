package ringi

import "context"

// Persons knows which person stands behind a login, so that four eyes count
// people (finding S-12). access.Directory is one.
type Persons interface {
	// Persons returns, for each principal's id in order, the id of the person
	// behind it: two ids with the same answer are one person, and the empty
	// answer is nobody known. An error says that it cannot be told now; whoever
	// asks then lets nobody approve.
	Persons(ctx context.Context, ids []string) ([]string, error)
}
