package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// A message is tried at once and then as Standard Webhooks says, a tenth more or
// less, under the same id and with the same body; then it is a dead letter.
func TestSchedule(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusInternalServerError) })
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	d.book.finish("run_1")
	begun := d.clock.now()
	d.work()
	want := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for n, pause := range want {
		if n > 0 {
			next := d.status("one").Next
			off := float64(next.Sub(d.clock.now())) / float64(pause)
			if off < 0.9 || off > 1.1 {
				t.Errorf("try %d is due after %v, want %v", n+1, next.Sub(d.clock.now()), pause)
			}
			d.clock.turn(next.Sub(d.clock.now()) - time.Second)
			d.work()
			if _, ids := r.messages(); len(ids) != n {
				t.Fatalf("before try %d: %d came", n+1, len(ids))
			}
			d.clock.turn(time.Second)
			d.work()
		}
		got, ids := r.messages()
		if len(got) != n+1 || ids[n] != ids[0] || string(got[n].body) != string(got[0].body) {
			t.Fatalf("try %d: %q", n+1, ids)
		}
		if !strings.Contains(d.log.String(), fmt.Sprint("attempt=", n+1)) {
			t.Errorf("try %d is not in the log", n+1)
		}
	}
	dead := d.dead("one")
	if len(dead) != 1 || dead[0].Attempts != 10 || dead[0].Status != 500 || dead[0].Error != "status 500" || dead[0].RunID != "run_1" || dead[0].Type != RunFinished {
		t.Errorf("dead letters: %+v", dead)
	}
	if s := d.status("one"); s.Waiting != 0 || s.Dead != 1 || !s.DisabledAt.IsZero() {
		t.Errorf("%+v", s)
	}
	if all := d.clock.now().Sub(begun); all < 68*time.Hour || all > 84*time.Hour {
		t.Errorf("given up after %v", all)
	}
	d.clock.turn(100 * 24 * time.Hour)
	d.work()
	if _, ids := r.messages(); len(ids) != 10 {
		t.Errorf("a dead letter was sent")
	}
}

// What receivers do, and what becomes of the message after the first try.
func TestReceivers(t *testing.T) {
	var led atomic.Int64
	elsewhere := newReceiver(t, func(http.ResponseWriter, *http.Request, int) { led.Add(1) })
	for name, c := range map[string]struct {
		answer    func(w http.ResponseWriter, r *http.Request, n int)
		delivered bool
		why       string
	}{
		"204":             {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(204) }, true, ""},
		"200 with a text": {func(w http.ResponseWriter, _ *http.Request, _ int) { fmt.Fprint(w, "ok") }, true, ""},
		"202":             {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(202) }, true, ""},
		"huge answer":     {func(w http.ResponseWriter, _ *http.Request, _ int) { w.Write(make([]byte, 8<<20)) }, true, ""},
		"cookie":          {func(w http.ResponseWriter, _ *http.Request, _ int) { w.Header().Set("Set-Cookie", "a=b") }, true, ""},
		"301": {func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, elsewhere.URL, http.StatusMovedPermanently)
		}, false, "status 301"},
		"307": {func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, false, "status 307"},
		"304":              {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(304) }, false, "status 304"},
		"400":              {func(w http.ResponseWriter, _ *http.Request, _ int) { http.Error(w, "leave-this-out", 400) }, false, "status 400"},
		"429":              {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(429) }, false, "status 429"},
		"503":              {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(503) }, false, "status 503"},
		"hangs":            {func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }, false, "no answer in time"},
		"breaks off":       {func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }, false, "EOF"},
		"slow, but enough": {func(w http.ResponseWriter, _ *http.Request, _ int) { time.Sleep(50 * time.Millisecond) }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, c.answer)
			d := newDesk(t, to(t, 400*time.Millisecond, r, elsewhere), r.endpoint(t, "one"))
			d.book.finish("run_1")
			d.work()
			s := d.status("one")
			if c.delivered && (s.Delivered != 1 || s.Waiting != 0) || !c.delivered && (s.Delivered != 0 || s.Waiting != 1) {
				t.Errorf("%+v", s)
			}
			if !strings.Contains(s.Error, c.why) || strings.Contains(s.Error+d.log.String(), "in-the-address") || strings.Contains(s.Error, "leave-this-out") {
				t.Errorf("error %q\n%s", s.Error, d.log)
			}
		})
	}
	if led.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// What a client must not reach is a failed try like another.
