package backoffice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// stage is the demo as it is served: office, tools, scripted model and engine.
type stage struct {
	*testing.T
	office *Office
	clock  *ringitest.Clock
	engine *engine.Engine
}

// newStage makes one whose refunds have all the time they need.
func newStage(t *testing.T) *stage { return newStageWithin(t, 25*time.Second) }

// newStageWithin makes one whose refunds must be done in a time: half of what
// the slow bank takes.
func newStageWithin(t *testing.T, timeout time.Duration) *stage {
	t.Helper()
	s := &stage{T: t, office: newOffice(t), clock: new(ringitest.Clock)}
	s.office.Timeout, s.office.Now = timeout, s.clock.Now
	s.engine = ringitest.Engine(t, engine.Config{Registry: register(t, s.office), Model: Scripted{}, Now: s.clock.Now, Zone: ringi.ZoneLocal, RuleFloor: true})
	return s
}

// begin starts a run, up to where it waits or ends.
func (s *stage) begin(thread, text string) *ringi.Result {
	s.Helper()
	res, err := s.engine.Run(context.Background(), ringi.RunStart{Thread: thread, System: System, Messages: []ringi.Message{ringi.User(text)}, By: ringitest.Ben})
	if err != nil {
		s.Fatal(err)
	}
	return res
}

// answers react by tool; a tool that none names is approved by Ana.
type answers map[string]ringitest.Reaction

func (a answers) react(r ringi.ApprovalRequest) (ringi.Decision, error) {
	if r.Replaces != "" && r.Kind == ringi.KindApproval && len(r.Call.Input) > 0 && r.ProposedBy != "" {
		return r.Approve(ringitest.Ana), nil // a person's own proposal
	}
	if f := a[r.Call.Tool]; f != nil {
		return f(r)
	}
	return r.Approve(ringitest.Ana), nil
}

// play runs a conversation of one user message to its end.
func (s *stage) play(thread, text string, a answers) *ringi.Result {
	s.Helper()
	res := ringitest.Settle(s, s.engine, s.begin(thread, text), a.react)
	if err := res.Err(); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	return res
}

// ran are the tools that really ran, in order.
func ran(res *ringi.Result) string {
	var out []string
	for _, r := range res.Results {
		if r.Executed() {
			out = append(out, r.Tool)
		}
	}
	return strings.Join(out, " ")
}

func (s *stage) says(res *ringi.Result, want ...string) {
	s.Helper()
	for _, w := range want {
		if !strings.Contains(res.Text, w) {
			s.Errorf("the model says %q, want %q", res.Text, w)
		}
	}
}

func (s *stage) runs(res *ringi.Result, want string) {
	s.Helper()
	if got := ran(res); got != want {
		s.Errorf("ran %q, want %q", got, want)
	}
}

func (s *stage) refunded(orderID string, want ...int64) {
	s.Helper()
	list, err := s.office.Refunds(context.Background(), orderID)
	if err != nil {
		s.Fatal(err)
	}
	var got []int64
	for _, r := range list {
		got = append(got, r.AmountCents)
	}
	if !slices.Equal(got, want) {
		s.Errorf("refunds of %s: %v, want %v", orderID, got, want)
	}
}

