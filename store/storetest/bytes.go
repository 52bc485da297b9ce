package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// bytesAndTimes: what goes in comes out.
func bytesAndTimes(t *testing.T, o opener) {
	o.run(t, "Bytes", bytesComeBack)
	o.run(t, "F96_Ids", idsStayApart)
	o.run(t, "Text", textComesBack)
	o.run(t, "Times", timesComeBack)
	o.run(t, "ManyRecords", manyRecords)
}

func bytesComeBack(t *testing.T, g *stage) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	row := g.begin("run_1", "thr_1", "own_1")
	want := g.load("run_1").Records
	for _, b := range [][]byte{
		nil, {}, {0}, []byte("a\x00b\x00"), []byte("\xff\xfe\xc0\x80\xed\xa0\x80"), every, []byte("\ufeff{}\r\n"),
		[]byte(`{"a":1.0,"\u00e9":"\/","n":9007199254740993}`), []byte("\U0001d50a\U0010ffff e\u0301 \u00e9 \u202e"),
		bytes.Repeat([]byte("0123456789abcde\x00"), 1<<16), []byte("' OR 1=1; --"), []byte("null"),
	} {
		recs := records(row.Seq, ringi.EventToolStarted, ringi.EventToolFinished, ringi.EventModelResponded)
		recs[0].Payload, recs[1].Salt, recs[2].Payload, recs[2].Salt = b, b, b, b
		if b != nil {
			recs[1].Head = b
		}
		recs[2].Hash = [32]byte{}
		c := next(row)
		c.Records = recs
		c.Tools = map[string][]byte{fmt.Sprint("tool ", row.Seq): b}
		g.commit(c)
		want = append(want, recs...)
		if def, err := g.Tool(ctx, fmt.Sprint("tool ", row.Seq)); err != nil || !bytes.Equal(def, b) {
			t.Errorf("the tool is %q, %v; want %q", def, err, b)
		}
		c = next(g.row("run_1"), ringi.EventApprovalRequested)
		c.Requests = []ringi.RequestRow{asked(row, fmt.Sprint("req ", row.Seq), g.clock.Now())}
		g.commit(c)
		want = append(want, c.Records...)
		row = g.row("run_1")
	}
	sameRecords(t, g.load("run_1").Records, want)
}

