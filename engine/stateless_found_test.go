package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// Faults that were found in turns that a client keeps.

// The same token again returns what came of it, whatever that is: a request
// that was answered, edited, taken back, expired or made stale is no error to
// the client who posts again, since he cannot know.
func TestStateless_TheSameTokenAgainTellsWhatCameOfIt(t *testing.T) {
	edit := func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ana, []byte(`{"n":2}`)) }
	yes := func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ana) }
	for _, c := range []struct {
		name   string
		answer func(ringi.ApprovalRequest) ringi.Decision
		then   func(*world, *engine.Engine, ringi.ApprovalRequest)
		want   ringi.RunStatus
	}{
		{"edited, and the successor waits", edit, nil, ringi.WaitingForApproval},
		{"approved", yes, nil, ringi.Completed},
		{"responded", func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(ana, []byte(`"x"`)) }, nil, ringi.Completed},
		{"cancelled", edit, func(w *world, e *engine.Engine, r ringi.ApprovalRequest) {
			must(w.t, e.Cancel(w.t.Context(), r.RunID, ana, "", false))
		}, ringi.Cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			s := w.post()
			turn, asked := w.asked(s, "pay", `{"n":1}`)
			answers := []ringi.Decision{c.answer(asked.Pending[0])}
			first, err := s.Resume(t.Context(), turn, asked.Token, answers)
			must(t, err)
			if c.then != nil {
				c.then(w, w.engine(), asked.Pending[0])
			}
			again, err := w.post().Resume(t.Context(), turn, asked.Token, answers)
			if err != nil {
				t.Fatalf("after %s: %v", first.Status, err)
			}
			if again.Status != c.want {
				t.Errorf("the run is %s (%s), want %s", again.Status, again.Detail, c.want)
			}
		})
	}
}

// A process dies between an approval and its use, the approval is taken back,
// or not used in time: the client who posts again is told what is asked now.
func TestStateless_AnApprovalThatWasNotUsedIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*world, *engine.Engine, ringi.ApprovalRequest)
	}{
		{"taken back", func(w *world, e *engine.Engine, r ringi.ApprovalRequest) {
			_, err := e.TakeBack(w.t.Context(), r.ID, ana, "")
			must(w.t, err)
		}},
		{"not used in time", func(w *world, _ *engine.Engine, _ ringi.ApprovalRequest) { w.advance(25 * time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			s := w.post()
			turn, asked := w.asked(s, "pay", `{"n":1}`)
			answers := []ringi.Decision{asked.Pending[0].Approve(ana)}
			m := w.cfg.Store.(*meddler)
			m.set(func(m *meddler) { // the process dies once the approval is recorded
				m.commit = func(c *ringi.Commit) error {
					if holds(c, ringi.EventToolStarted) {
						return errDisk
					}
					return nil
				}
			})
			if _, err := s.Resume(t.Context(), turn, asked.Token, answers); err == nil {
				t.Fatal("nothing stood in the way")
			}
			m.set(func(m *meddler) { m.commit = nil })
			w.advance(time.Minute)
			c.then(w, w.engine(), asked.Pending[0])
			for i := range 2 {
				res, err := w.post().Resume(t.Context(), turn, asked.Token, answers)
				if err != nil {
					t.Fatalf("post %d: %v", i+2, err)
				}
				wantStatus(t, res, ringi.WaitingForApproval, 1)
			}
			w.wantRan()
		})
	}
}

// The process dies between the import and the answers, and the client comes
// back when the request has expired: nothing runs, and his thread goes on.
func TestStateless_AnImportThatExpiredBlocksNoThread(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	turn, asked := w.asked(s, "pay", `{"n":1}`)
	m := w.cfg.Store.(*meddler)
	m.set(func(m *meddler) {
		m.commit = func(c *ringi.Commit) error {
			if holds(c, ringi.EventApprovalDecided) {
				return errDisk
			}
			return nil
		}
	})
	answers := []ringi.Decision{asked.Pending[0].Approve(ana)}
	if _, err := s.Resume(t.Context(), turn, asked.Token, answers); err == nil {
		t.Fatal("nothing stood in the way")
	}
	m.set(func(m *meddler) { m.commit = nil })
	w.advance(2 * time.Hour)
	res, err := w.post().Resume(t.Context(), turn, asked.Token, answers)
	if err == nil {
		wantStatus(t, res, ringi.Completed, 0)
	} else if !errors.Is(err, ringi.ErrExpired) {
		t.Errorf("resume: %v", err)
	}
	w.wantRan()
	if _, err := w.post().Ask(t.Context(), engine.ClientTurn{Thread: turn.Thread, By: ana, Messages: turn.Messages, Turn: *calls("pay", `{"n":2}`)}); err != nil {
		t.Errorf("the thread is blocked: %v", err)
	}
}