// mails are those sent since the office was opened.
func (s *stage) mails() []Mail {
	s.Helper()
	box, err := s.office.Outbox(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	return box[1:]
}

const (
	kettle      = "Mira Solheim asks for a refund for a broken kettle."
	kettleReads = "find_customer list_orders order_details refund_policy"
)

func deny(reason string) ringitest.Reaction { return ringitest.Deny(ringitest.Ana, reason) }

func TestKettle(t *testing.T) {
	for _, c := range []struct {
		name  string
		a     answers
		ran   string
		says  []string
		paid  []int64
		mails int
	}{
		{"approved", nil, kettleReads + " refund send_mail", []string{"The refund of 34.90 EUR is booked (R-", "The mail to Mira Solheim is in the outbox."}, []int64{3490}, 1},
		{"denied with a reason", answers{"refund": deny("we have no photo")}, kettleReads,
			[]string{"I am sorry", "“we have no photo”", "half of it instead (17.45 EUR)", "voucher of 15.00"}, nil, 0},
		{"denied without one", answers{"refund": deny("")}, kettleReads, []string{"without a reason", "voucher"}, nil, 0},
		{"edited", answers{"refund": ringitest.Edit(ringitest.Ana, `{"order_id":"A-1042","amount_cents":2000,"currency":"EUR","reason":"goodwill"}`)},
			kettleReads + " refund send_mail", []string{"A colleague changed the amount: 20.00 EUR instead of 34.90 EUR"}, []int64{2000}, 1},
		{"only the reason edited", answers{"refund": ringitest.Edit(ringitest.Ana, `{"order_id":"A-1042","amount_cents":3490,"currency":"EUR","reason":"handle off"}`)},
			kettleReads + " refund send_mail", []string{"A colleague changed my proposal; 34.90 EUR is booked"}, []int64{3490}, 1},
		{"edited to more than was paid", answers{"refund": ringitest.Edit(ringitest.Ana, `{"order_id":"A-1042","amount_cents":99900,"currency":"EUR","reason":"r"}`)},
			kettleReads + " refund", []string{"I could not do it: 999.00 EUR cannot be paid back for order A-1042: 42.40 EUR of it is left. Nothing was done."}, nil, 0},
		{"responded", answers{"refund": ringitest.Respond(ringitest.Ana, `{"refund_id":"R-CASH","order_id":"A-1042","amount_cents":3490,"currency":"EUR","left_cents":750,"note":"paid in cash"}`)},
			kettleReads + " send_mail", []string{"A colleague answered in the refund's place: 34.90 EUR (R-CASH).", "“paid in cash”"}, nil, 1},
		{"responded that nothing was paid", answers{"refund": ringitest.Respond(ringitest.Ana, `{"refund_id":"","order_id":"A-1042","amount_cents":0,"currency":"EUR","left_cents":4240}`)},
			kettleReads, []string{"A colleague answered in place of the refund of 34.90 EUR"}, nil, 0},
		{"mail denied", answers{"send_mail": deny("I write myself")}, kettleReads + " refund",
			[]string{"34.90 EUR is booked", "said no to the mail to Mira Solheim: “I write myself”"}, []int64{3490}, 0},
		{"mail edited", answers{"send_mail": ringitest.Edit(ringitest.Ana, `{"to":"mira.solheim@example.com","subject":"s","body":"kinder"}`)},
			kettleReads + " refund send_mail", []string{"as a colleague has changed it"}, []int64{3490}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			res := s.play("", kettle, c.a)
			s.runs(res, c.ran)
			s.says(res, c.says...)
			s.refunded("A-1042", c.paid...)
			if m := s.mails(); len(m) != c.mails {
				t.Errorf("%d mails, want %d: %+v", len(m), c.mails, m)
			}
		})
	}
}

// TestKettleUnnamed: the words alone choose the conversation.
func TestKettleUnnamed(t *testing.T) {
	s := newStage(t)
	res := s.begin("", "I want a refund for a broken kettle")
	if len(res.Pending) != 1 || res.Pending[0].Call.Tool != "refund" || !res.Pending[0].Allows(ringi.Edit) || !res.Pending[0].Allows(ringi.Respond) {
		t.Fatalf("pending: %+v", res.Pending)
	}
	if p := res.Pending[0].Preview; p == nil || !strings.Contains(p.Text, "Mira Solheim") {
		t.Errorf("preview: %+v", p)
	}
	s.says(res, "The rules on damaged goods say: “Goods that arrive broken are refunded in full")
}

func TestKettleExpired(t *testing.T) {
	s := newStage(t)
	res := s.begin("", kettle)
	s.clock.Advance(80 * time.Hour)
	res, err := s.engine.Resume(context.Background(), res.RunID)
	if err != nil || res.Err() != nil {
		t.Fatal(err, res)
	}
	s.runs(res, kettleReads)
	s.says(res, "Nobody decided on the refund of 34.90 EUR for order A-1042 in time", "nobody said no")
	s.refunded("A-1042")
}

