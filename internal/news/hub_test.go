package news_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/news"
	"github.com/ringi-dev/ringi/ringitest"
)

var ana = ringi.Principal{ID: "ana", Kind: ringi.Person, Auth: "test"}

// asking makes an engine whose every run asks for one refund.
func asking(t *testing.T) *engine.Engine {
	reg := ringi.NewRegistry()
	type refund struct {
		Order string `json:"order"`
	}
	err := ringi.AddTool(reg, ringi.Tool{Name: "refund", Effect: ringi.NonIdempotentWrite}, func(context.Context, refund) (string, error) { return "done", nil })
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Registry: reg, Model: ringitest.ScriptFunc(func(ringi.ModelRequest) ringi.ModelTurn {
		return ringi.ModelTurn{Calls: []ringi.ToolCall{ringitest.Call("refund", `{"order":"a"}`)}, Finish: ringi.FinishCalls}
	})})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func ask(t *testing.T, s ringi.Service) ringi.ApprovalRequest {
	t.Helper()
	res, err := s.Run(t.Context(), ringi.RunStart{By: ana, Messages: []ringi.Message{ringi.User("Refund it.")}})
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	return res.Pending[0]
}

// counted counts what is read, and hides the feed where it is to.
type counted struct {
	ringi.Service
	feed  ringi.Feed
	reads atomic.Int64
	fails atomic.Bool
}

func (c *counted) Requests(ctx context.Context, q ringi.RequestQuery) (ringi.RequestPage, error) {
	c.reads.Add(1)
	if c.fails.Load() {
		return ringi.RequestPage{}, errors.New("down")
	}
	return c.Service.Requests(ctx, q)
}

func (c *counted) Feed(ctx context.Context, after int64, limit int) ([]ringi.FeedRow, error) {
	if c.feed == nil {
		return nil, errors.ErrUnsupported
	}
	return c.feed.Feed(ctx, after, limit)
}

func (c *counted) FeedEnd(ctx context.Context) (int64, error) {
	if c.feed == nil {
		return 0, errors.ErrUnsupported
	}
	return c.feed.FeedEnd(ctx)
}

func hub(s ringi.Service, done <-chan struct{}) *news.Hub {
	return news.New(news.Options{Service: s, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Glance: func() news.Glance { return news.Glance{Begun: time.Now()} },
		Pause: func(context.Context, news.Glance) bool {
			select {
			case <-done:
				return false
			case <-time.After(time.Second):
				return true
			}
		}})
}

// followed is a hub over an engine whose feed it has.
func followed(t *testing.T, done <-chan struct{}) (*engine.Engine, *counted, *news.Hub) {
	e := asking(t)
	s := &counted{Service: e, feed: e}
	return e, s, hub(s, done)
}

// A reader is told of each change once, with a feed and without.
func TestHubTellsOnce(t *testing.T) {
	for name, feed := range map[string]bool{"feed": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := make(chan struct{})
				defer close(done)
				e := asking(t)
				s := &counted{Service: e}
				if feed {
					s.feed = e
				}
				old := ask(t, e)
				h := hub(s, done)
				at := h.Join()
				defer h.Leave()
				if notes, _, ok := h.After(at); !ok || len(notes) != 0 {
					t.Fatalf("who joins is told of %d old things, %v", len(notes), ok)
				}
				if notes, _, whole := h.Since(time.Now().Add(-time.Second)); !whole || len(notes) != 1 || notes[0].Request.ID != old.ID {
					t.Fatalf("since a moment ago: %+v, %v", notes, whole)
				}
				if _, _, whole := h.Since(time.Now().Add(-time.Hour)); whole {
					t.Error("what was an hour ago is said to be whole")
				}
				fresh := ask(t, e)
				d, err := e.Decide(t.Context(), old.Approve(ana))
				if err != nil || d.Request.State != ringi.Granted {
					t.Fatalf("%+v %v", d, err)
				}
				time.Sleep(3 * time.Second)
				states := map[string][]ringi.RequestState{}
				notes, bell, ok := h.After(at)
				for _, n := range notes {
					if r := n.Request; r != nil {
						states[r.ID] = append(states[r.ID], r.State)
						if r.Call.Input != "" || r.Tool.Name != "" {
							t.Errorf("a note holds what was said: %+v", r)
						}
					}
				}
				if !ok || len(states[fresh.ID]) != 1 || len(states[old.ID]) != 1 || states[old.ID][0] != ringi.Granted {
					t.Errorf("told %v, %v", states, ok)
				}
				reads := s.reads.Load()
				time.Sleep(time.Minute)
				if n := s.reads.Load() - reads; n != 0 {
					t.Errorf("%d reads while nothing moved", n)
				}
				select {
				case <-bell:
					t.Error("a bell without a note")
				default:
				}
			})
		})
	}
}

// What could not be read is read later; where that is too much to keep in mind,
// readers begin anew.
func TestHubOverAStoreThatFails(t *testing.T) {
	for name, runs := range map[string]int{"few": 3, "many": 400} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := make(chan struct{})
				defer close(done)
				e, s, h := followed(t, done)
				at := h.Join()
				defer h.Leave()
				begun := time.Now()
				s.fails.Store(true)
				for range runs {
					ask(t, e)
				}
				time.Sleep(10 * time.Second)
				s.fails.Store(false)
				time.Sleep(10 * time.Second)
				notes, _, ok := h.After(at)
				if many := runs > 300; ok == many || !many && len(notes) != runs {
					t.Errorf("%d notes of %d runs, %v", len(notes), runs, ok)
				}
				if _, _, whole := h.Since(begun); runs > 300 && whole {
					t.Error("said to be whole")
				}
			})
		})
	}
}

// Without readers nobody looks, and places of before mean nothing.
func TestHubRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		defer close(done)
		e, s, h := followed(t, done)
		at := h.Join()
		h.Leave()
		time.Sleep(5 * time.Minute)
		ask(t, e)
		time.Sleep(time.Minute)
		if s.reads.Load() != 0 {
			t.Error("it looks for nobody")
		}
		h.Join()
		defer h.Leave()
		if _, _, ok := h.After(at); ok {
			t.Error("a place of before its rest is taken")
		}
	})
}
