package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// search: what requests are found by, and in which order.
func search(t *testing.T, o opener) {
	o.run(t, "Filters", searchFilters)
	o.run(t, "For", searchFor)
	o.run(t, "Words", searchWords)
	o.run(t, "Hostile", searchHostile)
	o.run(t, "TooLong", searchTooLong)
	o.run(t, "Order", searchOrder)
	o.run(t, "Many", searchMany)
	o.run(t, "SettledMeanwhile", searchSettledMeanwhile)
	o.run(t, "F121_ExpiredByTime", searchExpired)
	o.run(t, "Spaces", searchSpaces)
}

// inbox puts requests into one run. Each is made a millisecond after the one
// before it.
func (g *stage) inbox(run string, change ...func(*ringi.RequestRow)) {
	g.t.Helper()
	row := g.begin(run, "thread of "+run, "own_1")
	c := release(row, ringi.WaitingForApproval, ringi.EventApprovalRequested)
	for i, ch := range change {
		r := asked(row, fmt.Sprintf("req_%s_%d", strings.TrimPrefix(run, "run_"), i+1), g.clock.Now().Add(time.Duration(i)*time.Millisecond))
		ch(&r)
		c.Requests = append(c.Requests, r)
	}
	g.commit(c)
}

func searchFilters(t *testing.T, g *stage) {
	g.inbox("run_1",
		func(r *ringi.RequestRow) { r.Tool, r.Agent, r.Initiator = "pay", "clerk", "ivy" },
		func(r *ringi.RequestRow) {
			r.Tool, r.Agent, r.Initiator, r.Risk = "pay", "desk", "ivy", ringi.RiskMedium
		},
		func(r *ringi.RequestRow) { r.Tool, r.Agent, r.Kind = "PAY", "clerk", ringi.KindInput },
		func(r *ringi.RequestRow) { r.Tool, r.Agent, r.Initiator, r.Risk = "pay_back", "", "", "made_up" })
	g.inbox("run_2", func(r *ringi.RequestRow) { r.Tool, r.Risk = "pay", ringi.RiskLow })
	for _, c := range []struct {
		name string
		q    ringi.RequestQuery
		want []string
	}{
		{"tool", ringi.RequestQuery{Tool: "pay"}, []string{"req_1_1", "req_1_2", "req_2_1"}},
		{"tool in capitals", ringi.RequestQuery{Tool: "PAY"}, []string{"req_1_3"}},
		{"part of a tool", ringi.RequestQuery{Tool: "pa"}, nil},
		{"agent", ringi.RequestQuery{Agent: "desk"}, []string{"req_1_2"}},
		{"kind", ringi.RequestQuery{Kind: ringi.KindInput}, []string{"req_1_3"}},
		{"initiator", ringi.RequestQuery{Initiator: "ivy"}, []string{"req_1_1", "req_1_2", "req_1_3", "req_2_1"}},
		{"risk", ringi.RequestQuery{Risk: ringi.RiskMedium}, []string{"req_1_2"}},
		{"the highest risk, and none told", ringi.RequestQuery{Risk: ringi.RiskHigh}, []string{"req_1_1", "req_1_3", "req_1_4"}},
		{"a risk that is none", ringi.RequestQuery{Risk: "made_up", Tool: "pay"}, []string{"req_1_1"}},
		{"risk of a run", ringi.RequestQuery{Risk: ringi.RiskLow, RunID: "run_1"}, nil},
		{"risk and tool", ringi.RequestQuery{Risk: ringi.RiskLow, Tool: "pay"}, []string{"req_2_1"}},
		{"tool and agent", ringi.RequestQuery{Tool: "pay", Agent: "clerk"}, []string{"req_1_1", "req_2_1"}},
		{"that never meet", ringi.RequestQuery{Tool: "pay_back", Agent: "clerk"}, nil},
		{"tool of a run", ringi.RequestQuery{Tool: "pay", RunID: "run_2"}, []string{"req_2_1"}},
		{"tool of a thread", ringi.RequestQuery{Tool: "pay", Thread: "thread of run_1"}, []string{"req_1_1", "req_1_2"}},
		{"all at once", ringi.RequestQuery{Tool: "pay", Agent: "desk", Kind: ringi.KindApproval, Initiator: "ivy", Search: "req_1_2",
			For: ringi.Principal{ID: "ada"}, RunID: "run_1", Thread: "thread of run_1"}, []string{"req_1_2"}},
		{"of another state", ringi.RequestQuery{Tool: "pay", State: []ringi.RequestState{ringi.Granted}}, nil},
		{"of a made-up state", ringi.RequestQuery{Tool: "pay", State: []ringi.RequestState{"made_up"}}, nil},
		{"wildcard", ringi.RequestQuery{Tool: "pa%"}, nil},
	} {
		g.finds(c.name, c.q, c.want...)
	}
	for _, r := range g.list(ringi.RequestQuery{Space: space, Tool: "pay"}) {
		same(t, "the listed row", r, g.request(r.ID))
	}
}

