package aisdk_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/aisdk"
)

// unhurried is a service whose second start comes when the first run has ended:
// as slow as a busy server may be.
type unhurried struct {
	ringi.Service
	looked, begun atomic.Int32
	first         atomic.Value // the run
}

func (u *unhurried) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	rows, err := u.Service.Runs(ctx, q)
	u.looked.Add(1)
	return rows, err
}

func (u *unhurried) Enqueue(ctx context.Context, s ringi.RunStart) (*ringi.Result, error) {
	until := time.Now().Add(2 * time.Second)
	if u.begun.Add(1) == 1 {
		for u.looked.Load() < 2 && time.Until(until) > 1700*time.Millisecond { // for the other to look as well
			time.Sleep(time.Millisecond)
		}
		res, err := u.Service.Enqueue(ctx, s)
		if err == nil {
			u.first.Store(res.RunID)
		}
		return res, err
	}
	for time.Now().Before(until) {
		if id, ok := u.first.Load().(string); ok {
			if row, err := u.Service.Row(ctx, id); err == nil && row.Status.Final() {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
	return u.Service.Enqueue(ctx, s)
}

// A message that is sent twice at the same moment is one run, however the
// two are dealt with.
func TestPost_TwiceAtOnceIsOneRun(t *testing.T) {
	slow := &unhurried{}
	s := newShop(t, opened{options: func(o *aisdk.Options) { slow.Service, o.Service = o.Service, slow }})
	var wg sync.WaitGroup
	var taken, refused atomic.Int32
	for range 2 {
		u := s.user("ana", "chat-1")
		u.messages = []map[string]any{{"id": "m", "role": "user", "parts": []any{map[string]any{"type": "text", "text": "hello"}}}}
		wg.Go(func() {
			switch r := u.post("submit-message"); {
			case r.status == 200:
				taken.Add(1)
			case r.status == 409 && (r.code == "behind" || r.code == "run_open"):
				refused.Add(1)
			default:
				t.Errorf("%d %s", r.status, r.text)
			}
		})
	}
	wg.Wait()
	if n := s.Prompted("hello"); n != 1 || taken.Load() != 1 || refused.Load() != 1 {
		t.Errorf("the model was asked %d times; %d were taken, %d refused", n, taken.Load(), refused.Load())
	}
}
