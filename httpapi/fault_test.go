package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/store/sqlite"
)

var errDisk = errors.New("disk is not well today")

// faulty is a store on whose disk one write of five fails: half of these after
// it was made, which nobody can tell. One read of twenty fails too.
type faulty struct {
	*sqlite.Store
	mu     sync.Mutex
	rng    *rand.Rand // nil: all is well
	faults int
}

func (f *faulty) fails(share float64) (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng == nil || f.rng.Float64() >= share {
		return false, false
	}
	f.faults++
	after = f.rng.IntN(2) == 0
	return !after, after
}

func (f *faulty) ail(seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rng = rand.New(rand.NewPCG(seed, 1))
}

func (f *faulty) heal() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rng = nil
	return f.faults
}

func (f *faulty) commit(do func() error) error {
	before, after := f.fails(0.2)
	if before {
		return errDisk
	}
	err := do()
	if after && err == nil {
		err = errDisk
	}
	return err
}

func (f *faulty) Commit(ctx context.Context, c *ringi.Commit) error {
	return f.commit(func() error { return f.Store.Commit(ctx, c) })
}

func (f *faulty) CommitAdmitted(ctx context.Context, c *ringi.Commit, admit func(context.Context, ringi.Ledger) error) error {
	return f.commit(func() error { return f.Store.CommitAdmitted(ctx, c, admit) })
}

func (f *faulty) Load(ctx context.Context, space, run string) (*ringi.StoredRun, error) {
	if before, after := f.fails(0.05); before || after {
		return nil, errDisk
	}
	return f.Store.Load(ctx, space, run)
}

func (f *faulty) Request(ctx context.Context, space, id string) (ringi.RequestRow, error) {
	if before, after := f.fails(0.05); before || after {
		return ringi.RequestRow{}, errDisk
	}
	return f.Store.Request(ctx, space, id)
}

// Promise 3 at a server whose disk fails: who is told that he decided finds just
// that in the log; whoever is told that it could not be recorded learns by the
// same Idempotency-Key what became of it; what was approved runs once, or is
// known not to be known; and no run is stranded.
func TestServedWithAStoreThatFails(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := &faulty{}
	w := newWorld(t, setting{store: func(s *sqlite.Store) ringi.Store { f.Store = s; return f }})
	people := []string{"ben", "bea"}
	for i := range 6 {
		name := fmt.Sprint("approver", i)
		u := access.User{ID: access.LocalID(name), Name: name, Roles: []access.Role{access.RoleApprover}}
		w.must(w.dir.AddUser(t.Context(), operator, u))
		w.tokenFor(access.NewToken{Kind: access.PersonToken, Name: name, Owner: u.ID, Scopes: []access.Scope{access.ScopeRead, access.ScopeDecide}})
		people = append(people, name)
	}
	var all []request
	for range 20 {
		r := w.start("uma", "shop", "refund 5 5 5")
		for i := range r.Pending {
			all = append(all, w.asked("ben", run{Pending: r.Pending[i : i+1]}))
		}
	}
	f.ail(seed)
	var mu sync.Mutex
	told := map[string][]string{} // request → who was told that he decided, and what
	statuses := map[int]int{}
	var wg sync.WaitGroup
	for i, who := range people {
		wg.Go(func() {
			answer := []string{"approve", "deny"}[i%2]
			for j := range all {
				q := all[(j+i*7)%len(all)]
				status := w.insist(who, q, answer, func(status int) { mu.Lock(); statuses[status]++; mu.Unlock() })
				if status == 200 || status == 201 {
					mu.Lock()
					told[q.ID] = append(told[q.ID], access.LocalID(who)+" "+answer)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	faults := f.heal()
	unknown := w.settledAs(all, told)
	if statuses[201]+statuses[200] != len(all) {
		t.Errorf("answers %v: of %d requests somebody knows nothing of his own decision", statuses, len(all))
	}
	if faults < 20 || statuses[500]+statuses[503] == 0 {
		t.Errorf("%d faults, answers %v: it tried nothing", faults, statuses)
	}
	t.Logf("%d faults; answers %v; %d of %d calls are not known", faults, statuses, unknown, len(all))
}

// insist decides, again and again with one key, until the answer is no 5xx.
func (w *world) insist(who string, q request, answer string, saw func(int)) int {
	key := who + "-" + q.ID
	for range 200 {
		got := w.decide(who, q, `{"answer":"`+answer+`"}`, "Idempotency-Key", key)
		if saw(got.status); got.status < 500 {
			if strings.Contains(got.body, "in-flight") {
				w.t.Errorf("%s: the first try has ended, and its repeat is told otherwise", who)
			}
			return got.status
		}
		time.Sleep(time.Millisecond)
	}
	w.t.Errorf("%s gets no answer for %s", who, q.ID)
	return 0
}

// settledAs holds what people were told against the logs and what ran; it returns
// how many calls wait for somebody to say what became of them.
func (w *world) settledAs(all []request, told map[string][]string) (unknown int) {
	decided := map[string]string{}
	open, waits := map[string]bool{}, map[string]bool{} // calls, and runs in which one is not known
	for _, run := range slices.Sorted(maps.Keys(runsOf(all))) {
		for end := time.Now().Add(90 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			row, err := w.router.Row(w.t.Context(), run)
			w.must(err)
			if row.Status.Final() || row.Status == ringi.WaitingForOutcome {
				break
			}
			if time.Now().After(end) {
				w.t.Fatalf("run %s is %s: stranded", run, row.Status)
			}
		}
		events, err := w.router.Events(w.t.Context(), run, 0)
		w.must(err)
		for _, ev := range events {
			switch b := ev.Body.(type) {
			case *ringi.ApprovalDecided:
				if decided[b.Request] != "" {
					w.t.Errorf("request %s is decided twice", b.Request)
				}
				decided[b.Request] = b.By.ID + " " + string(b.Answer)
			case *ringi.OutcomeUnknown:
				open[b.Call], waits[run] = true, true
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range all {
		for _, one := range told[q.ID] {
			if decided[q.ID] != one {
				w.t.Errorf("request %s: %q was told so, and the log has %q", q.ID, one, decided[q.ID])
			}
		}
		if len(told[q.ID]) > 1 || decided[q.ID] == "" {
			w.t.Errorf("request %s: told %v, the log has %q", q.ID, told[q.ID], decided[q.ID])
		}
		want := 0
		if approved := decided[q.ID]; len(approved) > 7 && approved[len(approved)-7:] == "approve" {
			want = 1
		}
		switch n := w.ran[q.Call.ID]; {
		case open[q.Call.ID] && n <= 1:
			unknown++
		case waits[q.RunID] && n == 0: // no write starts before it is known
		case n != want:
			w.t.Errorf("call %s ran %d times, want %d: %s", q.Call.ID, n, want, decided[q.ID])
		}
	}
	return unknown
}

func runsOf(all []request) map[string]bool {
	runs := map[string]bool{}
	for _, q := range all {
		runs[q.RunID] = true
	}
	return runs
}
