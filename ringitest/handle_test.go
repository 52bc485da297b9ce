package ringitest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/store/memory"
)

// TestADeadHandleRefusesEverything calls every method of the interface, so that
// one which comes later is held too.
func TestADeadHandleRefusesEverything(t *testing.T) {
	h := &handle{} // whoever reaches the store beneath panics
	h.die()
	of := reflect.TypeFor[ringi.Store]()
	for i := range of.NumMethod() {
		m := of.Method(i)
		if m.Name == "Close" {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for k := 1; k < m.Type.NumIn(); k++ {
			args = append(args, reflect.Zero(m.Type.In(k)))
		}
		out := reflect.ValueOf(h).MethodByName(m.Name).Call(args)
		if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, ErrCrashed) {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

// TestALivingHandlePassesOn holds what a handle returns against its store.
func TestALivingHandlePassesOn(t *testing.T) {
	ctx := t.Context()
	var clock Clock
	store := memory.New(memory.Options{Now: clock.Now})
	h := &handle{store: store}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.Beat(ctx, "own_1", time.Minute))
	must(h.SaveTool(ctx, "d", []byte("{}")))
	must(h.SetFlag(ctx, "simulated", "yes"))
	must(h.RememberKey(ctx, "k", "check"))
	must(h.Attempt(ctx, ringi.Attempt{Space: "default", RunID: "run_1", Kind: "refused", At: clock.Now()}))
	must(h.Commit(ctx, &ringi.Commit{Space: "default", RunID: "run_1", Owner: "own_1", Claim: true,
		Records:  []ringi.Record{{Seq: 1, Kind: ringi.EventRunStarted, Head: []byte("h"), Payload: []byte("p"), Salt: []byte("s")}},
		Row:      ringi.RunRow{Space: "default", ID: "run_1", Thread: "thr_1", Status: ringi.Running, Seq: 1},
		Requests: []ringi.RequestRow{{Space: "default", ID: "req_1", RunID: "run_1", Thread: "thr_1", State: ringi.Pending, CreatedAt: clock.Now()}}}))
	for name, read := range map[string]func(s ringi.Store) (any, error){
		"ID":         func(s ringi.Store) (any, error) { return s.ID(ctx) },
		"Now":        func(s ringi.Store) (any, error) { return s.Now(ctx) },
		"Load":       func(s ringi.Store) (any, error) { return s.Load(ctx, "default", "run_1") },
		"Row":        func(s ringi.Store) (any, error) { return s.Row(ctx, "default", "run_1") },
		"Transcript": func(s ringi.Store) (any, error) { return s.Transcript(ctx, "default", "thr_1") },
		"Runs":       func(s ringi.Store) (any, error) { return s.Runs(ctx, ringi.RunQuery{Space: "default"}) },
		"Runnable":   func(s ringi.Store) (any, error) { return s.Runnable(ctx, 1) },
		"Request":    func(s ringi.Store) (any, error) { return s.Request(ctx, "default", "req_1") },
		"Requests":   func(s ringi.Store) (any, error) { return s.Requests(ctx, ringi.RequestQuery{Space: "default"}) },
		"RequestCount": func(s ringi.Store) (any, error) {
			return s.RequestCount(ctx, ringi.RequestQuery{Space: "default"}, 1)
		},
		"Tool":     func(s ringi.Store) (any, error) { return s.Tool(ctx, "d") },
		"Attempts": func(s ringi.Store) (any, error) { return s.Attempts(ctx, "default", "run_1") },
		"Keys":     func(s ringi.Store) (any, error) { return s.Keys(ctx) },
		"Flag":     func(s ringi.Store) (any, error) { return s.Flag(ctx, "simulated") },
	} {
		got, err := read(h)
		want, wantErr := read(store)
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, want, wantErr)
		}
	}
	must(h.Close())
	if _, err := store.ID(context.Background()); err != nil {
		t.Errorf("closing a handle closes the store: %v", err)
	}
}