// oddIDs are texts that some store or other folds together.
var oddIDs = []string{
	"run_1", "RUN_1", "Run_1", "run_1 ", " run_1", "run_10", "run_", "1", "01", "1.0", "1e0", "null", "",
	"\u00e9", "e\u0301", "\u00c9", "\uff52\uff55\uff4e", "run", "\u017f", "s", "K", "k", "\u212a",
	"\U0001d50a", "\U0001d572", "\U0010ffff", "\u00df", "ss", "SS", "\u0130", "i", "\u0131",
	"'", "''", `"`, `\`, "%", "_", "run/1", "a\tb", "a\nb", "\u202e", "\u200b", "\ufeff",
	strings.Repeat("x", 300), strings.Repeat("x", 299) + "y", strings.Repeat("\u00e9", 300),
	strings.Repeat("\U0001d50a", 300),
}

func idsStayApart(t *testing.T, g *stage) {
	g.beat("own_1")
	for i, id := range oddIDs {
		if id == "" {
			continue
		}
		c := started(id, id, "own_1")
		c.Records[0].Payload = fmt.Append(nil, i)
		c.Requests = []ringi.RequestRow{asked(ringi.RunRow{Space: space, ID: id, Thread: id}, id, g.clock.Now())}
		c.Requests[0].Digest = fmt.Sprint(i)
		c.Tools = map[string][]byte{id: fmt.Append(nil, i)}
		g.commit(c)
	}
	for i, id := range oddIDs {
		if id == "" {
			continue
		}
		run, want := g.load(id), fmt.Sprint(i)
		if run.Row.ID != id || run.Row.Thread != id || string(run.Records[0].Payload) != want {
			t.Errorf("run %q is %+v", id, run)
		}
		if r := g.request(id); r.ID != id || r.RunID != id || r.Digest != want || r.CallID != "call_"+id {
			t.Errorf("request %q is %+v", id, r)
		}
		g.tool(id, want)
		order(t, "runs of the thread", ids(g.runs(ringi.RunQuery{Space: space, Thread: id})), id)
		order(t, "requests of the run", ids(g.list(ringi.RequestQuery{Space: space, RunID: id})), id)
		order(t, "requests of the thread", ids(g.list(ringi.RequestQuery{Space: space, Thread: id})), id)
	}
	idsOfTheOthers(t, g)
}

// idsOfTheOthers: owners and spaces are as exact as runs.
func idsOfTheOthers(t *testing.T, g *stage) {
	for _, id := range oddIDs {
		if id == "" || id == "own_1" {
			continue
		}
		row := g.row("run_1")
		g.refused(claim(row, id), plainOr(ringi.ErrBusy, ringi.ErrLeaseLost))
		c := first("run_1", "thr_1")
		c.Space = id
		c.Row.Agent = id
		g.commit(c)
		if r, err := g.Row(ctx, id, "run_1"); err != nil || r.Space != id || r.Agent != id {
			t.Errorf("the row of space %q is %+v, %v", id, r, err)
		}
	}
}

// plainOr expects one of two errors.
func plainOr(a, b error) refusal {
	return func(err error) string {
		if is(a)(err) == "" {
			return ""
		}
		return is(b)(err)
	}
}

func textComesBack(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	for i, s := range append([]string{strings.Repeat("long \u00e9 ", 10_000)}, oddIDs...) {
		c := next(row)
		c.Records = records(row.Seq, "made_up "+ringi.EventKind(s))
		c.Row.Reason, c.Row.MAC, c.Row.Status = ringi.Reason(s), s, ringi.Running
		r := asked(row, fmt.Sprint("req_", i), g.clock.Now())
		r.CallID, r.Kind, r.Tool, r.Digest, r.DecidedBy = s, ringi.RequestKind(s), s, s, s
		r.Agent, r.Initiator, r.Text, r.People, r.Teams = s, s, s, []string{s, "", s}, []string{"", s}
		c.Requests = []ringi.RequestRow{r}
		g.commit(c)
		row = g.row("run_1")
		if row.Reason != ringi.Reason(s) || row.MAC != s {
			t.Errorf("the row is %+v, want reason and MAC %q", row, s)
		}
		same(t, "the request", g.request(r.ID), r)
	}
	mark := next(row)
	mark.Row.Corrupt = "record 2: \u202e\U0001d50a\n"
	g.commit(mark)
	if got := g.row("run_1").Corrupt; got != mark.Row.Corrupt {
		t.Errorf("the mark is %q, want %q", got, mark.Row.Corrupt)
	}
}

func timesComeBack(t *testing.T, g *stage) {
	east := time.FixedZone("east", 14*3600)
	row := g.begin("run_1", "thr_1", "own_1")
	for i, in := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(0, 999), time.Unix(0, -1), time.Unix(0, 1000), time.Unix(-1, 999_999_999),
		time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2031, 3, 2, 9, 0, 0, 123_456_789, east), time.Date(2031, 3, 2, 9, 0, 0, 123_456_000, time.Local),
		time.Date(2262, 4, 12, 0, 0, 0, 1000, time.UTC), time.Date(1600, 2, 29, 12, 0, 0, 1_999, time.UTC), time.Now(),
	} {
		want := time.Time{}
		if !in.IsZero() {
			want = time.UnixMicro(in.UnixMicro()).UTC()
		}
		c := next(row, ringi.EventApprovalRequested)
		c.Row.Deadline = in
		r := asked(row, fmt.Sprint("req_", i), in)
		r.State, r.ExpiresAt, r.DecidedAt, r.UseBy = ringi.Refused, in, in, in
		c.Requests = []ringi.RequestRow{r}
		g.commit(c)
		if err := g.Attempt(ctx, ringi.Attempt{Space: space, RunID: fmt.Sprint("run ", i), Kind: "stale", At: in}); err != nil {
			t.Fatal(err)
		}
		row = g.row("run_1")
		got := g.request(r.ID)
		for name, at := range map[string]time.Time{
			"Deadline": row.Deadline, "CreatedAt": got.CreatedAt, "ExpiresAt": got.ExpiresAt, "DecidedAt": got.DecidedAt,
			"UseBy": got.UseBy, "At": g.attemptsOf(space, fmt.Sprint("run ", i))[0].At,
		} {
			if at != want {
				t.Errorf("%s of %v comes back as %v, want %v", name, in, at, want)
			}
		}
	}
}

func manyRecords(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	kinds := make([]ringi.EventKind, 1000)
	for i := range kinds {
		kinds[i] = everyKind[i%len(everyKind)]
	}
	c := next(row, kinds...)
	g.commit(c)
	sameRecords(t, g.load("run_1").Records, append(first("run_1", "thr_1").Records, c.Records...))
}