// TestKettleGoesOn: after a no, the user's next words lead to half of it, or to
// a voucher, in the same thread.
func TestKettleGoesOn(t *testing.T) {
	s := newStage(t)
	first := s.play("", kettle, answers{"refund": deny("too much")})
	res := s.play(first.Thread, "Then half of it", nil)
	s.runs(res, "order_details refund send_mail")
	s.says(res, "The refund of 17.45 EUR is booked")
	s.refunded("A-1042", 1745)
	res = s.play(first.Thread, "And a voucher", nil)
	s.runs(res, "")
	s.says(res, "The refund of 17.45 EUR for order A-1042: done", "I propose nothing in its place")

	s = newStage(t)
	first = s.play("", kettle, answers{"refund": deny("too much")})
	res = s.play(first.Thread, "Offer a voucher", nil)
	s.runs(res, "order_details send_mail")
	if m := s.mails(); len(m) != 1 || !strings.Contains(m[0].Body, "voucher of 15.00 EUR") {
		t.Errorf("mails: %+v", m)
	}
	s.refunded("A-1042")
}

// TestStaleRefund: somebody else paid in between, so the same call is asked
// again, and then refused by the tool.
func TestStaleRefund(t *testing.T) {
	s := newStage(t)
	res := s.begin("", kettle)
	if _, err := s.office.refund(keyed("elsewhere"), refundIn{OrderID: "A-1042", AmountCents: 4240, Currency: "EUR", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	asked := 0
	res = ringitest.Settle(t, s.engine, res, func(r ringi.ApprovalRequest) (ringi.Decision, error) {
		asked++
		return r.Approve(ringitest.Ana), nil
	})
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
	s.says(res, "0.00 EUR of it is left. Nothing was done.")
	s.refunded("A-1042", 4240)
}

// slow begins the conversation with the bank that does not answer, up to the
// question what happened.
func (s *stage) slow() *ringi.Result {
	s.Helper()
	res := s.begin("", "Refund the broken coffee grinder of order A-1088.")
	res = ringitest.Settle(s, s.engine, res, func(r ringi.ApprovalRequest) (ringi.Decision, error) {
		if r.Kind == ringi.KindOutcome {
			return ringi.Decision{}, errors.New("later")
		}
		return r.Approve(ringitest.Ana), nil
	})
	if res.Status != ringi.WaitingForOutcome || len(res.Pending) != 1 {
		s.Fatalf("status %s, %d pending", res.Status, len(res.Pending))
	}
	return res
}

// evidence waits for the bank's late answer.
func (s *stage) evidence(id string) ringi.ApprovalRequest {
	s.Helper()
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		r, err := s.engine.Request(context.Background(), id)
		if err != nil {
			s.Fatal(err)
		}
		if r.Evidence != "" {
			return r
		}
	}
	s.Fatal("the bank's late answer is not shown as evidence")
	return ringi.ApprovalRequest{}
}

func (s *stage) settle(res *ringi.Result, d ringi.Decision) *ringi.Result {
	s.Helper()
	if _, err := s.engine.Decide(context.Background(), d); err != nil {
		s.Fatal(err)
	}
	res, err := s.engine.Resume(context.Background(), res.RunID)
	if err != nil {
		s.Fatal(err)
	}
	return ringitest.Settle(s, s.engine, res, ringitest.Approve(ringitest.Ana))
}

func TestBankDoesNotAnswer(t *testing.T) {
	t.Run("a person looks it up: it ran", func(t *testing.T) {
		t.Parallel()
		s := newStageWithin(t, 300*time.Millisecond)
		res := s.slow()
		r := s.evidence(res.Pending[0].ID)
		res = s.settle(res, r.Ran(ringitest.Ana, r.Evidence))
		s.runs(res, "order_details refund_policy send_mail")
		s.says(res, "The bank's answer was late; a colleague looked it up: 159.00 PLN went through (R-")
		s.refunded("A-1088", 15900)
	})
	t.Run("ran, in a person's words", func(t *testing.T) {
		t.Parallel()
		s := newStageWithin(t, 300*time.Millisecond)
		res := s.slow()
		res = s.settle(res, res.Pending[0].Ran(ringitest.Ana, "the bank says yes"))
		s.runs(res, "order_details refund_policy")
		s.says(res, "A colleague looked it up: the refund of 159.00 PLN for order A-1088 went through. the bank says yes")
	})
	t.Run("did not run", func(t *testing.T) {
		t.Parallel()
		s := newStageWithin(t, 300*time.Millisecond)
		res := s.slow()
		res = s.settle(res, res.Pending[0].DidNotRun(ringitest.Ana))
		s.runs(res, "order_details refund_policy")
		s.says(res, "the refund of 159.00 PLN for order A-1088 did not go through. You may ask again.")
	})
	t.Run("run again", func(t *testing.T) {
		t.Parallel()
		s := newStageWithin(t, time.Second) // the second time it must be done in time
		res := s.slow()
		r := s.evidence(res.Pending[0].ID)
		res = s.settle(res, r.RunAgain(ringitest.Ana))
		s.says(res, "This refund of 159.00 PLN had been booked before (R-", "nothing was paid twice")
		s.refunded("A-1088", 15900)
	})
	t.Run("nobody knows", func(t *testing.T) {
		t.Parallel()
		s := newStageWithin(t, 300*time.Millisecond)
		res := s.slow()
		if err := s.engine.Cancel(context.Background(), res.RunID, ringitest.Admin, "give up", false); err != nil {
			t.Fatal(err)
		}
		if res, err := s.engine.Resume(context.Background(), res.RunID); err != nil || res.Status != ringi.Cancelled {
			t.Fatalf("%+v, %v", res, err)
		}
		after := s.play(res.Thread, "What happened?", nil)
		s.says(after, "I do not know whether the refund of 159.00 PLN for order A-1088 went through")
		again := s.play(res.Thread, "Refund the broken coffee grinder of order A-1088.", nil)
		s.runs(again, "")
		s.says(again, "I do not know whether", "Until then I propose no refund of that order.")
	})
}

// TestAddress: the diff is shown, and the change is bound to what was read.
func TestAddress(t *testing.T) {
	const text = "Jonas Weber has moved: change the address to Lindenallee 4, 50667 Köln, Germany."
	for _, c := range []struct {
		name   string
		a      answers
		says   string
		street string
	}{
		{"approved", nil, "Done: the address of Jonas Weber is changed (version 2).", "Lindenallee 4"},
		{"denied", answers{"change_address": deny("wrong town")}, "“wrong town”. Nothing was done. Tell me the right address", "Mühlenweg 9"},
		{"edited", answers{"change_address": ringitest.Edit(ringitest.Ana, `{"customer_id":"C-1002","street":"Lindenallee 40","postcode":"50667","city":"Köln","country":"Germany"}`)},
			"A colleague corrected what I had proposed", "Lindenallee 40"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			res := s.begin("", text)
			if p := res.Pending[0].Preview; p == nil || p.Format != "diff" || !strings.Contains(p.Text, "\n+street:   Lindenallee 4\n") {
				t.Fatalf("preview: %+v", p)
			}
			res = ringitest.Settle(t, s.engine, res, c.a.react)
			s.says(res, c.says)
			who, err := customerBy(context.Background(), s.office.db, "id", "C-1002")
			if err != nil || who.Street != c.street {
				t.Errorf("street %q, %v, want %q", who.Street, err, c.street)
			}
		})
	}
	t.Run("somebody was first", func(t *testing.T) {
		s := newStage(t)
		res := s.begin("", text)
		if _, err := s.office.changeAddress(context.Background(), changeAddressIn{CustomerID: "C-1002", Street: "Elsewhere 1", Postcode: "1", City: "X", Country: "Y"}); err != nil {
			t.Fatal(err)
		}
		var seen []string
		res = ringitest.Settle(t, s.engine, res, func(r ringi.ApprovalRequest) (ringi.Decision, error) {
			seen = append(seen, r.Preview.Precondition)
			return r.Approve(ringitest.Ana), nil
		})
		if want := []string{"C-1002 version 1", "C-1002 version 2"}; !slices.Equal(seen, want) {
			t.Errorf("asked for %v, want %v", seen, want)
		}
		s.says(res, "is changed (version 3)")
	})
	t.Run("no address in the words", func(t *testing.T) {
		s := newStage(t)
		res := s.play("", "The address of Jonas Weber, please.", nil)
		s.says(res, "Mühlenweg 9, 48143 Münster", "I need")
	})
}