// finds holds a query to what it lists, and RequestCount to the same.
func (g *stage) finds(name string, q ringi.RequestQuery, want ...string) {
	g.t.Helper()
	q.Space = space
	order(g.t, name, ids(g.list(q)), want...)
	g.counts(name, q, 0, len(want))
	if len(want) > 1 {
		g.counts(name+" with a limit", q, len(want)-1, len(want)-1)
	}
}

func (g *stage) counts(name string, q ringi.RequestQuery, limit, want int) {
	g.t.Helper()
	if n, err := g.RequestCount(ctx, q, limit); err != nil || n != want {
		g.t.Errorf("%s: %d are counted, %v; want %d", name, n, err, want)
	}
}

func searchFor(t *testing.T, g *stage) {
	names := func(people, teams []string) func(*ringi.RequestRow) {
		return func(r *ringi.RequestRow) { r.People, r.Teams = people, teams }
	}
	g.inbox("run_1",
		names(nil, nil),
		names([]string{"ada"}, nil),
		names([]string{"bob", "o'hara"}, []string{"desk"}),
		names(nil, []string{"desk", "ada"}),
		names([]string{"ADA"}, []string{"Desk"}),
		names([]string{`["ada"]`, "ada,bob", ""}, []string{"%"}))
	for _, c := range []struct {
		name string
		who  ringi.Principal
		want []string
	}{
		{"nobody in particular", ringi.Principal{}, []string{"req_1_1", "req_1_2", "req_1_3", "req_1_4", "req_1_5", "req_1_6"}},
		{"ada", ringi.Principal{ID: "ada"}, []string{"req_1_1", "req_1_2"}},
		{"ada of desk", ringi.Principal{ID: "ada", Teams: []string{"desk"}}, []string{"req_1_1", "req_1_2", "req_1_3", "req_1_4"}},
		{"eve of two teams", ringi.Principal{ID: "eve", Teams: []string{"none", "Desk"}}, []string{"req_1_1", "req_1_5"}},
		{"o'hara", ringi.Principal{ID: "o'hara"}, []string{"req_1_1", "req_1_3"}},
		{"a team alone", ringi.Principal{Teams: []string{"desk"}}, []string{"req_1_1", "req_1_3", "req_1_4"}},
		{"a team that is named as a person", ringi.Principal{Teams: []string{"bob"}}, []string{"req_1_1"}},
		{"an admin is nobody in particular", ringi.Principal{ID: "root", Admin: true}, []string{"req_1_1"}},
		{"a wildcard", ringi.Principal{ID: "a%"}, []string{"req_1_1"}},
		{"a list", ringi.Principal{ID: `["ada"]`}, []string{"req_1_1", "req_1_6"}},
	} {
		g.finds(c.name, ringi.RequestQuery{For: c.who}, c.want...)
	}
	many := ringi.Principal{ID: "eve"}
	for i := range 3000 {
		many.Teams = append(many.Teams, fmt.Sprint("team ", i))
	}
	many.Teams = append(many.Teams, "desk")
	g.finds("many teams", ringi.RequestQuery{For: many}, "req_1_1", "req_1_3", "req_1_4")
}

// says gives a request its text.
func says(text string) func(*ringi.RequestRow) {
	return func(r *ringi.RequestRow) { r.Text = text }
}

