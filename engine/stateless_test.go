package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/sqlite"
)

func (w *world) stateless() *engine.Stateless {
	w.t.Helper()
	k, err := sign.New([]byte("0123456789abcdef0123456789abcdef"))
	must(w.t, err)
	w.cfg.Keyring = k
	if w.cfg.Store == ringi.Store(w.store) {
		store, err := sqlite.Open(filepath.Join(w.t.TempDir(), "ringi.db"), sqlite.Options{Now: w.now})
		must(w.t, err)
		w.t.Cleanup(func() { store.Close() })
		w.cfg.Store = store
	}
	s, err := w.engine().Stateless()
	must(w.t, err)
	return s
}

// post is a stateless entry of a process of its own, over a store that does not
// say that it is volatile.
func (w *world) post() *engine.Stateless {
	w.t.Helper()
	if w.cfg.Keyring == nil {
		w.cfg.Keyring = keyring(w.t)
	}
	if w.cfg.Store == ringi.Store(w.store) {
		w.meddled()
	}
	s, err := w.engine().Stateless()
	must(w.t, err)
	return s
}

// asked posts a turn that must ask, and gives what the client keeps.
func (w *world) asked(s *engine.Stateless, pairs ...string) (engine.ClientTurn, engine.Asked) {
	w.t.Helper()
	turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: []ringi.Message{ringi.User("go")}, Turn: *calls(pairs...)}
	asked, err := s.Ask(w.t.Context(), turn)
	must(w.t, err)
	if len(asked.Pending) == 0 || asked.Token == "" || asked.Result != nil {
		w.t.Fatalf("asked %+v", asked)
	}
	turn.Turn = ringi.ModelTurn{}
	return turn, asked
}

// wantNothingStored holds that no run was made.
func (w *world) wantNothingStored() {
	w.t.Helper()
	rows, err := w.store.Runs(context.Background(), ringi.RunQuery{Space: "default"})
	if err != nil || len(rows) != 0 {
		w.t.Errorf("the store holds %d runs, %v", len(rows), err)
	}
}

func TestStatelessImportsAndRunsOnce(t *testing.T) {
	w := newWorld(t)
	s := w.stateless()
	turn := engine.ClientTurn{Thread: "chat-1", By: ana, Messages: []ringi.Message{ringi.User("pay 5 to Bo")},
		Turn: *calls("find", `{"n":1.0}`, "pay", `{"n":5}`)}
	asked, err := s.Ask(t.Context(), turn)
	must(t, err)
	if len(asked.Pending) != 1 || asked.Result != nil {
		t.Fatalf("asked %+v", asked)
	}
	w.wantRan()
	rows, err := w.cfg.Store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	if err != nil || len(rows) != 0 {
		t.Fatalf("before the answer the store holds %d runs, %v", len(rows), err)
	}
	other := w.stateless() // another machine on the same store
	turn.Turn = ringi.ModelTurn{}
	for range 2 {
		res, err := other.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ringi.Principal{})})
		must(t, err)
		wantStatus(t, res, ringi.Completed, 0)
		if len(res.Results) != 2 || res.Results[1].Output != "ok pay" {
			b, _ := json.Marshal(res)
			t.Fatalf("results %s", b)
		}
	}
	w.wantRan(`find {"n":1.0}`, `pay {"n":5}`)
}
