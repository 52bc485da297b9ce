package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
)

func ringOf(t *testing.T, letters string) *sign.Keyring {
	t.Helper()
	var secrets [][]byte
	for _, l := range letters {
		secrets = append(secrets, bytes.Repeat([]byte{byte(l)}, 32))
	}
	k, err := sign.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// with is an engine of this world under other keys.
func (w *world) with(letters string) *engine.Engine {
	w.t.Helper()
	w.cfg.Keyring = ringOf(w.t, letters)
	return w.engine()
}

// rotated is a world whose first key, a, has signed a run that ended and one
// that waits; then key b signs.
func rotated(t *testing.T) (w *world, oldID, ended, waits string) {
	w = newWorld(t)
	w.says(calls("pay", `{"n":1}`))
	e := w.with("a")
	done := w.run(e, ringi.RunStart{By: ana, Thread: "thr_done"})
	w.decide(e, done.Pending[0].Deny(ben, ""))
	wantStatus(t, w.resume(e, done.RunID), ringi.Completed, 0)
	open := w.run(e, ringi.RunStart{By: ana})
	wantStatus(t, open, ringi.WaitingForApproval, 1)
	return w, w.cfg.Keyring.SigningID(), done.RunID, open.RunID
}

func held(t *testing.T, err error) *engine.KeyHeldError {
	t.Helper()
	h, ok := errors.AsType[*engine.KeyHeldError](err)
	if !ok {
		t.Fatalf("error %v, want a *KeyHeldError", err)
	}
	return h
}

func TestS19_RetireKey_HeldUntilNothingIsOpen(t *testing.T) {
	w, old, ended, waits := rotated(t)
	ctx := t.Context()

	e := w.with("ba")
	_, err := e.RetireKey(ctx, old, ana)
	h := held(t, err)
	if h.Open != 2 || h.Holds[0].RunID != waits || h.Holds[1].RequestID == "" || !strings.Contains(err.Error(), "it is pending") {
		t.Errorf("a pending request: %+v: %v", h, err)
	}

	page, err := e.Requests(ctx, ringi.RequestQuery{})
	if err != nil || len(page.Requests) != 1 {
		t.Fatal(page, err)
	}
	w.decide(e, page.Requests[0].Approve(ben)) // by key b, the request by key a
	_, err = e.RetireKey(ctx, old, ana)
	if h := held(t, err); h.Open != 1 || h.Holds[0].RequestID != page.Requests[0].ID || !strings.Contains(err.Error(), "its approval is not spent") {
		t.Errorf("an unspent approval: %+v: %v", h, err)
	}
	w.cfg.Keyring = ringOf(t, "b")
	if _, err := engine.New(w.cfg); !errors.Is(err, ringi.ErrNoKey) {
		t.Errorf("an engine without a key that is held: %v, want ErrNoKey", err)
	}

	wantStatus(t, w.resume(e, waits), ringi.Completed, 0)
	u, err := e.RetireKey(ctx, old, ana)
	if err != nil || u.Open != 0 || u.Ended != 1 {
		t.Fatalf("retired: %+v, %v", u, err)
	}
	_, err = e.RetireKey(ctx, old, ana)
	wantErr(t, err, ringi.ErrNotFound)

	// Without the key an engine starts, and its runs go on.
	e = w.with("b")
	wantStatus(t, w.run(e, ringi.RunStart{By: ana}), ringi.WaitingForApproval, 1)
	w.wantRan(`pay {"n":1}`)
	retiredIsNotCorrupt(t, w, e, old, ended, waits)
}

// retiredIsNotCorrupt: what the retired key alone authenticates is said to be
// that, no more is done with it, and the secret brings it back.
func retiredIsNotCorrupt(t *testing.T, w *world, e *engine.Engine, old, ended, later string) {
	t.Helper()
	ctx := t.Context()
	for _, run := range []string{ended, later} { // by its commit, and by its request
		v, err := e.Verify(ctx, run)
		gone, ok := errors.AsType[*engine.NoKeyError](err)
		if !ok || gone.Key != old || gone.RetiredBy != "ana" || gone.RetiredAt.IsZero() || v.Broken != "" {
			t.Errorf("verify %s: %+v, %v", run, v, err)
		}
		wantErr(t, err, ringi.ErrNoKey)
	}
	_, err := e.Run(ctx, ringi.RunStart{By: ana, Thread: "thr_done", Messages: []ringi.Message{ringi.User("go on")}})
	wantErr(t, err, ringi.ErrNoKey)
	for _, run := range []string{ended, later} {
		if row, err := w.store.Row(ctx, "default", run); err != nil || row.Corrupt != "" {
			t.Errorf("row of %s: %+v, %v", run, row, err)
		}
	}
	both := w.with("ba")
	for _, run := range []string{ended, later} {
		if v, err := both.Verify(ctx, run); err != nil || v.Broken != "" || !v.Signed || v.Requests != 1 || v.Decisions != 1 {
			t.Errorf("verify %s with both keys: %+v, %v", run, v, err)
		}
	}
	wantStatus(t, w.run(both, ringi.RunStart{By: ana, Thread: "thr_done"}), ringi.WaitingForApproval, 1)
}

func TestS19_RetireKey_Refuses(t *testing.T) {
	w, old, _, _ := rotated(t)
	ctx := t.Context()
	e := w.with("ba")
	_, err := e.RetireKey(ctx, old, ringi.Principal{})
	wantErr(t, err, ringi.ErrNoPrincipal)
	_, err = e.RetireKey(ctx, "0123456789abcdef", ana)
	wantErr(t, err, ringi.ErrNotFound)
	if _, err := e.RetireKey(ctx, w.cfg.Keyring.SigningID(), ana); err == nil || !strings.Contains(err.Error(), "signs with it") {
		t.Errorf("the key that signs: %v", err)
	}
	w.cfg.ReadOnly = true
	reader := w.engine()
	if _, err := reader.RetireKey(ctx, old, ana); err == nil {
		t.Error("a read-only engine retired a key")
	}
	if used, _ := w.store.Keys(ctx); len(used) != 2 {
		t.Errorf("the keys are %v", used)
	}

	// Another space of the store holds it as well.
	w = newWorld(t)
	w.says(calls("pay", `{"n":1}`))
	w.cfg.Space = "other"
	w.run(w.with("a"), ringi.RunStart{By: ana})
	w.cfg.Space = ""
	_, err = w.with("ba").RetireKey(ctx, old, ana)
	if h := held(t, err); h.Holds[0].Space != "other" {
		t.Errorf("held by %+v", h)
	}
}

// An outcome that nobody knows holds the key of the request that led to it.
func TestS19_RetireKey_UnknownOutcomeHoldsIt(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "boom", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { panic("boom") })
	w.says(calls("boom", `{}`))
	e := w.with("a")
	old := w.cfg.Keyring.SigningID()
	res := w.run(e, ringi.RunStart{By: ana})
	w.decide(e, res.Pending[0].Approve(ben))
	e = w.with("ba")
	res = w.resume(e, res.RunID) // spent, and asked about, by key b
	wantStatus(t, res, ringi.WaitingForOutcome, 1)
	_, err := e.RetireKey(t.Context(), old, ana)
	if h := held(t, err); h.Open != 1 || !strings.Contains(err.Error(), "its call has no result yet") {
		t.Errorf("held by %+v: %v", h, err)
	}
	w.decide(e, res.Pending[0].Ran(ben, "it did"))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	if _, err := e.RetireKey(t.Context(), old, ana); err != nil {
		t.Error(err)
	}
}