func TestS35_EndpointInsideIsNotReached(t *testing.T) {
	r := newReceiver(t, nil)
	d := newDesk(t, nil, r.endpoint(t, "one"))
	d.book.finish("run_1")
	d.work()
	if _, ids := r.messages(); len(ids) != 0 {
		t.Error("loopback was reached")
	}
	if s := d.status("one"); s.Waiting != 1 || !strings.Contains(s.Error, "target refused") {
		t.Errorf("%+v", s)
	}
}

// 410 says that the receiver wants no more: nothing is sent or kept for it until
// an operator says otherwise.
func TestGoneDisables(t *testing.T) {
	gone := true
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		if gone {
			w.WriteHeader(http.StatusGone)
		}
	})
	other := newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r, other), r.endpoint(t, "gone"), other.endpoint(t, "other"))
	d.open(func(o *Options) { o.AtOnce = 1 })
	for n := range 3 {
		d.book.finish(fmt.Sprint("run_", n))
	}
	d.work()
	d.book.finish("run_later")
	d.work()
	if _, ids := r.messages(); len(ids) != 1 {
		t.Errorf("after 410 came %q", ids)
	}
	if s := d.status("gone"); s.DisabledAt.IsZero() || s.Dead != 3 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	if _, ids := other.messages(); len(ids) != 4 {
		t.Errorf("the other got %q", ids)
	}
	d.open() // it stays so over a restart
	d.work()
	gone = false
	if n, err := d.Retry(t.Context(), "gone", ""); n != 3 || err != nil {
		t.Fatalf("retry: %d, %v", n, err)
	}
	d.book.finish("run_last")
	d.work()
	if _, ids := r.messages(); len(ids) != 5 || slices.Contains(ids, "msg_later_2_finished") || !slices.Contains(ids, "msg_last_2_finished") {
		t.Errorf("enabled again, it got %q", ids)
	}
}

// An endpoint that hangs keeps nothing from another, and a message that fails
// nothing from a later one.
func TestNobodyWaitsForAnother(t *testing.T) {
	hold := make(chan struct{})
	hangs := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	picky := newReceiver(t, nil)
	picky.answer = func(w http.ResponseWriter, r *http.Request, _ int) {
		if strings.Contains(r.Header.Get(HeaderID), "_0_") {
			w.WriteHeader(500)
		}
	}
	d := newDesk(t, to(t, 30*time.Second, hangs, picky), hangs.endpoint(t, "hangs"), picky.endpoint(t, "picky"))
	for n := range 20 {
		d.book.add(fmt.Sprint("run_", n), started)
		d.book.add(fmt.Sprint("run_", n), finished)
	}
	for begun := time.Now(); time.Since(begun) < 90*time.Second; time.Sleep(5 * time.Millisecond) {
		if err := d.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ids := picky.messages(); len(ids) >= 20 {
			break
		}
	}
	if _, ids := picky.messages(); len(ids) != 20 {
		t.Errorf("beside one that hangs came %d", len(ids))
	}
	if _, ids := hangs.messages(); len(ids) != 4 { // AtOnce
		t.Errorf("on their way to the one that hangs: %d", len(ids))
	}
	close(hold)
	d.wg.Wait()
	d.work()
	if _, ids := hangs.messages(); len(ids) != 20 {
		t.Errorf("it let go, and got %d", len(ids))
	}
}

// What happens while no server runs is told by the next; who is new is told what
// happens from now on; nobody is told twice.
func TestPlacesOutliveTheServer(t *testing.T) {
	old, young := newReceiver(t, nil), newReceiver(t, nil)
	client := to(t, 0, old, young)
	d := newDesk(t, client, old.endpoint(t, "old"))
	d.open(func(o *Options) { o.AtOnce = 1 }) // in order
	d.book.finish("run_1")
	d.work()
	d.book.finish("run_2") // the server is down
	d.open(func(o *Options) { o.Endpoints = append(o.Endpoints, young.endpoint(t, "young")) })
	d.book.finish("run_3")
	d.work()
	d.open()
	d.work()
	if _, ids := old.messages(); fmt.Sprint(ids) != "[msg_1_2_finished msg_2_2_finished msg_3_2_finished]" {
		t.Errorf("old: %q", ids)
	}
	if _, ids := young.messages(); fmt.Sprint(ids) != "[msg_3_2_finished]" {
		t.Errorf("young: %q", ids)
	}
}

