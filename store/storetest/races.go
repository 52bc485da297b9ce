package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ringi-dev/ringi"
)

// races: whoever is first wins, and nobody's work is lost. Run it with -race.
func races(t *testing.T, o opener) {
	both := func(name string, test func(t *testing.T, g *stage, one, two ringi.Store)) {
		o.run(t, name, func(t *testing.T, g *stage) { test(t, g, g.Store, g.Store) })
	}
	both("TwoWriters", twoWriters)
	both("F36_TwoDeciders", twoDeciders)
	both("F30_TwoSpenders", twoSpenders)
	both("S09_TakeBackAgainstStart", takeBackAgainstStart)
	both("S29_DecisionWhileAToolFinishes", decisionWhileAToolFinishes)
	both("OneStartAThread", oneStartAThread)
	both("OneClaim", oneClaim)
	both("LoadIsWhole", loadIsWhole)
}

// rounds is how often a race is run.
func rounds() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

// together runs fs at the same moment and returns their errors.
func together(fs ...func() error) []error {
	errs := make([]error, len(fs))
	var there atomic.Int32
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() {
			// A channel would start them one behind the other.
			for there.Add(1); there.Load() < int32(len(fs)); {
				runtime.Gosched()
			}
			errs[i] = f()
		})
	}
	wg.Wait()
	return errs
}

// oneWins expects exactly one nil and, elsewhere, one of the given errors. It
// returns the winner.
func oneWins(t *testing.T, round int, errs []error, losers ...error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		if err == nil && winner < 0 {
			winner = i
			continue
		}
		known := false
		for _, l := range losers {
			known = known || errors.Is(err, l)
		}
		if !known {
			t.Fatalf("round %d: the errors are %v; want one nil and the rest of %v", round, errs, losers)
		}
	}
	if winner < 0 {
		t.Fatalf("round %d: nobody won: %v", round, errs)
	}
	return winner
}

// again commits what build makes from the run as it is, until no one was first.
func again(s ringi.Store, run string, build func(row ringi.RunRow) *ringi.Commit) error {
	for {
		row, err := s.Row(ctx, space, run)
		if err != nil {
			return err
		}
		if err = s.Commit(ctx, build(row)); !errors.Is(err, ringi.ErrConflict) {
			return err
		}
	}
}

func twoWriters(t *testing.T, g *stage, one, two ringi.Store) {
	row := g.ask("run_1", "thr_1", "req_1")
	row0 := row.Seq
	write := func(s ringi.Store, word string) func() error {
		c := settle(row, ringi.EventCancelRequested)
		c.Records[0].Payload = []byte(word)
		return func() error { return s.Commit(ctx, c) }
	}
	var words []string
	for i := range rounds() / 4 {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		w := oneWins(t, i, together(write(one, a), write(two, b)), ringi.ErrConflict)
		words = append(words, []string{a, b}[w])
		row = g.row("run_1")
	}
	var got []string
	for _, r := range g.load("run_1").Records[row0:] {
		got = append(got, string(r.Payload))
	}
	order(t, "the words of the winners", got, words...)
	gapless(t, g, "run_1")
}

// gapless expects records numbered from 1 up to the row's Seq, which names the
// newest head.
func gapless(t *testing.T, g *stage, run string) []ringi.Record {
	t.Helper()
	r := g.load(run)
	if r.Row.Seq != int64(len(r.Records)) || r.Row.Head != r.Records[len(r.Records)-1].Hash {
		t.Errorf("the row is %+v over %d records", r.Row, len(r.Records))
	}
	for i, rec := range r.Records {
		if rec.Seq != int64(i)+1 {
			t.Fatalf("record %d has Seq %d", i+1, rec.Seq)
		}
	}
	return r.Records
}

// pendingInRuns makes one run with n pending requests.
func pendingInRuns(g *stage, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("req_%04d", i))
	}
	g.ask("run_1", "thr_1", names...)
	return names
}