// racing begins a run with the old key between the look and the drop.
type racing struct {
	ringi.Store
	begin func()
}

func (r *racing) ForgetKey(ctx context.Context, id string) error {
	r.begin()
	return r.Store.ForgetKey(ctx, id)
}

func TestS19_RetireKey_ARunThatBeganMeanwhileKeepsIt(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{"n":1}`))
	slow := w.with("a")
	old := w.cfg.Keyring.SigningID()
	w.cfg.Store = &racing{w.store, func() { w.run(slow, ringi.RunStart{By: ana}) }}
	_, err := w.with("ba").RetireKey(t.Context(), old, ana)
	if h := held(t, err); h.Open != 2 {
		t.Errorf("held by %+v", h)
	}
	if used, _ := w.store.Keys(t.Context()); len(used) != 2 {
		t.Errorf("the keys are %v", used)
	}
}

func TestS19_KeysSayWhatEachHolds(t *testing.T) {
	w, old, _, waits := rotated(t)
	w.run(w.with("ba"), ringi.RunStart{By: ana})
	w.cfg.Keyring, w.cfg.ReadOnly = nil, true
	for _, letters := range []string{"", "ba"} {
		if letters != "" {
			w.cfg.Keyring = ringOf(t, letters)
		}
		uses, err := w.engine().Keys(t.Context())
		if err != nil || len(uses) != 2 || uses[0].ID >= uses[1].ID {
			t.Fatal(uses, err)
		}
		for _, u := range uses {
			isOld, ended := u.ID == old, 0
			if isOld {
				ended = 1
			}
			if u.Open != 2 || len(u.Holds) != 2 || (u.Holds[0].RunID == waits) != isOld || u.Ended != ended ||
				u.Here != (letters != "") || u.Signs != (letters != "" && !isOld) {
				t.Errorf("keys %q: %+v", letters, u)
			}
		}
	}

	// A run that this process cannot read may hold anything.
	w.cfg.Keyring = ringOf(t, "b")
	uses, err := w.engine().Keys(t.Context())
	if err != nil || uses[0].Open+uses[1].Open != 4 || !strings.Contains(fmt.Sprint(uses), "cannot be read") {
		t.Errorf("with one of two keys: %+v, %v", uses, err)
	}
}