// Another process imports the token between our look at the store and our own
// import: we go on with its run.
func TestStateless_SomebodyImportsFirst(t *testing.T) {
	for _, when := range []string{"load", "transcript"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t)
			s := w.post()
			turn, asked := w.asked(s, "pay", `{"n":1}`)
			answers := []ringi.Decision{asked.Pending[0].Approve(ana)}
			m := w.cfg.Store.(*meddler)
			other := w.cfg
			other.Store = &meddler{Store: w.store}
			o, err := engine.New(other)
			must(t, err)
			first := func() error {
				m.set(func(m *meddler) { m.load, m.transcript = nil, nil })
				o.Stateless()
				os, err := o.Stateless()
				must(t, err)
				// It imports and records, and dies there.
				ctx, cancel := context.WithCancel(t.Context())
				other.Store.(*meddler).set(func(m *meddler) {
					m.commit = func(c *ringi.Commit) error {
						if holds(c, ringi.EventToolStarted) {
							cancel()
							return errDisk
						}
						return nil
					}
				})
				os.Resume(ctx, turn, asked.Token, answers)
				return nil
			}
			m.set(func(m *meddler) {
				if when == "load" {
					m.load = func(string) error { first(); return ringi.ErrNotFound }
				} else {
					m.transcript = func(string) error { return first() }
				}
			})
			res, err := s.Resume(t.Context(), turn, asked.Token, answers)
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, res, ringi.Completed, 0)
			w.wantRan(`pay {"n":1}`)
		})
	}
}

// The tool's definition changed since the client was asked: what he saw is
// stale. Nothing is stored, and he is asked anew.
func TestStateless_F130_AChangedDefinitionIsStale(t *testing.T) {
	w := newWorld(t)
	turn, asked := w.asked(w.post(), "pay", `{"n":1}`)
	reg := ringi.NewRegistry()
	must(t, reg.Add(ringi.Tool{Name: "pay", Description: "pays twice", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true,
		InputSchema: []byte(`{"type":"object"}`)}, nop))
	w.cfg.Registry = reg
	_, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	wantErr(t, err, ringi.ErrStale)
	w.wantNothingStored()
	w.wantRan()
}

// A machine that lacks what judged the turn runs nothing of it.
func TestStateless_F15_AMachineWithoutThePolicyRunsNothing(t *testing.T) {
	w := newWorld(t)
	with := w.cfg.Approval
	w.cfg.Approval.Func = func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		if c.Call.Tool == "note" {
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}
		return ringi.Verdict{}, nil
	}
	w.tool(ringi.Tool{Name: "note"}, nil) // a tool that only the function gates
	turn, asked := w.asked(w.post(), "note", `{"n":1}`, "find", `{}`)
	w.cfg.Approval = with
	_, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	wantErr(t, err, ringi.ErrPolicyMissing)
	w.wantRan()
}