// twoDeciders: A approves and B denies at the same instant.
func twoDeciders(t *testing.T, g *stage, one, two ringi.Store) {
	names := pendingInRuns(g, rounds())
	at := g.clock.Now()
	decide := func(s ringi.Store, c ringi.RequestChange) func() error {
		return func() error {
			return again(s, "run_1", func(row ringi.RunRow) *ringi.Commit {
				cm := settle(row, ringi.EventApprovalDecided)
				cm.Records[0].Payload = []byte(c.DecidedBy + " " + c.ID)
				cm.Changes = []ringi.RequestChange{c}
				return cm
			})
		}
	}
	wins := map[string]int{}
	var words []string
	for i, id := range names {
		changes := []ringi.RequestChange{approve(id, at), deny(id, at)}
		if i%2 == 1 { // neither has the better place
			changes[0], changes[1] = changes[1], changes[0]
		}
		errs := together(decide(one, changes[0]), decide(two, changes[1]))
		w := changes[0]
		if errs[0] != nil {
			w = changes[1]
			errs[0], errs[1] = errs[1], errs[0]
		}
		if c := inState(id, w.To)(errs[1]); errs[0] != nil || c != "" {
			t.Fatalf("round %d: the winner has %v; the loser: %s", i, errs[0], c)
		}
		wins[w.DecidedBy]++
		words = append(words, w.DecidedBy+" "+id)
	}
	var got []string
	for _, r := range gapless(t, g, "run_1")[2+len(names):] {
		got = append(got, string(r.Payload))
	}
	order(t, "the recorded decisions", got, words...)
	for i, id := range names {
		if r := g.request(id); r.DecidedBy+" "+id != words[i] || (r.State == ringi.Granted) != (r.DecidedBy == "ada") {
			t.Errorf("the request is %+v, want the word of %q", r, words[i])
		}
	}
	t.Logf("won: %v", wins)
}

// twoSpenders: two owners take the run and spend one approval at once.
func twoSpenders(t *testing.T, g *stage, one, two ringi.Store) {
	g.beat("own_1", "own_2")
	for i := range rounds() / 4 {
		run, id := fmt.Sprintf("run_%d", i), fmt.Sprintf("req_%d", i)
		g.ask(run, "thread of "+run, id)
		g.decide(run, approve(id, g.clock.Now()))
		row := g.row(run)
		start := func(s ringi.Store, owner string) func() error {
			c := claim(row, owner, ringi.EventToolStarted)
			c.Changes = []ringi.RequestChange{spend(id)}
			return func() error { return s.Commit(ctx, c) }
		}
		w := oneWins(t, i, together(start(one, "own_1"), start(two, "own_2")), ringi.ErrBusy, ringi.ErrConflict)
		if got := g.row(run); got.Owner != []string{"own_1", "own_2"}[w] || got.Epoch != row.Epoch+1 {
			t.Fatalf("round %d: the row is %+v, want the winner's", i, got)
		}
		if recs := gapless(t, g, run); recs[len(recs)-1].Kind != ringi.EventToolStarted || recs[len(recs)-2].Kind == ringi.EventToolStarted {
			t.Fatalf("round %d: not exactly one start", i)
		}
		if i%20 == 0 {
			g.beat("own_1", "own_2")
		}
	}
}