// TestIdentity: a person types what the caller said, the model learns whether
// it fits, and no value.
func TestIdentity(t *testing.T) {
	const text = "Amara Okafor is on the telephone: cancel order A-1057."
	fill := func(values string) ringitest.Reaction { return ringitest.Fill(ringitest.Ana, values) }
	for _, c := range []struct {
		name, ran, says, status string
		a                       answers
	}{
		{"verified", "order_details verify_identity cancel_order", "Done: order A-1057 is cancelled.", "cancelled",
			answers{"verify_identity": fill(`{"card_last4":"4417","named_address":true}`)}},
		{"wrong digits", "order_details verify_identity", "The check failed: the digits are not those of the card on file. I do not cancel order A-1057.", "open",
			answers{"verify_identity": fill(`{"card_last4":"1111","named_address":true}`)}},
		{"no address", "order_details verify_identity", "could not name the delivery address", "open",
			answers{"verify_identity": fill(`{"card_last4":"4417","named_address":false}`)}},
		{"check denied", "order_details", "“nobody is on the line”. Nothing was done. So I leave order A-1057 as it is.", "open",
			answers{"verify_identity": deny("nobody is on the line")}},
		{"cancelling denied", "order_details verify_identity", "A colleague said no to cancelling order A-1057: “it is packed”", "open",
			answers{"verify_identity": fill(`{"card_last4":"4417","named_address":true}`), "cancel_order": deny("it is packed")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			res := s.begin("", text)
			if r := res.Pending[0]; r.Call.Tool != "verify_identity" || len(r.InputSchema) == 0 || !r.Allows(ringi.Fill) {
				t.Fatalf("asks %s for %s: %v", r.Call.Tool, r.InputSchema, r.Answers)
			}
			res = ringitest.Settle(t, s.engine, res, c.a.react)
			s.runs(res, c.ran)
			s.says(res, c.says)
			for _, r := range res.Results {
				if strings.Contains(r.Text(), "4417") {
					t.Errorf("the model reads the digits: %s", r.Text())
				}
			}
			of, err := orderBy(context.Background(), s.office.db, "A-1057")
			if err != nil || of.Status != c.status {
				t.Errorf("order is %s (%v), want %s", of.Status, err, c.status)
			}
		})
	}
	t.Run("digits that are none", func(t *testing.T) {
		s := newStage(t)
		res := s.begin("", text)
		_, err := s.engine.Decide(context.Background(), res.Pending[0].Fill(ringitest.Ana, json.RawMessage(`{"card_last4":"44","named_address":true}`)))
		if _, ok := errors.AsType[*ringi.InputError](err); !ok {
			t.Errorf("two digits: %v", err)
		}
	})
	t.Run("expired", func(t *testing.T) {
		s := newStage(t)
		res := s.begin("", text)
		s.clock.Advance(80 * time.Hour)
		res, err := s.engine.Resume(context.Background(), res.RunID)
		if err != nil {
			t.Fatal(err)
		}
		s.says(res, "Nobody decided on the check of identity in time", "So I leave order A-1057 as it is.")
	})
}

