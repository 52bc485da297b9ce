package httpapi_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// Counts over HTTP are those of the service, as far as a reader may see: of more
// they are refused, for a number tells what a list would not.
func TestCountsOverHTTP(t *testing.T) {
	w := newWorld(t, setting{})
	first := w.start("uma", "shop", "refund 5 6")
	w.start("udo", "shop", "refund 7")
	w.start("uma", "shop", "teamwork 5") // asked of ben's team
	w.start("udo", "other", "teamwork 5")
	q := w.asked("ben", first)
	if got := w.decide("ben", q, `{"answer":"approve"}`); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	ctx, now := t.Context(), time.Now()
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	for _, c := range []struct {
		who     string
		q       ringi.RequestQuery
		pending int
		tallied int
	}{
		{"ada", ringi.RequestQuery{}, 4, 1},
		{"ada", ringi.RequestQuery{Tool: "teamwork"}, 2, 0},
		{"ada", ringi.RequestQuery{Agent: "other"}, 1, 0},
		{"ada", ringi.RequestQuery{Initiator: access.LocalID("udo")}, 2, 0},
		{"ada", ringi.RequestQuery{For: ringi.Principal{ID: access.LocalID("bea")}}, 2, 1},
		{"ben", ringi.RequestQuery{}, 4, 1},
		{"ben", ringi.RequestQuery{For: ringi.Principal{ID: access.LocalID("ben"), Teams: []string{"money"}}}, 4, 1},
		{"bea", ringi.RequestQuery{}, 2, 1},
		{"uma", ringi.RequestQuery{}, 2, 1},
		{"uma", ringi.RequestQuery{Initiator: access.LocalID("uma")}, 2, 1},
		{"uma", ringi.RequestQuery{Tool: "refund"}, 1, 1},
	} {
		n, err := w.client(c.who).RequestCount(ctx, c.q, 0)
		if err != nil || n != c.pending {
			t.Errorf("%s counts %d of %+v, want %d: %v", c.who, n, c.q, c.pending, err)
		}
		tally, err := w.client(c.who).RequestTally(ctx, c.q, from, to)
		if err != nil || tally.Sum().Approved != c.tallied {
			t.Errorf("%s tallies %+v of %+v, want %d: %v", c.who, tally, c.q, c.tallied, err)
		}
	}
	direct, err := w.router.RequestTally(ctx, ringi.RequestQuery{}, from, to)
	w.must(err)
	far, err := w.client("ada").RequestTally(ctx, ringi.RequestQuery{}, from, to)
	if direct.Median = direct.Median.Truncate(time.Millisecond); err != nil || far.Median != direct.Median || far.Hasty != direct.Hasty || len(far.Tools) != 1 || far.Tools[0] != direct.Tools[0] {
		t.Errorf("%+v, over HTTP %+v, %v", direct, far, err)
	}
	if n, err := w.client("ada").RequestCount(ctx, ringi.RequestQuery{}, 3); err != nil || n != 3 {
		t.Errorf("up to 3: %d %v", n, err)
	}
	if n, err := w.client("ada").RequestCount(ctx, ringi.RequestQuery{State: []ringi.RequestState{ringi.Granted, ringi.Spent}}, 0); err != nil || n != 1 {
		t.Errorf("decided: %d %v", n, err)
	}
	if _, err := w.client("ada").RequestCount(ctx, ringi.RequestQuery{Search: "PIN"}, 0); err == nil {
		t.Error("a search is counted")
	}
	for who, path := range map[string]string{
		"uma": "?initiator=local:udo", "ben": "?for=local:bea", "bea": "?for_team=money", "bot2": "", "nil": "", "aud": "",
	} {
		if got := w.do(who, "GET", "/v1/approval-count"+path, ""); got.status != http.StatusForbidden {
			t.Errorf("%s %s: %d %s", who, path, got.status, got.body)
		}
	}
	wants(t, w.do("ada", "GET", "/v1/approval-tally?from=2001-01-01T00:00:00Z&to=2003-01-01T00:00:00Z", ""), 422, "invalid-request")
	bare := newWorld(t, setting{idle: true, service: func(s ringi.Service) ringi.Service { return struct{ ringi.Service }{s} }})
	if _, err := bare.client("ada").RequestCount(ctx, ringi.RequestQuery{}, 0); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("a service that counts nothing: %v", err)
	}
}
