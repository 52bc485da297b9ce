package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// Every call of a turn is settled on its own: what runs unasked, what is
// approved, denied, answered by a person, refused by policy, not valid and
// unknown stand side by side, in the model's order.
func TestStateless_EveryAnswerBesideEveryRefusal(t *testing.T) {
	w := newWorld(t)
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"look": {Status: ringi.Denied, Reason: "by the book"}, "put": {Status: ringi.Approved}}
	s := w.post()
	turn, asked := w.asked(s, "find", `{"n":1.0}`, "pay", `{"n":1}`, "look", `{}`, "pay", `{"n":2}`, "nothing", `{}`, "pay", `{"n":3}`, "put", `{"n":4}`, "pay", `{"n":`)
	if len(asked.Pending) != 3 {
		t.Fatalf("%d requests", len(asked.Pending))
	}
	w.wantRan()
	w.wantNothingStored()
	p := asked.Pending
	// The answers come in any order; By and Channel are not the client's.
	deny := p[1].Deny(ben, "not today")
	deny.Channel = "inbox"
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{p[2].Respond(ringi.Principal{}, []byte(`"paid by hand"`)), deny, p[0].Approve(ben)})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`find {"n":1.0}`, `pay {"n":1}`, `put {"n":4}`)
	want := []struct {
		outcome ringi.CallOutcome
		code    ringi.ResultCode
		text    string
		by      string
	}{
		{ringi.OutcomeOK, "", "ok find", ""}, {ringi.OutcomeOK, "", "ok pay", "ana"}, {ringi.OutcomeDenied, ringi.CodeDeniedByPolicy, "by the book", ""},
		{ringi.OutcomeDenied, ringi.CodeDeniedByPerson, "not today", "ana"}, {ringi.OutcomeInvalid, ringi.CodeUnknownTool, "nothing was executed", ""},
		{ringi.OutcomeResponded, "", "paid by hand", "ana"}, {ringi.OutcomeOK, "", "ok put", ""}, {ringi.OutcomeInvalid, ringi.CodeInvalidInput, "not executed", ""},
	}
	if len(res.Results) != len(want) {
		t.Fatalf("%d results", len(res.Results))
	}
	for i, r := range res.Results {
		if x := want[i]; r.Outcome != x.outcome || r.Code != x.code || !strings.Contains(r.Text(), x.text) || r.Approval.By != x.by || r.ModelID == "" {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	for _, d := range bodiesOf[*ringi.ApprovalDecided](w.logOf(res.RunID)) {
		if d.By.ID != "ana" || d.By.Auth != "test" || d.Channel != "client" || d.Signature == "" {
			t.Errorf("recorded decision %+v", d)
		}
	}
}

// An edit is a proposal: its successor lives in the store, in every inbox, and
// is approved there, or in the same post.
func TestStateless_AnEditIsANewRequestInTheStore(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	turn, asked := w.asked(s, "pay", `{"n":1}`)
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Edit(ana, []byte(`{"n":2}`))})
	must(t, err)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.wantRan()
	e := w.restart()
	page, err := e.Requests(t.Context(), ringi.RequestQuery{Thread: "chat"})
	if err != nil || len(page.Requests) != 1 {
		t.Fatalf("the inbox holds %+v, %v", page.Requests, err)
	}
	next := page.Requests[0]
	if next.Proposed != `{"n":1}` || next.Call.Input != `{"n":2}` || next.ProposedBy != "ana" || next.Replaces != asked.Pending[0].ID ||
		next.ExpiresAt.Sub(next.CreatedAt) != time.Hour {
		t.Errorf("the successor is %+v", next)
	}
	w.decide(e, next.Approve(ben))
	res = w.resume(w.restart(), res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`pay {"n":2}`)
	if a := res.Results[0].Approval; a.By != "ben" || a.Executed != `{"n":2}` {
		t.Errorf("the record is %+v", a)
	}
	wantVerified(t, e, res.RunID)
}

