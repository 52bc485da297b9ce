package ledger

import (
	"context"
	"errors"
	"maps"
	"testing"
)

var errTooLarge = errors.New("too large")

func TestAsk(t *testing.T) {
	reads := 0
	read := func(name string) (int64, error) {
		reads++
		if name == "broken" {
			return 0, errors.New("the disk is gone")
		}
		return 7, nil
	}
	ask := func(f func(context.Context, *Book) error) (map[string]int64, error) {
		return Ask(t.Context(), read, errTooLarge, f)
	}
	sums, err := ask(func(ctx context.Context, b *Book) error {
		if n, err := b.Sum(ctx, "looked at"); n != 7 || err != nil {
			t.Errorf("sum %d, %v", n, err)
		}
		return errors.Join(b.Add(ctx, "a", 3), b.Add(ctx, "a", -1), b.Add(ctx, "b", 0))
	})
	if want := (map[string]int64{"a": 9, "b": 7}); err != nil || !maps.Equal(sums, want) || reads != 3 {
		t.Errorf("sums %v after %d reads, %v", sums, reads, err)
	}
	// A store that cannot read is not what admit says, whatever it makes of it.
	_, err = ask(func(ctx context.Context, b *Book) error { b.Add(ctx, "broken", 1); return nil })
	if _, failed := errors.AsType[*Failed](err); !failed {
		t.Errorf("a sum that cannot be read: %v", err)
	}
	if _, err = ask(func(context.Context, *Book) error { panic("boom") }); err == nil {
		t.Error("a panic lets in")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = ask(func(_ context.Context, b *Book) error { return b.Add(ended, "a", 1) }); !errors.Is(err, context.Canceled) {
		t.Errorf("behind its time: %v", err)
	}
	var kept *Book
	if _, err = ask(func(_ context.Context, b *Book) error { kept = b; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := kept.Add(t.Context(), "a", 1); !errors.Is(err, errClosed) {
		t.Errorf("behind its commit: %v", err)
	}
}