// TestBatch: three requests of one turn, each decided in another way.
func TestBatch(t *testing.T) {
	const text = "Refund the lost parcels A-1031, A-1032 and A-1033."
	s := newStage(t)
	res := s.begin("", text)
	if len(res.Pending) != 3 || res.Status != ringi.WaitingForApproval {
		t.Fatalf("%d pending, %s", len(res.Pending), res.Status)
	}
	s.says(res, "I propose 3 refunds, 96.00 EUR in all.", "The rules on lost parcels say")
	res = ringitest.Settle(t, s.engine, res, ringitest.Approve(ringitest.Ana))
	s.runs(res, "refund_policy order_details order_details order_details refund refund refund")
	s.says(res, "A-1031: The refund of 24.00 EUR is booked", "A-1032: The refund of 48.00 EUR", "Paid back in all: 96.00 EUR.")

	s = newStage(t)
	res = ringitest.Settle(t, s.engine, s.begin("", text), func(r ringi.ApprovalRequest) (ringi.Decision, error) {
		switch {
		case strings.Contains(string(r.Call.Input), "A-1031"):
			return r.Deny(ringitest.Ana, "the carrier found it"), nil
		case strings.Contains(string(r.Call.Input), "A-1032") && r.ProposedBy == "":
			return r.Edit(ringitest.Ana, json.RawMessage(`{"order_id":"A-1032","amount_cents":2400,"currency":"EUR","reason":"one of two"}`)), nil
		}
		return r.Approve(ringitest.Ana), nil
	})
	s.says(res, "A-1031: A colleague said no", "“the carrier found it”", "A-1032: A colleague changed the amount: 24.00 EUR instead of 48.00 EUR",
		"A-1033: The refund of 24.00 EUR", "Paid back in all: 48.00 EUR.")
	s.refunded("A-1031")
	s.refunded("A-1032", 2400)

	s = newStage(t)
	res = s.play("", text, answers{"refund": deny("no")})
	s.says(res, "Nothing that I know of was paid back.")
}

