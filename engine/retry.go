package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ringi-dev/ringi"
)

// longestRetry is the longest wait that a vendor may ask for: a run that waits
// holds its lease.
const longestRetry = time.Minute

// retryWait says whether a failed model call may pass on another try, and after
// how long. It is the one place that retries: providers and their SDKs do not.
// Of a fault that no provider named nothing is known, and it is tried again at
// once.
func retryWait(err error, attempt int) (wait time.Duration, again bool, _ error) {
	e, ok := ringi.ModelErrorOf(err)
	switch {
	case !ok:
		return 0, true, err
	case !e.Class.Retryable():
		return 0, false, err
	case e.RetryAfter > longestRetry:
		return 0, false, fmt.Errorf("asked to wait %s, longer than %s: %w", e.RetryAfter, longestRetry, err)
	case e.RetryAfter > 0:
		return e.RetryAfter, true, err
	}
	// 0.5 s, 1 s, 2 s … 8 s, spread by a quarter so that runs which failed
	// together do not come back together.
	base := 500 * time.Millisecond << min(max(attempt-1, 0), 4)
	return base - base/4 + rand.N(base/2), true, err
}

// sleep waits, or less where the context ends first.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