func TestStateless_AnEditThatApproves(t *testing.T) {
	w := newWorld(t)
	w.cfg.Model = nil // the client's turns need none
	s := w.post()
	turn, asked := w.asked(s, "pay", `{"n":1}`)
	d := asked.Pending[0].Edit(ana, []byte(`{"n":2}`))
	d.AndApprove = true
	for range 2 {
		res, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{d})
		must(t, err)
		wantStatus(t, res, ringi.Completed, 0)
		if r := res.Results[0]; r.Approval.Executed != `{"n":2}` || r.Note == "" || r.Approval.By != "ana" {
			t.Errorf("result %+v", r)
		}
	}
	w.wantRan(`pay {"n":2}`)
}

func TestStateless_TypedValues(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "sign", Effect: ringi.NonIdempotentWrite,
		InputSchema:   []byte(`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}},"required":["n","code"],"additionalProperties":false}`),
		InputRequired: []byte(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)}, nil)
	s := w.post()
	turn, asked := w.asked(s, "sign", `{"n":1}`)
	if r := asked.Pending[0]; r.Kind != ringi.KindApprovalAndInput || r.InputSchema == nil || r.Allows(ringi.Approve) {
		t.Fatalf("request %+v", r)
	}
	_, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	wantErr(t, err, ringi.ErrAnswer)
	w.wantNothingStored()
	d := asked.Pending[0].Fill(ana, []byte(`{"code":"1234"}`))
	d.AndApprove = true
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{d})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`sign {"n":1,"code":"1234"}`)
	if r := res.Results[0]; !slices.Equal(r.Approval.Supplied, []string{"code"}) || strings.Contains(r.Text(), "1234") {
		t.Errorf("result %+v", r)
	}
}

// A turn that asks nothing is imported and runs at once.
func TestStateless_ATurnThatAsksNothingRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.cfg.Model = nil
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Denied}}
	s := w.post()
	asked, err := s.Ask(t.Context(), engine.ClientTurn{Thread: "chat", By: ana, Agent: "till", Messages: []ringi.Message{ringi.User("go")},
		Turn: *calls("find", `{}`, "pay", `{}`, "look", `{"a":1}`)})
	must(t, err)
	if asked.Token != "" || len(asked.Pending) != 0 || asked.Result == nil {
		t.Fatalf("asked %+v", asked)
	}
	wantStatus(t, asked.Result, ringi.Completed, 0)
	if w.count("find") != 1 || w.count("look") != 1 || w.count("pay") != 0 || len(asked.Result.Results) != 3 {
		t.Errorf("ran %q, results %+v", w.ran, asked.Result.Results)
	}
	start := bodiesOf[*ringi.RunStarted](w.logOf(asked.Result.RunID))[0]
	if !start.Imported || start.Agent != "till" || start.By.ID != "ana" || start.Thread != "chat" || len(start.Messages) != 1 {
		t.Errorf("recorded start %+v", start)
	}
	wantVerified(t, w.engine(), asked.Result.RunID)
	if _, err := s.Ask(t.Context(), engine.ClientTurn{Thread: "chat", By: ana}); err == nil {
		t.Error("a turn without a call is taken")
	}
	if _, err := s.Ask(t.Context(), engine.ClientTurn{By: ana, Turn: *calls("find", `{}`)}); err == nil {
		t.Error("a conversation without a thread is taken")
	}
	_, err = s.Ask(t.Context(), engine.ClientTurn{Thread: "chat", Turn: *calls("find", `{}`)})
	wantErr(t, err, ringi.ErrNoPrincipal)
}

// A turn that ended early runs nothing, and asks nothing.
func TestStateless_AnIncompleteTurnRunsNothing(t *testing.T) {
	w := newWorld(t)
	turn := *calls("find", `{}`, "pay", `{"n":1}`)
	turn.Finish = ringi.FinishLength
	asked, err := w.post().Ask(t.Context(), engine.ClientTurn{Thread: "chat", By: ana, Turn: turn})
	must(t, err)
	if asked.Result == nil || len(asked.Result.Results) != 2 || asked.Result.Results[1].Code != ringi.CodeIncompleteTurn {
		t.Fatalf("asked %+v", asked)
	}
	w.wantRan()
}