// Which result belongs to which call is part of the history.
func TestStateless_S14_ResultsChangePlaces(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	history := func(first, second string) []ringi.Message {
		return []ringi.Message{ringi.User("go"),
			{Role: ringi.RoleAssistant, Calls: []ringi.ToolCall{{ID: "call_1", Tool: "find", Input: `{}`}, {ID: "call_2", Tool: "look", Input: `{}`}}},
			{Role: ringi.RoleTool, Results: []ringi.ToolResult{{CallID: first, Output: "admin"}, {CallID: second, Output: "guest"}}}}
	}
	turn := engine.ClientTurn{Thread: "chat", By: ana, Messages: history("call_1", "call_2"), Turn: *calls("pay", `{"n":1}`)}
	asked, err := s.Ask(t.Context(), turn)
	must(t, err)
	for name, msgs := range map[string][]ringi.Message{"swapped": history("call_2", "call_1"), "lost": history("call_1", "call_3")} {
		turn.Messages = msgs
		_, err = s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
		if !errors.Is(err, ringi.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.wantRan()
}

// A client's set of answers is refused as a whole, before anything is stored,
// where one of them is seen to be none.
func TestStateless_F165_AnAnswerThatIsNoneIsSeenFirst(t *testing.T) {
	for name, bad := range map[string]func(ringi.ApprovalRequest) ringi.Decision{
		"edit that is no JSON":   func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ana, []byte(`{"n":`)) },
		"edit that does not fit": func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ana, []byte(`{"n":"x"}`)) },
		"result that does not fit": func(r ringi.ApprovalRequest) ringi.Decision {
			return r.Respond(ana, []byte(`{"paid":"x"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.tool(ringi.Tool{Name: "send", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true,
				InputSchema:  []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
				OutputSchema: []byte(`{"type":"object","properties":{"paid":{"type":"boolean"}}}`)}, nil)
			s := w.post()
			turn, asked := w.asked(s, "pay", `{"n":1}`, "send", `{"n":1}`)
			_, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana), bad(asked.Pending[1])})
			if err == nil {
				t.Error("taken")
			}
			w.wantRan()
			w.wantNothingStored()
			// What was refused is not used up.
			res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Deny(ana, ""), asked.Pending[1].Approve(ana)})
			must(t, err)
			wantStatus(t, res, ringi.Completed, 0)
			w.wantRan(`send {"n":1}`)
		})
	}
}

// An import is no attempt at the run: an idempotent write whose process dies is
// tried as often as in a run of ours.
func TestStateless_AnImportIsNoAttempt(t *testing.T) {
	w := newWorld(t)
	turn, asked := w.asked(w.post(), "put", `{"n":1}`)
	m := w.cfg.Store.(*meddler)
	dies := func(m *meddler) {
		m.commit = func(c *ringi.Commit) error {
			if holds(c, ringi.EventToolStarted) || holds(c, ringi.EventApprovalDecided) || holds(c, ringi.EventRunStarted) {
				return nil
			}
			return errDisk
		}
	}
	for i := range 2 {
		m.set(dies)
		if _, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)}); err == nil {
			t.Fatal("nothing stood in the way")
		}
		w.advance(time.Minute)
		if w.count("put") != i+1 {
			t.Fatalf("ran %d times", w.count("put"))
		}
	}
	m.set(func(m *meddler) { m.commit = nil })
	res, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	if res.Reason != ringi.ReasonCompleted || w.count("put") != 3 {
		t.Errorf("%s after %d runs", res.Reason, w.count("put"))
	}
}

// What must not be stored is given back when a turn is judged, too.
func TestStateless_AskGivesTheContextBack(t *testing.T) {
	type key struct{}
	w := newWorld(t)
	w.cfg.ContextFunc = func(ctx context.Context, _ ringi.RunInfo) context.Context { return context.WithValue(ctx, key{}, "db") }
	w.cfg.Approval.Func = func(ctx context.Context, _ ringi.CallInfo) (ringi.Verdict, error) {
		if ctx.Value(key{}) != "db" {
			return ringi.Verdict{}, errors.New("no database")
		}
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	}
	s := w.post()
	turn, asked := w.asked(s, "pay", `{"n":1}`)
	res, err := s.Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`pay {"n":1}`)
}

// The same token on eight machines at once: the tool runs once, and all are
// told the same.
func TestStateless_S14_EightPostsAtOnce(t *testing.T) {
	for _, engines := range []int{1, 2} {
		t.Run(fmt.Sprint(engines, " engines"), func(t *testing.T) {
			for range min(rounds(), 5) {
				w := newWorld(t)
				w.cfg.Keyring = keyring(t)
				path := filepath.Join(t.TempDir(), "ringi.db")
				w.tool(ringi.Tool{Name: "slow", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
					time.Sleep(5 * time.Millisecond)
					return ringi.ToolResult{Output: "paid"}, nil
				})
				var all []*engine.Stateless
				for range engines {
					store, err := sqlite.Open(path, sqlite.Options{Now: w.now})
					must(t, err)
					t.Cleanup(func() { store.Close() })
					w.cfg.Store = store
					s, err := w.engine().Stateless()
					must(t, err)
					all = append(all, s)
				}
				turn, asked := w.asked(all[0], "find", `{}`, "slow", `{"n":1}`)
				var posts sync.WaitGroup
				told := make([]string, 8)
				for i := range told {
					posts.Go(func() {
						d := asked.Pending[0].Approve(ana)
						res, err := all[i%engines].Resume(t.Context(), turn, asked.Token, []ringi.Decision{d})
						switch {
						case errors.Is(err, ringi.ErrBusy):
						case err != nil:
							t.Errorf("post %d: %v", i, err)
						default:
							told[i] = string(res.Status) + asText(t, res.Results)
						}
					})
				}
				posts.Wait()
				if n := w.count("slow"); n != 1 {
					t.Fatalf("it ran %d times", n)
				}
				said := map[string]bool{}
				for _, s := range told {
					said[s] = true
				}
				delete(said, "")
				if len(said) != 1 {
					t.Errorf("told %q", slices.Collect(maps.Keys(said)))
				}
			}
		})
	}
}

// What judged the turn, and for which agent, is what was true when it was
// asked about: that is recorded, whatever machine imports it.
func TestStateless_TheImportRecordsWhoAsked(t *testing.T) {
	w := newWorld(t)
	s := w.post()
	turn := engine.ClientTurn{Thread: "chat", By: ana, Agent: "till", Messages: []ringi.Message{ringi.User("go")}, Turn: *calls("pay", `{"n":1}`)}
	asked, err := s.Ask(t.Context(), turn)
	must(t, err)
	agents := map[string]bool{}
	w.cfg.Agent = "another"
	w.cfg.Approval.Func = func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		agents[c.Run.Agent] = true
		return ringi.Verdict{}, nil
	}
	turn.Agent = "" // a client need not know it
	res, err := w.post().Resume(t.Context(), turn, asked.Token, []ringi.Decision{asked.Pending[0].Approve(ana)})
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	start := bodiesOf[*ringi.RunStarted](w.logOf(res.RunID))[0]
	if start.Agent != "till" || start.Judges.Func || len(agents) != 1 || !agents["till"] {
		t.Errorf("recorded agent %q, judged by a function %v; it was told %v", start.Agent, start.Judges.Func, agents)
	}
}