// Many endpoints, at different places, and more in the feed than one batch.
func TestEndpointsThatLagCatchUp(t *testing.T) {
	a, z := newReceiver(t, nil), newReceiver(t, nil)
	d := newDesk(t, to(t, 0, a, z), a.endpoint(t, "a"))
	d.size = 20
	d.open(func(o *Options) { o.AtOnce = 16 })
	const runs = 60 // two rows each
	for n := range runs / 2 {
		d.book.finish(fmt.Sprint("run_", n))
	}
	d.open(func(o *Options) { o.Endpoints = append(o.Endpoints, z.endpoint(t, "z", RunFinished)) }) // at another place
	for n := runs / 2; n < runs; n++ {
		d.book.finish(fmt.Sprint("run_", n))
	}
	d.work()
	for _, c := range []struct {
		r    *receiver
		want int
	}{{a, runs}, {z, runs - runs/2}} {
		_, ids := c.r.messages()
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != c.want || len(ids) != c.want {
			t.Errorf("%d came, %d different ones, want %d", len(ids), n, c.want)
		}
	}
	if d.book.asks > 2*runs {
		t.Errorf("%d runs were read %d times", runs, d.book.asks)
	}
}

// When an endpoint takes nothing, its queue is bounded (S-37): the rest stays in
// the feed, and is told later.
func TestS37_QueueIsBounded(t *testing.T) {
	down := true
	r, ok := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		if down {
			w.WriteHeader(500)
		}
	}), newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r, ok), r.endpoint(t, "down"), ok.endpoint(t, "ok"))
	const batch = 20
	d.size = batch
	d.open(func(o *Options) { o.MaxWaiting = 10 })
	for n := range 3 * batch {
		d.book.finish(fmt.Sprint("run_", n))
		if n%(batch/2) == 0 {
			if err := d.read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := d.status("down").Waiting; n < 10 || n > 10+batch {
		t.Errorf("%d wait", n)
	}
	down = false
	d.open(func(o *Options) { o.AtOnce = 16 })
	for range 20 {
		d.work()
	}
	for name, c := range map[string]*receiver{"down": r, "ok": ok} {
		_, ids := c.messages()
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != 3*batch {
			t.Errorf("%s got %d", name, n)
		}
	}
}

func TestTypes(t *testing.T) {
	r := newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one", ApprovalRequested, RunFinished))
	d.book.add("run_1", started)
	d.book.add("run_1", turn, request("req_1"))
	d.book.add("run_1", approved)
	d.book.add("run_1", finished)
	d.work()
	var types []Type
	got, _ := r.messages()
	for _, m := range got {
		types = append(types, m.message.Type)
	}
	slices.Sort(types)
	if fmt.Sprint(types) != "[approval.requested run.finished]" {
		t.Errorf("%q", types)
	}
}

// A run whose log does not hold is passed over, and the others are told; a store
// that does not answer is asked again.
func TestBrokenRunIsPassedOver(t *testing.T) {
	r := newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	d.book.errs["run_bad"] = fmt.Errorf("read: %w", ringi.ErrCorrupt)
	d.book.errs["run_later"] = errors.New("disk is slow")
	d.book.finish("run_bad")
	d.book.finish("run_good")
	d.book.finish("run_later")
	if err := d.step(t.Context()); err == nil {
		t.Error("the store's error is not told")
	}
	delete(d.book.errs, "run_later")
	d.work()
	if _, ids := r.messages(); len(ids) != 2 || slices.Contains(ids, "msg_bad_2_finished") {
		t.Errorf("%q", ids)
	}
}

// An endpoint that leaves the configuration keeps no queue; coming back it begins
// anew, and its dead letters can be sent.
func TestEndpointLeavesAndComesBack(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			w.WriteHeader(500)
		}
	})
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	all := d.opts.Endpoints
	d.book.finish("run_1")
	d.work()
	d.open(func(o *Options) { o.Endpoints = nil })
	d.book.finish("run_2")
	d.work()
	if dead := d.dead("one"); len(dead) != 1 || !strings.Contains(dead[0].Error, "not configured") {
		t.Fatalf("%+v", dead)
	}
	if _, err := d.Retry(t.Context(), "one", ""); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("retry of what is gone: %v", err)
	}
	d.open(func(o *Options) { o.Endpoints = all })
	if _, err := d.Retry(t.Context(), "one", "msg_2_2_finished"); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("retry of what is not there: %v", err)
	}
	if n, err := d.Retry(t.Context(), "one", "msg_1_2_finished"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	d.work()
	if _, ids := r.messages(); fmt.Sprint(ids) != "[msg_1_2_finished msg_1_2_finished]" {
		t.Errorf("%q", ids)
	}
}