// Before the answers the store holds nothing: no run, no request, no tool, no
// attempt.
func TestStateless_NothingIsStoredBeforeTheAnswers(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	commits := 0
	w.cfg.Store.(*meddler).set(func(m *meddler) { m.commit = func(*ringi.Commit) error { commits++; return nil } })
	turn, asked := w.asked(s, "find", `{}`, "pay", `{"n":1}`)
	r := asked.Pending[0]
	bad := r.Approve(ana)
	bad.Digest = strings.Repeat("0", 64)
	for _, answers := range [][]ringi.Decision{nil, {r.Approve(ana), r.Approve(ana)}, {bad}} {
		if _, err := s.Resume(t.Context(), turn, asked.Token, answers); err == nil {
			t.Errorf("taken: %+v", answers)
		}
	}
	if commits != 0 {
		t.Errorf("%d commits", commits)
	}
	w.wantNothingStored()
	if _, err := w.store.Tool(t.Context(), r.ToolDigest); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("the tool is stored: %v", err)
	}
	if got, err := w.store.Attempts(t.Context(), "default", r.RunID); err != nil || len(got) != 0 {
		t.Errorf("attempts %v, %v", got, err)
	}
	for _, id := range []string{r.ID, r.RunID} {
		_, err := w.engine().Request(t.Context(), id)
		wantErr(t, err, ringi.ErrNotFound)
	}
}

// Budgets span the posts that a conversation is made of: from the last word of
// a person on.
func TestStateless_BudgetsSpanPosts(t *testing.T) {
	history := func(turns, each int) []ringi.Message {
		msgs := []ringi.Message{ringi.User("first"), {Role: ringi.RoleAssistant, Calls: calls("find", `{}`, "find", `{}`, "find", `{}`).Calls}, ringi.User("go")}
		for range turns {
			m := ringi.Message{Role: ringi.RoleAssistant}
			for range each {
				m.Calls = append(m.Calls, ringi.ToolCall{ModelID: "m", Tool: "find", Input: `{}`})
			}
			msgs = append(msgs, m, ringi.Message{Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: "m", Output: "ok"}}})
		}
		return msgs
	}
	w := newWorld(t)
	w.cfg.Limits = ringi.Limits{Steps: 3, ToolCalls: 5}
	s := w.post()
	ask := func(thread string, msgs []ringi.Message, pairs ...string) (engine.Asked, error) {
		return s.Ask(t.Context(), engine.ClientTurn{Thread: thread, By: ana, Messages: msgs, Turn: *calls(pairs...)})
	}
	_, err := ask("a", history(3, 1), "pay", `{"n":1}`)
	if end, ok := errors.AsType[*ringi.RunError](err); !ok || end.Reason != ringi.ReasonMaxSteps {
		t.Errorf("beyond the steps: %v", err)
	}
	w.wantNothingStored()
	asked, err := ask("b", history(2, 2), "pay", `{"n":1}`, "pay", `{"n":2}`)
	must(t, err)
	if len(asked.Pending) != 1 {
		t.Fatalf("beyond the calls %d requests go out", len(asked.Pending))
	}
	res, err := s.Resume(t.Context(), engine.ClientTurn{Thread: "b", By: ana, Messages: history(2, 2)}, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	must(t, err)
	if len(res.Results) != 2 || res.Results[1].Code != ringi.CodeLimit {
		t.Errorf("results %+v", res.Results)
	}
	w.wantRan(`pay {"n":1}`)
	if asked, err = ask("c", history(2, 3), "find", `{}`); err != nil || asked.Result == nil || asked.Result.Results[0].Code != ringi.CodeLimit {
		t.Errorf("beyond the calls: %+v, %v", asked, err)
	}
	w.wantRan(`pay {"n":1}`)
}

