package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// S-31: whoever refuses, the table of rights, this API or the engine, one
// attempt is kept beside the chain; the run's log says nothing of it.
func TestS31_EveryRefusalIsKeptOnce(t *testing.T) {
	var store ringi.Store
	w := newWorld(t, setting{engine: func(c *engine.Config) { store = c.Store }})
	r := w.start("uma", "shop", "teamwork 5") // asked of a team
	q := w.asked("ada", r)
	before, err := store.Load(t.Context(), "default", r.RunID)
	w.must(err)
	base := "/v1/approvals/" + q.ID + "/"
	approve := `{"answer":"approve","digest":"` + q.Digest + `"}`
	kept := 0
	for _, c := range []struct {
		who, path, body, match string
		status                 int
		kind, by               string
	}{
		{"uma", base + "decisions", approve, q.tag(), 403, "refused_approve", "local:uma"},
		{"bot", base + "decisions", approve, q.tag(), 403, "refused_approve", "client:bot"},
		{"udo", base + "decisions", `{"answer":"deny","digest":"x"}`, q.tag(), 403, "refused_deny", "local:udo"},
		{"ben", base + "decisions", approve, `"x.pending"`, 412, "refused_approve", "local:ben"},
		{"ben", base + "decisions", approve, "", 428, "refused_approve", "local:ben"},
		{"ben", base + "decisions", `{"answer":"approve","digest":"old"}`, q.tag(), 409, "refused_approve", "local:ben"}, // the engine's
		{"ben", base + "decisions", `{"answer":"edit","digest":"` + q.Digest + `","input":{"amount":5,"pin":"[masked]"}}`, q.tag(), 422, "refused_edit", "local:ben"},
		{"uma", base + "take-back", `{}`, "", 403, "refused_take_back", "local:uma"},
		{"ben", base + "take-back", `{}`, "", 422, "refused_take_back", "local:ben"}, // the engine's
		{"uma", base + "reassignment", `{"people":["local:uma"]}`, "", 403, "refused_reassign", "local:uma"},
		{"uma", base + "extension", `{"until":"2100-01-01T00:00:00Z"}`, "", 403, "refused_extend", "local:uma"},
		{"udo", base + "withdrawal", `{}`, "", 404, "refused_withdraw", "local:udo"},
		{"ada", base + "reveal", `{}`, "", 403, "refused_reveal", "local:ada"},
		{"bot", "/v1/approval-batches", `{"items":[{"id":"` + q.ID + `",` + approve[1:] + `]}`, "", 403, "refused_approve", "client:bot"},
		{"", base + "decisions", approve, q.tag(), 401, "", ""},                    // nobody is nobody
		{"ben", "/v1/approvals/req_none/decisions", approve, q.tag(), 404, "", ""}, // nothing is there
		{"uma", "/v1/approvals/" + q.ID + "/presence", `{}`, "", 200, "", ""},      // no decision
		{"udo", "/v1/approvals/" + q.ID + "/presence", `{}`, "", 404, "", ""},      // a look
	} {
		header := []string{}
		if c.match != "" {
			header = append(header, "If-Match", c.match)
		}
		got := w.do(c.who, "POST", c.path, c.body, header...)
		if got.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.who, c.path, got.status, got.body, c.status)
		}
		all, err := store.Attempts(t.Context(), "default", r.RunID)
		w.must(err)
		more := all[min(kept, len(all)):]
		kept = len(all)
		switch {
		case c.kind == "":
			if len(more) != 0 {
				t.Errorf("%s %s: kept %+v", c.who, c.path, more)
			}
		case len(more) != 1 || more[0].Kind != c.kind || more[0].By != c.by || more[0].RequestID != q.ID || more[0].Channel == "" && !strings.Contains(c.kind, "take_back") || more[0].Detail == "":
			t.Errorf("%s %s: kept %+v, want one of %s by %s", c.who, c.path, more, c.kind, c.by)
		}
	}
	after, err := store.Load(t.Context(), "default", r.RunID)
	w.must(err)
	if !slices.EqualFunc(before.Records, after.Records, func(a, b ringi.Record) bool { return a.Hash == b.Hash }) {
		t.Error("the run's log has grown")
	}
	for range 1010 {
		w.do("uma", "POST", base+"take-back", `{}`)
	}
	if all, err := store.Attempts(t.Context(), "default", r.RunID); err != nil || len(all) > 1000 {
		t.Errorf("%d attempts are kept of one run, %v", len(all), err)
	}
}