func TestOtherWords(t *testing.T) {
	for text, want := range map[string]string{
		"Hello! What can you do?":                       "I can look up customers",
		"What happened?":                                "Nothing was asked for",
		"Refund Nobody Atall":                           "I find no customer Nobody Atall.",
		"Refund order A-9998":                           "there is no order \"A-9998\"",
		"Refund something":                              "Which customer do you mean?",
		"Cancel something":                              "give me its number",
		"Change the address of someone":                 "Which customer do you mean?",
		"A refund for mira.solheim@example.com, please": "has several orders: A-1042 (Copper kettle, 1.2 l; Smoked tea, 100 g), A-1019 (Linen apron). Which one",
		"Refund the lost A-1019 and A-9999":             "Paid back in all: 21.50 EUR.",
	} {
		t.Run(text, func(t *testing.T) {
			s := newStage(t)
			res := s.play("", text, nil)
			s.says(res, want)
			if text == "Refund the lost A-1019 and A-9999" {
				s.refunded("A-1019", 2150, 2150)
			}
		})
	}
}

// TestHostileName: the name goes through tools, requests and mail as it is;
// what shows it escapes.
func TestHostileName(t *testing.T) {
	s := newStage(t)
	res := s.begin("", "Write to the customer of order A-1071.")
	r := res.Pending[0]
	if r.Preview == nil || r.Preview.Format != "mail" || !strings.Contains(r.Preview.Text, hostileName) {
		t.Errorf("preview: %+v %s", r.Preview, r.PreviewError)
	}
	if !strings.Contains(string(r.Call.Input), "<img src=x onerror=alert(1)>") {
		t.Errorf("input: %s", r.Call.Input)
	}
	res = ringitest.Settle(t, s.engine, res, ringitest.Approve(ringitest.Ana))
	s.says(res, hostileName)
	if m := s.mails(); len(m) != 1 || !strings.Contains(m[0].Body, hostileName) {
		t.Errorf("mails: %+v", m)
	}
}