// Denials count over the thread: the same call is answered without a person,
// the tenth denial ends the run, and a denial may be for the tool.
func TestStateless_DenialsCountOverPosts(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits = ringi.Limits{SameDenied: 2, Denied: 4}
	s := w.post()
	deny := func(input string, scope ringi.DenyScope) *ringi.Result {
		turn, asked := w.asked(s, "pay", input)
		d := asked.Pending[0].Deny(ana, "no")
		d.Scope = scope
		res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{d})
		must(t, err)
		return res
	}
	deny(`{"n":1}`, "")
	deny(`{ "n": 1 }`, "")
	asked, err := s.Ask(t.Context(), engine.ClientTurn{Thread: "chat", By: ana, Messages: []ringi.Message{ringi.User("go")}, Turn: *calls("pay", `{"n":1}`)})
	must(t, err)
	if asked.Result == nil || asked.Result.Results[0].Code != ringi.CodeDeniedByPerson {
		t.Errorf("asked again: %+v", asked)
	}
	deny(`{"n":2}`, "")
	if res := deny(`{"n":3}`, ringi.ThisTool); res.Status != ringi.Failed || res.Reason != ringi.ReasonDeniedTooOften {
		t.Errorf("the fourth denial: %s, %s", res.Status, res.Reason)
	}
	asked, err = s.Ask(t.Context(), engine.ClientTurn{Thread: "chat", By: ana, Messages: []ringi.Message{ringi.User("go")}, Turn: *calls("pay", `{"n":5}`)})
	must(t, err)
	if asked.Result == nil || asked.Result.Results[0].Code != ringi.CodeDeniedByPerson {
		t.Errorf("the tool was denied for the thread: %+v", asked)
	}
	w.wantRan()
}

// A tool above the ceiling of the zone is not offered, and a thread whose
// results are above it is not gone on with.
func TestStateless_Zones(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "page", Effect: ringi.ReadOnly, DataClass: ringi.PublicContent}, nil)
	w.tool(ringi.Tool{Name: "secrets", Effect: ringi.ReadOnly, DataClass: ringi.SecretAdjacent}, nil)
	w.cfg.Zone = ringi.ZoneExternalGlobal
	out := w.post()
	ask := func(s *engine.Stateless, thread, tool string) (engine.Asked, error) {
		return s.Ask(t.Context(), engine.ClientTurn{Thread: thread, By: ana, Turn: *calls(tool, `{}`)})
	}
	asked, err := ask(out, "a", "secrets")
	must(t, err)
	if asked.Result == nil || asked.Result.Results[0].Code != ringi.CodeNotOffered {
		t.Errorf("asked %+v", asked)
	}
	w.cfg.Zone = ringi.ZoneLocal
	if asked, err = ask(w.post(), "b", "secrets"); err != nil || asked.Result == nil || asked.Result.Results[0].Outcome != ringi.OutcomeOK {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	_, err = ask(out, "b", "page")
	if end, ok := errors.AsType[*ringi.RunError](err); !ok || end.Reason != ringi.ReasonTrustZone {
		t.Errorf("a conversation with secrets goes on outside: %v", err)
	}
	if asked, err = ask(out, "c", "page"); err != nil || asked.Result == nil || asked.Result.Results[0].Outcome != ringi.OutcomeOK {
		t.Errorf("asked %+v, %v", asked, err)
	}
	w.wantRan("secrets {}", "page {}")
}

// Where the asker answers four eyes cannot be met: it is an error before
// anybody is asked, for the calls that need them.
func TestStateless_S14_FourEyesCannotBeMet(t *testing.T) {
	for reach, refuses := range map[engine.FourEyes][2]bool{engine.FourEyesOff: {}, engine.FourEyesWrites: {true, false}, engine.FourEyesAll: {true, true}} {
		w := newWorld(t)
		w.cfg.FourEyes, w.cfg.RequireApproval = reach, []string{"look"}
		s := w.post()
		for i, tool := range []string{"pay", "look"} {
			_, err := s.Ask(t.Context(), engine.ClientTurn{Thread: tool, By: ana, Messages: []ringi.Message{ringi.User("go")}, Turn: *calls("find", `{}`, tool, `{}`)})
			if refused := errors.Is(err, ringi.ErrNotPermitted); refused != refuses[i] || err != nil && !refused {
				t.Errorf("four eyes for %q, tool %s: %v", reach, tool, err)
			}
		}
		w.wantRan()
		w.wantNothingStored()
	}
	// Four eyes that came while the client thought: his yes is no second one.
	w := newWorld(t)
	turn, asked := w.asked(w.post(), "pay", `{"n":1}`)
	w.cfg.FourEyes = engine.FourEyesAll
	res, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	w.wantRan()
	if err != nil {
		return // refused
	}
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	e := w.engine()
	_, err = e.Decide(t.Context(), res.Pending[0].Approve(ana))
	wantErr(t, err, ringi.ErrNotPermitted)
	w.decide(e, res.Pending[0].Approve(ben))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	w.wantRan(`pay {"n":1}`)
}