// Another store, or an older copy of it, makes the numbers of the feed mean
// something else: then an endpoint begins with what is new.
func TestAnotherStoreBeginsAnew(t *testing.T) {
	r := newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	for n := range 5 {
		d.book.finish(fmt.Sprint("run_", n))
	}
	d.work()
	older := newBook()
	older.finish("run_old")
	d.open(func(o *Options) { o.Log, o.Runs = older, older })
	older.finish("run_new")
	d.work()
	if got, ids := r.messages(); len(got) != 6 || ids[5] != "msg_new_2_finished" || !strings.Contains(d.log.String(), "begins anew") {
		t.Errorf("%q", ids)
	}
}

// A send that was not recorded, as its process was killed, is made again under
// the same id; but not while it may still be on its way.
func TestUnrecordedSendIsRepeated(t *testing.T) {
	r := newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	d.book.finish("run_1")
	if err := d.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := d.dueFor(t.Context(), "one", 10)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if mine, err := d.claim(t.Context(), "one", list[0]); !mine || err != nil {
		t.Fatal(mine, err)
	}
	if mine, err := d.claim(t.Context(), "one", list[0]); mine || err != nil {
		t.Fatalf("claimed twice: %v", err)
	}
	if _, err := d.post(t.Context(), d.endpoints["one"], list[0].id, []byte(list[0].body)); err != nil {
		t.Fatal(err)
	}
	d.open() // killed here
	d.work()
	if _, ids := r.messages(); len(ids) != 1 {
		t.Fatalf("while it may be on its way: %q", ids)
	}
	d.clock.turn(claim + time.Second)
	d.work()
	if _, ids := r.messages(); len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("%q", ids)
	}
	// The old process wakes up, and records nothing over what the new one did.
	if _, err := d.record(t.Context(), "one", list[0], 500, errors.New("late")); err != nil {
		t.Fatal(err)
	}
	if s := d.status("one"); s.Delivered != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// Two servers over one table send each message once.
func TestTwoServersShareATable(t *testing.T) {
	r := newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	o := d.opts
	o.Look, o.Now, o.DB = time.Millisecond, nil, d.opts.DB
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for range 2 {
		b, err := Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- b.Run(ctx) }()
	}
	const runs = 60
	for n := range runs {
		d.book.finish(fmt.Sprint("run_", n))
		time.Sleep(time.Millisecond)
	}
	for begun := time.Now(); time.Since(begun) < 90*time.Second && d.status("one").Delivered < runs; {
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	_, ids := r.messages()
	slices.Sort(ids)
	if len(ids) != runs || len(slices.Compact(ids)) != runs {
		t.Errorf("%d came", len(ids))
	}
}

// A server that stops finishes what is on its way, and records it.
func TestStopIsGraceful(t *testing.T) {
	begun := make(chan struct{}, 1)
	r := newReceiver(t, func(http.ResponseWriter, *http.Request, int) {
		begun <- struct{}{}
		time.Sleep(200 * time.Millisecond)
	})
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	d.book.finish("run_1")
	<-begun
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := d.status("one"); s.Delivered != 1 {
		t.Errorf("%+v", s)
	}
}

func TestSendTest(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 2 {
			w.WriteHeader(404)
		}
	})
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	if status, err := d.SendTest(t.Context(), "one"); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if status, err := d.SendTest(t.Context(), "one"); status != 404 || err == nil || strings.Contains(err.Error(), "in-the-address") {
		t.Errorf("%d, %v", status, err)
	}
	if _, err := d.SendTest(t.Context(), "two"); !errors.Is(err, ringi.ErrNotFound) {
		t.Error(err)
	}
	got, ids := r.messages()
	if got[0].message.Type != Test || ids[0] == ids[1] || d.status("one").Delivered != 0 {
		t.Errorf("%q", ids)
	}
}