// TestScenarios plays each from the start page, with yes to everything.
func TestScenarios(t *testing.T) {
	want := map[string]string{
		"A broken kettle":                kettleReads + " refund send_mail",
		"A new address":                  "find_customer change_address",
		"Who is calling?":                "order_details verify_identity cancel_order",
		"Three lost parcels":             "refund_policy order_details order_details order_details refund refund refund",
		"A bank that does not answer":    "order_details refund_policy",
		"A customer with a strange name": "order_details send_mail",
		"A bowl from Kyoto":              "order_details refund_policy refund send_mail",
		"What can you do?":               "",
	}
	seen := map[string]bool{}
	for _, sc := range Scenarios() {
		if seen[sc.Title] || sc.Text == "" || sc.Try == "" {
			t.Errorf("scenario %+v", sc)
		}
		seen[sc.Title] = true
		t.Run(sc.Title, func(t *testing.T) {
			s := newStage(t)
			if sc.Title == "A bank that does not answer" {
				s = newStageWithin(t, 300*time.Millisecond)
			}
			res := ringitest.Settle(t, s.engine, s.begin("", sc.Text), func(r ringi.ApprovalRequest) (ringi.Decision, error) {
				switch {
				case r.Kind == ringi.KindOutcome:
					return r.DidNotRun(ringitest.Ana), nil
				case r.Allows(ringi.Fill):
					return r.Fill(ringitest.Ana, json.RawMessage(`{"card_last4":"4417","named_address":true}`)), nil
				}
				return r.Approve(ringitest.Ana), nil
			})
			if err := res.Err(); err != nil {
				t.Fatal(err)
			}
			s.runs(res, want[sc.Title])
		})
	}
	if len(seen) != len(want) {
		t.Errorf("%d scenarios, want %d", len(seen), len(want))
	}
}

// TestGoesOnElsewhere restarts the process before every decision: the model
// keeps nothing.
func TestGoesOnElsewhere(t *testing.T) {
	s := newStage(t)
	res := s.begin("", kettle)
	for n := 0; res.Status.Waiting(); n++ {
		if n > 5 {
			t.Fatal("the run does not end")
		}
		s.engine = ringitest.Restart(t, s.engine)
		if _, err := s.engine.Decide(context.Background(), res.Pending[0].Approve(ringitest.Ana)); err != nil {
			t.Fatal(err)
		}
		s.engine = ringitest.Restart(t, s.engine)
		var err error
		if res, err = s.engine.Resume(context.Background(), res.RunID); err != nil {
			t.Fatal(err)
		}
	}
	s.says(res, "The refund of 34.90 EUR is booked", "is in the outbox")
	s.refunded("A-1042", 3490)
}

// TestStream: the deltas are the turn, and a context that ends stops it.
func TestStream(t *testing.T) {
	req := ringi.ModelRequest{Step: 1, Messages: []ringi.Message{ringi.User("Refund the lost parcels A-1031 and A-1032")}}
	var text string
	inputs := map[int]string{}
	var turn *ringi.ModelTurn
	for ev, err := range (Scripted{Delay: time.Microsecond}).Generate(context.Background(), req) {
		if err != nil || turn != nil {
			t.Fatalf("%v, or an event behind the turn", err)
		}
		text += ev.TextDelta
		if ev.InputDelta != "" {
			inputs[ev.CallIndex] += ev.InputDelta
		}
		turn = ev.Turn
	}
	if turn == nil || text != turn.Text || len(turn.Calls) != 3 || turn.Finish != ringi.FinishCalls || turn.Usage.OutputTokens == 0 {
		t.Fatalf("turn %+v, text %q", turn, text)
	}
	ids := map[string]bool{}
	for i, c := range turn.Calls {
		ids[c.ModelID] = true
		if inputs[i] != string(c.Input) {
			t.Errorf("call %d: streamed %q, closed %q", i, inputs[i], c.Input)
		}
	}
	if len(ids) != 3 {
		t.Errorf("ids: %v", ids)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("closed tab"))
	for ev, err := range Model().Generate(ctx, req) {
		if err == nil || ev.Turn != nil {
			t.Errorf("an ended context: %+v, %v", ev, err)
		}
	}
}
