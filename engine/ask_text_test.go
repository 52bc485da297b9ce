package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// textOf makes a run that asks for one call of a tool with these schemas, and
// returns the row of its request.
func textOf(t *testing.T, input, required, call string) ringi.RequestRow {
	t.Helper()
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "Send_Mail", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(input), InputRequired: json.RawMessage(required)}, nil)
	w.cfg.Agent = "Clerk"
	w.says(calls("Send_Mail", call))
	res := w.run(w.engine(), ringi.RunStart{By: ana})
	row, err := w.store.Request(t.Context(), "default", res.Pending[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// similar is the word by which similar calls are found: a hash. A secret is no
// part of one.
var similar = regexp.MustCompile(` similar:[0-9a-f]{16}`)

// S-34: a search finds tool, agent, ids and texts, and nothing of a key that a
// schema marks as secret.
func TestS34_SecretsAreNotSearched(t *testing.T) {
	for _, tt := range []struct{ name, input, required, call, want string }{
		{"texts at any depth, numbers and keys not",
			`{"type":"object"}`, ``, `{"to":"Ana@Example.com","n":12345,"list":["One","TWO",{"b":"four","a":"three"}],"on":true,"no":null}`,
			"one two three four ana@example.com"},
		{"marked keys",
			`{"type":"object","properties":{"to":{"type":"string"},"pin":{"type":"string","writeOnly":true},"word":{"type":"string","format":"password"},
				"tok":{"type":"string","x-sensitive":true}}}`, ``, `{"to":"ana","pin":"MARK","word":"MARK","tok":"MARK"}`, "ana"},
		{"a mark below a key",
			`{"type":"object","properties":{"to":{"type":"string"},"login":{"type":"object","properties":{"user":{"type":"string"},"word":{"type":"string","format":"password"}}}}}`, ``,
			`{"to":"ana","login":{"user":"MARK","word":"MARK"}}`, "ana"},
		{"a mark that a reference leads to",
			`{"type":"object","$defs":{"pin":{"type":"string","writeOnly":true}},"properties":{"to":{"type":"string"},"pin":{"$ref":"#/$defs/pin"}}}`, ``,
			`{"to":"ana","pin":"MARK"}`, "ana"},
		{"a mark on keys without a name",
			`{"type":"object","properties":{"to":{"type":"string"}},"additionalProperties":{"type":"string","writeOnly":true}}`, ``,
			`{"to":"MARK","other":"MARK"}`, ""},
		{"a mark in the person's schema",
			`{"type":"object","properties":{"to":{"type":"string"},"code":{"type":"string"}}}`,
			`{"type":"object","additionalProperties":false,"required":["code"],"properties":{"code":{"type":"string","writeOnly":true}}}`,
			`{"to":"ana"}`, "ana"},
		{"control characters and blanks", `{"type":"object"}`, ``, `{"to":"a\u0000b\n\n\tc\u3000d\u001b[1m"}`, "a b c d [1m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := textOf(t, tt.input, tt.required, tt.call)
			want := strings.TrimSpace(strings.ToLower("send_mail clerk " + row.ID + " " + row.CallID + " " + tt.want))
			if got := similar.ReplaceAllString(row.Text, ""); got != want {
				t.Errorf("the text is\n%q, want\n%q", got, want)
			}
			if secret := strings.Contains(tt.call, "MARK"); similar.MatchString(row.Text) == secret {
				t.Errorf("calls like %s are told by %q", tt.call, similar.FindString(row.Text))
			}
			if row.Agent != "Clerk" || row.Tool != "Send_Mail" || row.Initiator != ana.ID {
				t.Errorf("the row is %+v", row)
			}
		})
	}
}

// S-34: what a person typed is no more to be found than what a model wrote.
func TestS34_TypedSecretsAreNotSearched(t *testing.T) {
	w := newWorld(t)
	w.askMarked()
	w.says(calls("transfer", `{"to":"Bob"}`))
	e := w.engine()
	_, pending := w.pendingOf(e, 1)
	w.decide(e, pending[0].Fill(ana, json.RawMessage(`{"code":"739-114","note":"for the rent"}`)))
	page, err := e.Requests(t.Context(), ringi.RequestQuery{Search: "RENT bob"})
	if err != nil || len(page.Requests) != 1 || page.Requests[0].ProposedBy != ana.ID {
		t.Errorf("%d requests are found, %v", len(page.Requests), err)
	}
	for _, code := range []string{"739-114", "739", "114"} {
		if n, err := e.RequestCount(t.Context(), ringi.RequestQuery{Search: code}, 0); err != nil || n != 0 {
			t.Errorf("%d requests are found by the code, %v", n, err)
		}
	}
}

// A text is at most 2 KiB and ends with a whole character.
func TestRequestTextIsBounded(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 5000), strings.Repeat("\u9001", 3000), strings.Repeat("a \U0001d50a", 2000), strings.Repeat("\u0130", 2000)} {
		in, _ := json.Marshal(map[string]any{"a": long, "b": []string{long, "behind"}})
		row := textOf(t, `{"type":"object"}`, ``, string(in))
		if n := len(row.Text); n > 2<<10 || n < 2<<10-4 || !utf8.ValidString(row.Text) {
			t.Errorf("%d bytes, ending with %q", n, row.Text[n-8:])
		}
	}
}