// Who may decide is asked of the poster, with the tool's own gate.
func TestStateless_WhoMayDecide(t *testing.T) {
	admin := ringi.Principal{ID: "root", Kind: ringi.Person, Admin: true, Auth: "test"}
	member := ringi.Principal{ID: "mia", Kind: ringi.Person, Teams: []string{"ops"}, Auth: "test"}
	robot := ringi.Principal{ID: "bot", Kind: ringi.ServiceAccount, Auth: "test"}
	was := admin
	was.Admin = false
	for _, c := range []struct {
		name      string
		tool      ringi.Tool
		by, later ringi.Principal
		ok        bool
	}{
		{"a service never decides", ringi.Tool{Name: "act"}, robot, robot, false},
		{"a process never decides", ringi.Tool{Name: "act"}, ringi.Principal{ID: "p", Kind: ringi.Process}, ringi.Principal{ID: "p", Kind: ringi.Process}, false},
		{"a person", ringi.Tool{Name: "act"}, ana, ana, true},
		{"not among the deciders", ringi.Tool{Name: "act", Deciders: ringi.Deciders{People: []string{"ben"}}}, ana, ana, false},
		{"of a team", ringi.Tool{Name: "act", Deciders: ringi.Deciders{Teams: []string{"ops"}}}, member, member, true},
		{"left the team", ringi.Tool{Name: "act", Deciders: ringi.Deciders{Teams: []string{"ops"}}}, member, ringi.Principal{ID: "mia", Kind: ringi.Person}, false},
		{"an admin", ringi.Tool{Name: "act", AdminOnly: true}, admin, admin, true},
		{"an admin no more", ringi.Tool{Name: "act", AdminOnly: true}, admin, was, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.tool.Effect = ringi.NonIdempotentWrite
			w.tool(c.tool, nil)
			s := w.post()
			turn := engine.ClientTurn{Thread: "chat", By: c.by, Turn: *calls("act", `{}`)}
			asked, err := s.Ask(t.Context(), turn)
			must(t, err)
			turn.By = c.later
			for _, d := range []ringi.Decision{asked.Pending[0].Approve(admin), asked.Pending[0].Deny(admin, "")} {
				if c.ok && d.Answer == ringi.Deny {
					continue
				}
				_, err = s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{d})
				if c.ok {
					must(t, err)
					w.wantRan("act {}")
					continue
				}
				wantErr(t, err, ringi.ErrNotPermitted)
				w.wantRan()
				w.wantNothingStored()
			}
		})
	}
	// A tool for admins is not offered to others.
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "act", AdminOnly: true, Effect: ringi.NonIdempotentWrite}, nil)
	asked, err := w.post().Ask(t.Context(), engine.ClientTurn{Thread: "chat", By: ana, Turn: *calls("act", `{}`)})
	if err != nil || asked.Result == nil || asked.Result.Results[0].Code != ringi.CodeNotOffered {
		t.Errorf("asked %+v, %v", asked, err)
	}
}