func searchWords(t *testing.T, g *stage) {
	g.inbox("run_1",
		says("send_mail clerk req_1 call_9 ana@example.com please refund the order a-1017"),
		says("send_mail desk req_2 gr\u00fc\u00dfe aus k\u00f6ln an \u00e9milie"),
		says("pay \u9001\u91d1\u3057\u3066\u304f\u3060\u3055\u3044 100 \u20ac \U0001d50a\U0001f600"),
		says(""), says("x"), says("xy z"))
	for _, c := range []struct {
		search string
		want   []string
	}{
		{"refund", []string{"req_1_1"}},
		{"REFUND", []string{"req_1_1"}},
		{"  refund\t\n order ", []string{"req_1_1"}},
		{"order refund", []string{"req_1_1"}},
		{"refund refund", []string{"req_1_1"}},
		{"efun", []string{"req_1_1"}},
		{"refund desk", nil},
		{"refundorder", nil},
		{"example.com", []string{"req_1_1"}},
		{"a-1017", []string{"req_1_1"}},
		{"send_mail", []string{"req_1_1", "req_1_2"}},
		{"sendxmail", nil},
		{"GR\u00dc\u00dfE", []string{"req_1_2"}},
		{"gru\u00dfe", nil},
		{"\u00c9mil", []string{"req_1_2"}},
		{"\u00f6l", []string{"req_1_2"}},
		{"\u9001", []string{"req_1_3"}},
		{"\u304f\u3060", []string{"req_1_3"}},
		{"\u9001\u91d1\u3057\u3066\u304f\u3060\u3055\u3044", []string{"req_1_3"}},
		{"\u9001\u3057", nil},
		{"\u20ac", []string{"req_1_3"}},
		{"\U0001f600", []string{"req_1_3"}},
		{"\U0001d50a\U0001f600", []string{"req_1_3"}},
		{"x", []string{"req_1_1", "req_1_5", "req_1_6"}},
		{"xy", []string{"req_1_6"}},
		{"xyz", nil},
		{"z y", []string{"req_1_6"}},
		{"", []string{"req_1_1", "req_1_2", "req_1_3", "req_1_4", "req_1_5", "req_1_6"}},
		{" \u00a0\u3000", []string{"req_1_1", "req_1_2", "req_1_3", "req_1_4", "req_1_5", "req_1_6"}},
		{strings.Repeat("refund ", 28), []string{"req_1_1"}},
		{"send_mail clerk req_1 call_9 ana@example.com please refund the order a-1017", []string{"req_1_1"}},
		{"send_mail clerk req_1 call_9 ana@example.com please refund the order a-1018", nil},
	} {
		g.finds(c.search, ringi.RequestQuery{Search: c.search}, c.want...)
	}
}