func TestOldRowsGoAndErasedRunsAreForgotten(t *testing.T) {
	r := newReceiver(t, nil)
	d := newDesk(t, to(t, 0, r), r.endpoint(t, "one"))
	d.book.finish("run_1")
	d.book.finish("run_2")
	d.work()
	if err := d.Forget(t.Context(), "run_1"); err != nil || d.status("one").Delivered != 1 {
		t.Errorf("forgotten: %v, %+v", err, d.status("one"))
	}
	d.clock.turn(6 * 24 * time.Hour)
	if err := d.prune(t.Context()); err != nil || d.status("one").Delivered != 1 {
		t.Errorf("after 6 days: %v, %+v", err, d.status("one"))
	}
	d.clock.turn(2 * 24 * time.Hour)
	if err := d.prune(t.Context()); err != nil || d.status("one").Delivered != 0 {
		t.Errorf("after 8 days: %v, %+v", err, d.status("one"))
	}
	d.work()
	if _, ids := r.messages(); len(ids) != 2 {
		t.Errorf("a row that went was told again: %q", ids)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	r := newReceiver(t, nil)
	good := r.endpoint(t, "one")
	with := func(change func(*Endpoint)) []Endpoint {
		e := good
		change(&e)
		return []Endpoint{e}
	}
	var many []Endpoint
	for n := range MaxEndpoints + 1 {
		many = append(many, r.endpoint(t, fmt.Sprint("e", n)))
	}
	db := openDB(t, t.TempDir()+"/webhook.db")
	for name, o := range map[string]Options{
		"no database":  {Endpoints: []Endpoint{good}},
		"dialect":      {DB: db, Dialect: "oracle"},
		"look":         {DB: db, Look: -1},
		"at once":      {DB: db, AtOnce: -1},
		"too many":     {DB: db, Endpoints: many},
		"twice":        {DB: db, Endpoints: []Endpoint{good, good}},
		"no name":      {DB: db, Endpoints: with(func(e *Endpoint) { e.Name = "" })},
		"name":         {DB: db, Endpoints: with(func(e *Endpoint) { e.Name = "a b" })},
		"no secret":    {DB: db, Endpoints: with(func(e *Endpoint) { e.Secrets = nil })},
		"type":         {DB: db, Endpoints: with(func(e *Endpoint) { e.Types = []Type{"run.finish"} })},
		"test":         {DB: db, Endpoints: with(func(e *Endpoint) { e.Types = []Type{Test} })},
		"no address":   {DB: db, Endpoints: with(func(e *Endpoint) { e.URL = "" })},
		"scheme":       {DB: db, Endpoints: with(func(e *Endpoint) { e.URL = "ftp://in-the-address/" })},
		"user":         {DB: db, Endpoints: with(func(e *Endpoint) { e.URL = "https://in-the-address:x@host/" })},
		"fragment":     {DB: db, Endpoints: with(func(e *Endpoint) { e.URL = "https://host/#in-the-address" })},
		"no such form": {DB: db, Endpoints: with(func(e *Endpoint) { e.URL = "https://host/in-the-address%zz\x7f" })},
	} {
		if _, err := Open(t.Context(), o); err == nil || strings.Contains(err.Error(), "in-the-address") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := Open(t.Context(), Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context()); err == nil {
		t.Error("it runs without a log")
	}
}

// A table that a newer program made is not touched.
func TestNewerTableIsRefused(t *testing.T) {
	d := newDesk(t, nil)
	if _, err := d.opts.DB.Exec(`INSERT INTO webhook_migrations (version, name, applied_at) VALUES (99, 'later', 0)`); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), d.opts); err == nil || !strings.Contains(err.Error(), "newer program") {
		t.Error(err)
	}
}

func TestPlaceholders(t *testing.T) {
	if got := (&tables{dialect: PostgreSQL}).bind(`a = ? AND b = ?`); got != `a = $1 AND b = $2` {
		t.Error(got)
	}
}
