// Package ledger holds what the stores' ledgers have in common: sums that are
// read once, changed in memory, and written by the store where the commit is.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"unicode/utf8"
)

// Ask asks admit over a ledger, and returns the sums that it changed, by name.
// read gives what a store holds; it is not called once Ask has returned, and
// its failure is Failed, whatever admit makes of it. tooLarge is the caller's
// error for a sum that does not fit, and for a bad name.
func Ask(ctx context.Context, read func(name string) (int64, error), tooLarge error,
	admit func(context.Context, *Book) error) (sums map[string]int64, err error) {
	b := &Book{read: read, tooLarge: tooLarge, sums: map[string]int64{}, changed: map[string]bool{}}
	err = call(ctx, b, admit)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true // one that was given up may still run
	if b.failed != nil {
		return nil, &Failed{b.failed}
	}
	if err != nil {
		return nil, err
	}
	for name := range b.sums {
		if !b.changed[name] {
			delete(b.sums, name)
		}
	}
	return b.sums, nil
}

// call keeps a panic out of the store.
func call(ctx context.Context, b *Book, admit func(context.Context, *Book) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return admit(ctx, b)
}

// Failed says that the store could not read a sum.
type Failed struct{ Err error }

func (e *Failed) Error() string { return "read ledger: " + e.Err.Error() }
func (e *Failed) Unwrap() error { return e.Err }

// Book is the ledger of one commit. It is safe for goroutines.
type Book struct {
	mu       sync.Mutex
	read     func(string) (int64, error)
	tooLarge error
	sums     map[string]int64
	changed  map[string]bool
	failed   error
	closed   bool
}

var errClosed = errors.New("the ledger's commit is over")

// Sum returns a sum with what this commit added.
func (b *Book) Sum(ctx context.Context, name string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum(ctx, name)
}

// Add adds an amount.
func (b *Book) Add(ctx context.Context, name string, amount int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum, err := b.sum(ctx, name)
	if err != nil {
		return err
	}
	if amount > 0 && sum > math.MaxInt64-amount || amount < 0 && sum < math.MinInt64-amount {
		return fmt.Errorf("%w: sum %q", b.tooLarge, name)
	}
	b.sums[name], b.changed[name] = sum+amount, true
	return nil
}

func (b *Book) sum(ctx context.Context, name string) (int64, error) {
	switch {
	case b.closed:
		return 0, errClosed
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case name == "" || len(name) > 200 || !utf8.ValidString(name):
		return 0, fmt.Errorf("%w: name of a sum", b.tooLarge)
	}
	if sum, known := b.sums[name]; known {
		return sum, nil
	}
	sum, err := b.read(name)
	if err != nil {
		b.failed = err
		return 0, err
	}
	b.sums[name] = sum
	return sum, nil
}
