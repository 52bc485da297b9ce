package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

// copies: the store shares no memory with its callers.
func copies(t *testing.T, o opener) {
	o.run(t, "WhatWentIn", whatWentIn)
	o.run(t, "WhatCameOut", whatCameOut)
	o.run(t, "AppendingReachesNoNeighbour", appendingReachesNoNeighbour)
}

// spoil changes every byte and row of a run.
func spoil(recs []ringi.Record) {
	for i := range recs {
		for _, b := range [][]byte{recs[i].Head, recs[i].Payload, recs[i].Salt} {
			for j := range b {
				b[j] ^= 0xff
			}
		}
		recs[i] = ringi.Record{Seq: -1, Kind: "spoilt"}
	}
}

func whatWentIn(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	build := func() *ringi.Commit {
		c := settle(row, ringi.EventApprovalDecided, ringi.EventRequestClosed)
		c.Changes = []ringi.RequestChange{approve("req_1", row.UpdatedAt)}
		return full(c, row, "req_2", row.UpdatedAt)
	}
	c, want := build(), build()
	g.commit(c)
	spoil(c.Records)
	for i := range c.Requests {
		c.Requests[i].People[0] = "spoilt"
		c.Requests[i].Teams[0] = "spoilt"
		c.Requests[i].ID = "spoilt"
	}
	c.Tools["digest of req_2"][0] = 'X'
	c.Tools["spoilt"] = []byte("spoilt")
	c.Changes[0] = ringi.RequestChange{}
	def := []byte(`{"name":"mail"}`)
	if err := g.SaveTool(ctx, "sha256:1", def); err != nil {
		t.Fatal(err)
	}
	def[0] = 'X'

	sameRecords(t, g.load("run_1").Records[row.Seq:], want.Records)
	same(t, "the new request", g.request("req_2_a"), want.Requests[0])
	g.tool("digest of req_2", `{"name":"pay"}`)
	g.tool("sha256:1", `{"name":"mail"}`)
}

func whatCameOut(t *testing.T, g *stage) {
	g.commit(release(g.begin("run_1", "thr_1", "own_1"), ringi.Completed, ringi.EventRunFinished))
	g.ask("run_2", "thr_1", "req_1", "req_2")
	c := settle(g.row("run_2"), ringi.EventCancelRequested)
	c.Tools = map[string][]byte{"sha256:1": []byte(`{}`)}
	g.commit(c)
	g.attempt(space, "run_2", "0")
	before := g.state(c)

	for _, id := range []string{"run_1", "run_2"} {
		run := g.load(id)
		spoil(run.Records)
		run.Row = ringi.RunRow{}
	}
	script, err := g.Transcript(ctx, space, "thr_1")
	if err != nil || len(script) != 1 {
		t.Fatalf("%d runs, %v", len(script), err)
	}
	spoil(script[0].Records)
	script[0].Row.Status = "spoilt"
	for _, rows := range [][]ringi.RequestRow{g.list(ringi.RequestQuery{Space: space}), {g.request("req_1")}} {
		for i := range rows {
			rows[i].People[0], rows[i].Teams[0] = "spoilt", "spoilt"
			rows[i].State = "spoilt"
		}
	}
	g.runs(ringi.RunQuery{Space: space})[0].Status = "spoilt"
	def, err := g.Tool(ctx, "sha256:1")
	if err != nil {
		t.Fatal(err)
	}
	def[0] = 'X'
	g.attemptsOf(space, "run_2")[0].Detail = "spoilt"

	same(t, "what is stored", g.state(c), before)
	g.attempted(space, "run_2", 0, 1)
}

// appendingReachesNoNeighbour: bytes that were cut from one block end where
// they end.
func appendingReachesNoNeighbour(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1", "req_2")
	run := g.load("run_1")
	want := cloned(run.Records)
	for _, r := range run.Records {
		for _, b := range [][]byte{r.Head, r.Payload, r.Salt} {
			_ = append(b, strings.Repeat("X", 64)...)
		}
	}
	_ = append(run.Records, ringi.Record{Kind: "spoilt"})
	sameRecords(t, run.Records, want)
	rows := g.list(ringi.RequestQuery{Space: space})
	_ = append(rows[0].People, "spoilt")
	if got := rows[1].People; !slices.Equal(got, []string{"ada"}) {
		t.Errorf("the second request's people are %q", got)
	}
	g.commit(settle(row, ringi.EventCancelRequested))
	sameRecords(t, g.load("run_1").Records[:row.Seq], want)
}