// hostile are texts that a query language or an index may read as more than
// text.
var hostile = []string{
	"'", "''", `"`, `""`, `'; drop table requests; --`, `" or 1=1 --`, "%", "_", "%%", `\%`, `\`, "*", "a*", "^a", "-a", "+a",
	"(", ")", "()", "a:b", "terms:a", "{a}", "near(a b)", "near", "and", "or", "not", "AND", "a AND b", "NOT", "\x00", "a\x00b",
	"\u0000", "[", "[a-z]", "?", "?1", ":a", "@a", "$a", ",", ";", "/*", "*/", "--", "\u202e", "\u200b", "\ufeff", "\ufffd", "\U0010ffff",
}

func searchHostile(t *testing.T, g *stage) {
	change := []func(*ringi.RequestRow){says("and or not plain words that all rows have")}
	for _, h := range hostile {
		change = append(change, says("before"+strings.ToLower(strings.ReplaceAll(h, "\x00", ""))+"after plain"))
	}
	g.inbox("run_1", change...)
	all := g.list(ringi.RequestQuery{Space: space, Limit: 1000})
	for _, h := range append(slices.Clone(hostile), "\xff", "a\xc0\x80") {
		for _, search := range []string{h, "before" + h + "after", h + " plain", "plain " + h + h + h} {
			q := ringi.RequestQuery{Space: space, Search: search, Limit: 1000}
			want := []string{}
			for i := range all {
				if q.Matcher()(&all[i]) {
					want = append(want, all[i].ID)
				}
			}
			order(t, fmt.Sprintf("found by %q", search), ids(g.list(q)), want...)
		}
		q := ringi.RequestQuery{Space: space, Tool: h, Agent: h, Initiator: h, Kind: ringi.RequestKind(h), For: ringi.Principal{ID: h, Teams: []string{h}}}
		order(t, fmt.Sprintf("filtered by %q", h), ids(g.list(q)))
	}
	if n := len(g.list(ringi.RequestQuery{Space: space, Limit: 1000})); n != len(all) {
		t.Errorf("%d requests are left of %d", n, len(all))
	}
}

func searchTooLong(t *testing.T, g *stage) {
	g.inbox("run_1", says(strings.Repeat("\u00e9", 300)))
	g.finds("200 characters", ringi.RequestQuery{Search: strings.Repeat("\u00e9", 200)}, "req_1_1")
	for name, q := range map[string]ringi.RequestQuery{
		"201 characters":   {Space: space, Search: strings.Repeat("\u00e9", 201)},
		"201 blanks":       {Space: space, Search: strings.Repeat(" ", 201)},
		"an unknown order": {Space: space, Order: "by_risk"},
	} {
		want := plain
		if q.Search != "" {
			want = is(ringi.ErrTooLarge)
		}
		_, err := g.Requests(ctx, q)
		_, cerr := g.RequestCount(ctx, q, 0)
		for _, err := range []error{err, cerr} {
			if said := want(err); said != "" {
				t.Errorf("%s: %s", name, said)
			}
		}
	}
}

func searchOrder(t *testing.T, g *stage) {
	at := g.clock.Now()
	set := func(created, expires time.Duration) func(*ringi.RequestRow) {
		return func(r *ringi.RequestRow) {
			r.CreatedAt, r.ExpiresAt = at.Add(created), time.Time{}
			if expires != 0 {
				r.ExpiresAt = at.Add(expires)
			}
		}
	}
	risks := func(r ringi.Risk, set func(*ringi.RequestRow)) func(*ringi.RequestRow) {
		return func(row *ringi.RequestRow) { set(row); row.Risk = r }
	}
	g.inbox("run_1", risks(ringi.RiskLow, set(0, 3*time.Hour)), risks(ringi.RiskMedium, set(0, 0)), risks(ringi.RiskMedium, set(-time.Hour, 2*time.Hour)),
		risks("", set(-time.Hour, 3*time.Hour)), risks(ringi.RiskLow, set(-2*time.Hour, 0)), risks(ringi.RiskHigh, set(time.Hour, time.Hour)))
	for _, c := range []struct {
		order ringi.RequestOrder
		want  []string
	}{
		{ringi.OldestFirst, []string{"req_1_5", "req_1_3", "req_1_4", "req_1_1", "req_1_2", "req_1_6"}},
		{ringi.NewestFirst, []string{"req_1_6", "req_1_2", "req_1_1", "req_1_4", "req_1_3", "req_1_5"}},
		{ringi.SoonestFirst, []string{"req_1_6", "req_1_3", "req_1_4", "req_1_1", "req_1_5", "req_1_2"}},
		{ringi.RiskiestFirst, []string{"req_1_4", "req_1_6", "req_1_3", "req_1_2", "req_1_5", "req_1_1"}},
	} {
		for _, q := range []ringi.RequestQuery{{}, {Tool: "send_mail"}, {RunID: "run_1"}, {Search: "CLERK", RunID: "run_1"},
			{State: everyState}, {State: everyState, Agent: "clerk"}} {
			q.Order = c.order
			g.finds(string(c.order), q, c.want...)
			q.Space, q.Limit = space, 1
			for i := range c.want {
				var rest []string
				if i+1 < len(c.want) {
					rest = c.want[i+1 : i+2]
				}
				q.After = c.want[i]
				order(t, fmt.Sprintf("%s behind %s", c.order, q.After), ids(g.list(q)), rest...)
			}
		}
	}
}

// searchMany is beyond what a store would look through row by row.
func searchMany(t *testing.T, g *stage) {
	const n = 6000
	g.beat("own_1")
	at := g.clock.Now()
	for i := 0; i < n; i += 500 {
		row := ringi.RunRow{Space: space, ID: fmt.Sprint("run_", i), Thread: fmt.Sprint("thr_", i)}
		c := started(row.ID, row.Thread, "own_1")
		for j := i; j < i+500; j++ {
			r := asked(row, fmt.Sprintf("req_%04d", j*7%n), at.Add(time.Duration(j/3)*time.Microsecond)) // three of a microsecond
			r.ExpiresAt = at.Add(time.Duration(1+j*31%n) * time.Hour)
			r.Tool, r.Agent = fmt.Sprint("tool", j%2), fmt.Sprint("agent", j%3)
			r.Text = strings.ToLower(fmt.Sprintf("%s %s number n%dn part%d", r.Tool, r.Agent, j, j%2000))
			if r.Risk = ringi.Risks()[j%3]; j%1000 == 999 { // a risk that hardly any of a tool has
				r.Risk, r.Tool = ringi.RiskHigh, "tool7"
			}
			if j%3 == 1 {
				r.People, r.Teams = nil, []string{fmt.Sprint("team", j%1500)}
			}
			c.Requests = append(c.Requests, r)
		}
		g.commit(c)
	}
	var all []ringi.RequestRow
	for q := (ringi.RequestQuery{Space: space, Limit: 1000}); len(all) < n; q.After = all[len(all)-1].ID {
		all = append(all, g.list(q)...)
	}
	for i, q := range []ringi.RequestQuery{
		{Tool: "tool1"}, {Tool: "tool1", Agent: "agent2"}, {Search: "n5432n"}, {Search: "part1999"}, {Search: "part19"}, {Search: "n5 n"},
		{Search: "number part1999 tool1"}, {Search: "nowhere"}, {Search: "99"}, {Search: "q"}, {For: ringi.Principal{ID: "eve", Teams: []string{"team700", "team1"}}},
		{For: ringi.Principal{ID: "ada"}, Search: "part17"}, {Initiator: "ivy", Search: "part55 agent0"}, {Kind: ringi.KindInput}, {Agent: "agent9"},
		{Risk: ringi.RiskHigh}, {Risk: ringi.RiskHigh, Tool: "tool1"}, {Risk: ringi.RiskLow, Search: "part19"}, {Risk: ringi.RiskMedium, Agent: "agent0"}, {Tool: "tool7"},
	} {
		for j, o := range []ringi.RequestOrder{ringi.OldestFirst, ringi.NewestFirst, ringi.SoonestFirst, ringi.RiskiestFirst} {
			if (i+j)%4 == 2 && q.Risk == "" {
				continue // three of the four are enough for each
			}
			q.Space, q.Order, q.Limit, q.After = space, o, 50, ""
			g.pages(q, all)
		}
	}
}

// pages reads a list page by page, up to its fourth and behind three places far
// into it, and holds it to what all rows say.
func (g *stage) pages(q ringi.RequestQuery, all []ringi.RequestRow) {
	g.t.Helper()
	var rows []ringi.RequestRow
	for i := range all {
		if q.Matcher()(&all[i]) {
			rows = append(rows, all[i])
		}
	}
	slices.SortFunc(rows, func(a, b ringi.RequestRow) int { return q.Compare(&a, &b) })
	want := ids(rows)
	name := fmt.Sprintf("%+v", q)
	for start := 0; start < min(len(want), 200) || start == 0; start += q.Limit {
		order(g.t, name, ids(g.list(q)), want[start:min(start+q.Limit, len(want))]...)
		if q.After = ""; start+q.Limit <= len(want) {
			q.After = want[start+q.Limit-1]
		}
	}
	for _, at := range []int{len(want) / 3, len(want) / 2, len(want) - 2} {
		if at >= 0 && at < len(want) {
			q.After = want[at]
			order(g.t, name, ids(g.list(q)), want[at+1:min(at+1+q.Limit, len(want))]...)
		}
	}
	g.counts(name, q, 0, min(len(want), 1000))
}

// searchSettledMeanwhile: a place in a list stays one while rows leave it.
func searchSettledMeanwhile(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1", "req_2", "req_3", "req_4")
	for _, q := range []ringi.RequestQuery{{Tool: "send_mail"}, {Search: "clerk"}, {For: ringi.Principal{ID: "ada"}, Order: ringi.SoonestFirst}} {
		q.Space, q.After = space, "req_2"
		order(t, "behind the second", ids(g.list(q)), "req_3", "req_4")
	}
	g.decide("run_1", deny("req_2", g.clock.Now()))
	g.decide("run_1", approve("req_3", g.clock.Now()))
	for _, q := range []ringi.RequestQuery{{Tool: "send_mail"}, {Search: "clerk"}, {For: ringi.Principal{ID: "ada"}, Order: ringi.SoonestFirst}} {
		q.Space, q.After = space, "req_2"
		order(t, "behind the one that is settled", ids(g.list(q)), "req_4")
		q.Order = ringi.NewestFirst
		order(t, "behind the one that is settled, newest first", ids(g.list(q)), "req_1")
		q.State = []ringi.RequestState{ringi.Granted, ringi.Refused}
		q.After = ""
		order(t, "those that are settled", ids(g.list(q)), "req_3", "req_2")
	}
	q := ringi.RequestQuery{Space: space, Tool: "send_mail", After: "req_9"}
	if _, err := g.Requests(ctx, q); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("behind an unknown request: %v", err)
	}
	c := settle(g.row(row.ID), ringi.EventRequestClosed)
	c.Requests = []ringi.RequestRow{asked(row, "req_5", g.clock.Now())}
	g.commit(c)
	order(t, "behind the first, with a new one", ids(g.list(ringi.RequestQuery{Space: space, Search: "send", After: "req_1"})), "req_4", "req_5")
}

func searchExpired(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1", "req_2")
	deadline := g.request("req_1").ExpiresAt
	g.inbox("run_2", func(r *ringi.RequestRow) { r.ExpiresAt = time.Time{} })
	expired := []ringi.RequestState{ringi.Expired}
	for _, o := range []ringi.RequestOrder{ringi.OldestFirst, ringi.NewestFirst, ringi.SoonestFirst, ringi.RiskiestFirst} {
		for _, q := range []ringi.RequestQuery{{}, {Agent: "clerk"}, {Search: "clerk"}} {
			q.Order = o
			g.clock.Set(deadline.Add(-time.Microsecond))
			g.counts("pending before the deadline", withSpace(q), 0, 3)
			q.State = expired
			g.finds("expired before the deadline", q)
		}
	}
	g.clock.Set(deadline.Add(time.Millisecond))
	for _, o := range []ringi.RequestOrder{ringi.OldestFirst, ringi.NewestFirst, ringi.SoonestFirst, ringi.RiskiestFirst} {
		for _, q := range []ringi.RequestQuery{{}, {Agent: "clerk"}, {Search: "clerk"}} {
			q.Order = o
			g.finds("pending behind the deadline", q, "req_2_1")
			q.State = expired
			want := []string{"req_1", "req_2"}
			if o == ringi.NewestFirst {
				slices.Reverse(want)
			}
			g.finds("expired behind the deadline", q, want...)
			for _, r := range g.list(withSpace(q)) {
				if r.State != ringi.Expired {
					t.Errorf("%s is listed as %s", r.ID, r.State)
				}
			}
		}
	}
}

func withSpace(q ringi.RequestQuery) ringi.RequestQuery {
	q.Space = space
	return q
}

func searchSpaces(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	c := first("run_1", "thr_1")
	c.Space = "other"
	r := asked(ringi.RunRow{Space: "other", ID: "run_1", Thread: "thr_1"}, "req_1", g.clock.Now())
	r.Text += " elsewhere"
	c.Requests = []ringi.RequestRow{r}
	g.commit(c)
	g.finds("found by another space's word", ringi.RequestQuery{Search: "elsewhere"})
	g.finds("found by a word of both", ringi.RequestQuery{Search: "clerk"}, "req_1")
	g.counts("of the other space", ringi.RequestQuery{Space: "other", Search: "elsewhere", Tool: "send_mail"}, 0, 1)
	g.counts("of no space", ringi.RequestQuery{Search: "clerk"}, 0, 0)
}