// The row says who may decide and who asked, so that a list for somebody needs
// no log; a successor says it anew.
func TestRequestsForSomebody(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "wire", Effect: ringi.NonIdempotentWrite, Deciders: ringi.Deciders{People: []string{"person:cfo"}, Teams: []string{"finance"}}}, nil)
	w.says(calls("wire", `{}`, "pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{By: ana})
	if len(res.Pending) != 2 {
		t.Fatalf("%d requests wait", len(res.Pending))
	}
	tools := func(q ringi.RequestQuery) (names []string) {
		page, err := e.Requests(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Requests {
			names = append(names, r.Call.Tool)
		}
		return names
	}
	for _, tt := range []struct {
		who  ringi.Principal
		want []string
	}{
		{ringi.Principal{ID: "person:cfo"}, []string{"wire", "pay"}},
		{ringi.Principal{ID: "eve", Teams: []string{"finance"}}, []string{"wire", "pay"}},
		{ringi.Principal{ID: "eve"}, []string{"pay"}},
	} {
		if got := tools(ringi.RequestQuery{For: tt.who}); !slices.Equal(got, tt.want) {
			t.Errorf("for %+v: %q, want %q", tt.who, got, tt.want)
		}
	}
	wire := res.Pending[slices.IndexFunc(res.Pending, func(r ringi.ApprovalRequest) bool { return r.Call.Tool == "wire" })]
	if _, err := e.Reassign(t.Context(), wire.ID, ringi.Deciders{People: []string{"eve"}}, ringi.Principal{ID: "root", Kind: ringi.Person, Admin: true, Auth: "test"}, "on leave"); err != nil {
		t.Fatal(err)
	}
	if got := tools(ringi.RequestQuery{For: ringi.Principal{ID: "person:cfo"}, Tool: "wire"}); got != nil {
		t.Errorf("the one who handed it over still finds %q", got)
	}
	if got := tools(ringi.RequestQuery{For: ringi.Principal{ID: "eve"}, Order: ringi.NewestFirst}); !slices.Contains(got, "wire") {
		t.Errorf("the one it was handed to finds %q", got)
	}
	if got := tools(ringi.RequestQuery{Initiator: ana.ID, Tool: "pay"}); !slices.Equal(got, []string{"pay"}) {
		t.Errorf("by initiator: %q", got)
	}
}

// The list by risk, and what a request says of itself, are one.
func TestRequestsByRisk(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "peek", Effect: ringi.ReadOnly, NeedsApproval: true}, nil)
	w.tool(ringi.Tool{Name: "send", Effect: ringi.IdempotentWrite, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	w.says(calls("peek", `{}`, "pay", `{}`, "send", `{"to":"a\u202eb"}`, "send", `{"to":"bob"}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{By: ana})
	if len(res.Pending) != 4 {
		t.Fatalf("%d requests wait", len(res.Pending))
	}
	for _, tt := range []struct {
		q    ringi.RequestQuery
		want []ringi.Risk
	}{
		{ringi.RequestQuery{Order: ringi.RiskiestFirst}, []ringi.Risk{ringi.RiskHigh, ringi.RiskMedium, ringi.RiskMedium, ringi.RiskLow}},
		{ringi.RequestQuery{Risk: ringi.RiskHigh}, []ringi.Risk{ringi.RiskHigh}},
		{ringi.RequestQuery{Risk: ringi.RiskHigh, Tool: "pay"}, nil},
		{ringi.RequestQuery{Risk: ringi.RiskMedium, Order: ringi.NewestFirst}, []ringi.Risk{ringi.RiskMedium, ringi.RiskMedium}},
	} {
		page, err := e.Requests(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []ringi.Risk
		for _, r := range page.Requests {
			got = append(got, r.Risk)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v lists %q, want %q", tt.q, got, tt.want)
		}
	}
}

// loading counts the runs that an engine reads.
type loading struct {
	ringi.Store
	n atomic.Int64
}

func (l *loading) Load(ctx context.Context, space, runID string) (*ringi.StoredRun, error) {
	l.n.Add(1)
	return l.Store.Load(ctx, space, runID)
}

// A page reads the log of each of its runs once, in whatever order their
// requests stand on it, and a count reads none.
func TestAPageReadsARunOnce(t *testing.T) {
	w := newWorld(t)
	store := &loading{Store: w.store}
	w.cfg.Store = store
	w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`, "pay", `{"n":3}`), calls("pay", `{"n":4}`, "put", `{"n":5}`))
	e := w.engine()
	w.run(e, ringi.RunStart{})
	w.run(e, ringi.RunStart{}) // at the same time: their requests stand by their ids
	store.n.Store(0)
	for _, q := range []ringi.RequestQuery{{}, {Order: ringi.NewestFirst}, {Order: ringi.SoonestFirst, Tool: "pay"}, {Search: "pay"}} {
		store.n.Store(0)
		page, err := e.Requests(t.Context(), q)
		if err != nil || len(page.Requests) < 4 {
			t.Fatalf("%d requests, %v", len(page.Requests), err)
		}
		if n := store.n.Load(); n != 2 {
			t.Errorf("%+v: %d loads of 2 runs", q, n)
		}
		store.n.Store(0)
		n, err := e.RequestCount(t.Context(), q, 0)
		if err != nil || n != len(page.Requests) || store.n.Load() != 0 {
			t.Errorf("%+v: %d are counted with %d loads, %v; the page has %d", q, n, store.n.Load(), err, len(page.Requests))
		}
	}
}

// BenchmarkRequestsPage reads a page of 50 requests of 50 runs, or of 17 that
// asked three times each.
func BenchmarkRequestsPage(b *testing.B) {
	for name, calls := range map[string]int{"one": 1, "three": 3} {
		b.Run(name, func(b *testing.B) {
			store, err := sqlite.Open(filepath.Join(b.TempDir(), "ringi.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			e := benchEngine(b, engine.Config{Model: steps("refund", 1, calls), Store: store, Keyring: keyring(b)})
			for range 60 {
				if _, err := e.Run(b.Context(), ask); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				page, err := e.Requests(b.Context(), ringi.RequestQuery{Tool: "refund"})
				if err != nil || len(page.Requests) != 50 {
					b.Fatalf("%d requests, %v", len(page.Requests), err)
				}
			}
		})
	}
}