// What is spent must be remembered, by all machines, under a key.
func TestStateless_S14_DoesNotStartWithoutWhatItNeeds(t *testing.T) {
	w := newWorld(t)
	e := w.engine()
	if _, err := e.Stateless(); !errors.Is(err, ringi.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	w.cfg.Keyring = keyring(t)
	if _, err := w.engine().Stateless(); err == nil {
		t.Error("it starts over a store in memory")
	}
	w.cfg.Store = nil // the engine's own
	if _, err := w.engine().Stateless(); err == nil {
		t.Error("it starts over the engine's own memory")
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "ringi.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { store.Close() })
	w.cfg.Store = store
	_, err = w.engine().Stateless()
	must(t, err)
	w.cfg.ReadOnly = true
	_, err = w.engine().Stateless()
	wantErr(t, err, ringi.ErrNotRecorded)
}

// A conversation of a thousand messages with a megabyte each call, and what
// does not fit.
func TestStateless_BigHistoriesAndBigInputs(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	var msgs []ringi.Message
	for i := range 200 {
		msgs = append(msgs, ringi.User(fmt.Sprint("word ", i)),
			ringi.Message{Role: ringi.RoleAssistant, Calls: []ringi.ToolCall{{ModelID: fmt.Sprint("m", i), Tool: "find", Input: `{"a": 1.0}`}}},
			ringi.Message{Role: ringi.RoleTool, Results: []ringi.ToolResult{{ModelID: fmt.Sprint("m", i), Output: strings.Repeat("x", 1<<10)}}})
	}
	msgs = append(msgs, ringi.User("go"))
	big := `{"t":"` + strings.Repeat("é<&>\\u0000", 30_000) + `"}`
	tooBig := `{"t":"` + strings.Repeat("x", 1<<20) + `"}`
	turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: msgs, Turn: *calls("pay", big, "pay", tooBig)}
	asked, err := s.Ask(t.Context(), turn)
	must(t, err)
	if len(asked.Pending) != 1 || string(asked.Pending[0].Call.Input) != big {
		t.Fatalf("%d requests %.200v", len(asked.Pending), asked.Result)
	}
	turn.Turn = ringi.ModelTurn{}
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	if w.ran[0] != "pay "+big || len(w.ran) != 1 || res.Results[1].Code != ringi.CodeInvalidInput {
		t.Errorf("ran %d, second result %+v", len(w.ran), res.Results[1])
	}
	wantVerified(t, w.engine(), res.RunID)
	msgs[300].Text += "!"
	_, err = s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	wantErr(t, err, ringi.ErrStale)
}

// An import holds what a run of ours holds, and verifies.
func TestStateless_TheLogOfAnImport(t *testing.T) {
	w := newWorld(t)
	w.says()
	s := w.post()
	turn, asked := w.asked(s, "find", `{}`, "pay", `{"n":1}`)
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	must(t, err)
	if got := kindsOf(w.logOf(res.RunID)); got != "run_started model_responded approval_requested approval_decided tool_finished tool_started tool_finished run_finished" {
		t.Errorf("log: %s", got)
	}
	e := w.engine()
	wantVerified(t, e, res.RunID)
	// The request is the one that the client saw: nonce, digest, signature.
	r, err := e.Request(t.Context(), asked.Pending[0].ID)
	must(t, err)
	if was := asked.Pending[0]; r.Digest != was.Digest || r.Signature != was.Signature || r.State != ringi.Spent || was.State != ringi.Pending || !r.CreatedAt.Equal(was.CreatedAt) {
		t.Errorf("asked %+v, stored %+v", was, r)
	}
	// Later runs of ours on the thread take its denials and classes, and none
	// of its words: the conversation is the client's.
	w.run(e, ringi.RunStart{Thread: "chat", Messages: []ringi.Message{ringi.User("hello")}})
	if msgs := w.sent(); len(msgs) != 1 || msgs[0].Text != "hello" {
		t.Errorf("a later run was sent %+v", msgs)
	}
}

func wantVerified(t *testing.T, e *engine.Engine, runID string) {
	t.Helper()
	rep, err := e.Verify(t.Context(), runID)
	if err != nil || rep.Broken != "" || !rep.Signed {
		t.Errorf("verify: %+v, %v", rep, err)
	}
}
