package ringi

import "context"

// Ledger is what limits over several calls are kept in (finding S-43): sums by
// name, in the store of the runs. What is added holds if the commit does that
// starts the call, and only then, so that two calls never both see the room
// that is there for one. A name is the caller's own, such as
// "refunds/2026-12-01"; each space has its own.
type Ledger interface {
	// Sum is what was added under a name so far; 0 for a new one.
	Sum(ctx context.Context, name string) (int64, error)
	// Add adds an amount, which may be below zero. ErrTooLarge where the sum
	// would not fit, or the name is empty or has more than 200 bytes.
	Add(ctx context.Context, name string, amount int64) error
}

// AdmittingStore is a store that keeps a ledger. The memory and SQLite stores
// are.
type AdmittingStore interface {
	Store
	// CommitAdmitted is Commit with a question as its last condition: admit is
	// asked inside the transaction, when nothing else speaks against the commit
	// and no other commit of the store can come in between, in this process or
	// another. Where it errs nothing of the commit is made, and its error is
	// given back, wrapped. It may be asked again for the same commit, over a
	// ledger that knows nothing of the first time; it must not use the store
	// itself, and the ledger no longer than it runs.
	CommitAdmitted(ctx context.Context, c *Commit, admit func(context.Context, Ledger) error) error
}