// takeBackAgainstStart: an approval is taken back while the owner spends it.
func takeBackAgainstStart(t *testing.T, g *stage, one, two ringi.Store) {
	names := pendingInRuns(g, rounds())
	at := g.clock.Now()
	g.beat("own_1")
	for _, id := range names {
		c := settle(g.row("run_1"), ringi.EventApprovalDecided)
		c.Changes = []ringi.RequestChange{approve(id, at)}
		if err := g.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Commit(ctx, claim(g.row("run_1"), "own_1")); err != nil {
		t.Fatal(err)
	}
	for i, id := range names {
		errs := together(func() error {
			return again(one, "run_1", func(row ringi.RunRow) *ringi.Commit {
				c := next(row, ringi.EventToolStarted)
				c.Changes = []ringi.RequestChange{spend(id)}
				return c
			})
		}, func() error {
			return again(two, "run_1", func(row ringi.RunRow) *ringi.Commit {
				c := settle(row, ringi.EventApprovalTakenBack)
				c.Changes = []ringi.RequestChange{{ID: id, From: ringi.Granted, To: ringi.Withdrawn, Live: true}}
				return c
			})
		})
		want := ringi.Spent
		if errs[0] != nil {
			want = ringi.Withdrawn
			errs[0], errs[1] = errs[1], errs[0]
		}
		if c := inState(id, want)(errs[1]); errs[0] != nil || c != "" || g.request(id).State != want {
			t.Fatalf("round %d: the winner has %v; the loser: %s; the state is %s", i, errs[0], c, g.request(id).State)
		}
	}
	gapless(t, g, "run_1")
}

// decisionWhileAToolFinishes: no result is lost, no decision is lost.
func decisionWhileAToolFinishes(t *testing.T, g *stage, one, two ringi.Store) {
	names := pendingInRuns(g, rounds())
	g.beat("own_1")
	g.commit(claim(g.row("run_1"), "own_1"))
	at, epoch := g.clock.Now(), g.row("run_1").Epoch
	for i, id := range names {
		if err := g.Commit(ctx, next(g.row("run_1"), ringi.EventToolStarted)); err != nil {
			t.Fatal(err)
		}
		errs := together(func() error {
			return again(one, "run_1", func(row ringi.RunRow) *ringi.Commit {
				c := next(row, ringi.EventToolFinished)
				c.Progress = true
				c.Records[0].Payload = []byte("result " + id)
				return c
			})
		}, func() error {
			return again(two, "run_1", func(row ringi.RunRow) *ringi.Commit {
				c := settle(row, ringi.EventApprovalDecided)
				c.Changes = []ringi.RequestChange{approve(id, at)}
				c.Records[0].Payload = []byte("decision " + id)
				return c
			})
		})
		if errs[0] != nil || errs[1] != nil {
			t.Fatalf("round %d: owner %v, decider %v", i, errs[0], errs[1])
		}
	}
	recs := gapless(t, g, "run_1")[2+len(names):]
	if len(recs) != 3*len(names) {
		t.Fatalf("%d records, want three a round: %d", len(recs), 3*len(names))
	}
	for i, id := range names {
		a, b := string(recs[3*i+1].Payload), string(recs[3*i+2].Payload)
		if a > b {
			a, b = b, a
		}
		if a != "decision "+id || b != "result "+id {
			t.Fatalf("round %d has %q and %q", i, a, b)
		}
	}
	g.holds(t, "run_1", "own_1", epoch, 0)
}

func oneStartAThread(t *testing.T, g *stage, one, two ringi.Store) {
	for i := range rounds() / 10 {
		thread := fmt.Sprintf("thr_%d", i)
		var fs []func() error
		for n := range 6 {
			s := []ringi.Store{one, two}[n%2]
			c := first(fmt.Sprintf("run_%d_%d", i, n), thread)
			fs = append(fs, func() error { return s.Commit(ctx, c) })
		}
		w := oneWins(t, i, together(fs...), ringi.ErrRunOpen)
		order(t, "runs of the thread", ids(g.runs(ringi.RunQuery{Space: space, Thread: thread})), fmt.Sprintf("run_%d_%d", i, w))
	}
}

func oneClaim(t *testing.T, g *stage, one, two ringi.Store) {
	owners := []string{"own_0", "own_1", "own_2", "own_3", "own_4", "own_5"}
	for i := range rounds() / 10 {
		g.beat(owners...)
		run := fmt.Sprintf("run_%d", i)
		g.commit(first(run, "thread of "+run))
		row := g.row(run)
		var fs []func() error
		for n, o := range owners {
			s := []ringi.Store{one, two}[n%2]
			fs = append(fs, func() error { return s.Commit(ctx, claim(row, o)) })
		}
		w := oneWins(t, i, together(fs...), ringi.ErrBusy)
		g.holds(t, run, owners[w], 1, 1)
	}
}

// loadIsWhole: a reader beside a writer sees a row and records of one moment,
// and a transcript of whole runs.
func loadIsWhole(t *testing.T, g *stage, one, two ringi.Store) {
	row := g.begin("run_1", "thr_1", "own_1")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(stop)
		for range rounds() / 4 {
			if err := again(one, "run_1", func(row ringi.RunRow) *ringi.Commit {
				return next(row, ringi.EventToolStarted, ringi.EventToolFinished)
			}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	seen := row.Seq
	for reading := true; reading; {
		select {
		case <-stop:
			reading = false
		default:
		}
		run, err := two.Load(ctx, space, "run_1")
		if err != nil {
			t.Error(err)
			break
		}
		n := int64(len(run.Records))
		if run.Row.Seq != n || n%2 != 1 || run.Row.Head != run.Records[n-1].Hash || n < seen {
			t.Errorf("%d records under the row %+v, after %d were seen", n, run.Row, seen)
			break
		}
		seen = n
	}
	wg.Wait()
	if n := len(gapless(t, g, "run_1")); n != 1+2*(rounds()/4) {
		t.Errorf("%d records in the end", n)
	}
}
