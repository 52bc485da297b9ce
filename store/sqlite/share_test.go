//go:build unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

const (
	shareWriters = 4  // a process
	shareCommits = 60 // a writer, on its own run and on the common one
)

// share commits without a pause: on runs of its own, and on one that all
// processes write, where a conflict is read again.
func share(ctx context.Context, s *Store, name string) error {
	errs := make([]error, shareWriters)
	var wg sync.WaitGroup
	for i := range shareWriters {
		wg.Go(func() { errs[i] = shareOne(ctx, s, fmt.Sprintf("run_%s_%d", name, i)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func shareOne(ctx context.Context, s *Store, run string) error {
	c := first(run)
	c.Row.Head = c.Records[0].Hash
	if err := s.Commit(ctx, c); err != nil {
		return err
	}
	for n := int64(0); n < shareCommits; n++ {
		if err := s.Commit(ctx, step(run, 1+2*n)); err != nil {
			return err
		}
		for {
			row, err := s.Row(ctx, "default", "run_common")
			if err != nil {
				return err
			}
			err = s.Commit(ctx, step("run_common", row.Seq))
			if err == nil {
				break
			}
			if !errors.Is(err, ringi.ErrConflict) {
				return err
			}
		}
	}
	return nil
}

func shareChild(args []string) error {
	s, err := Open(args[0], Options{})
	if err != nil {
		return err
	}
	return errors.Join(share(context.Background(), s, args[1]), s.Close())
}

// Three processes write one file at once: every commit is there once, and
// nobody starves.
func TestProcessesOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openTest(t, path, Options{})
	c := first("run_common")
	c.Row.Head = c.Records[0].Hash
	commit(t, s, c)
	start := time.Now()
	var wg sync.WaitGroup
	took := make([]time.Duration, 3)
	for i := range took {
		wg.Go(func() {
			if i == 0 {
				if err := share(t.Context(), s, "0"); err != nil {
					t.Error(err)
				}
			} else if out, err := childCommand("share", path, strconv.Itoa(i)).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			took[i] = time.Since(start)
		})
	}
	wg.Wait()
	t.Logf("the processes took %v", took)
	const each = shareWriters * shareCommits
	if err := whole(t.Context(), s, "run_common", 1+2*3*each); err != nil {
		t.Error(err)
	}
	for p := range 3 {
		for i := range shareWriters {
			if err := whole(t.Context(), s, fmt.Sprintf("run_%d_%d", p, i), 1+2*shareCommits); err != nil {
				t.Error(err)
			}
		}
	}
	if err := intact(s); err != nil {
		t.Error(err)
	}
}
