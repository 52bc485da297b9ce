package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// FuzzFold folds arbitrary sequences of events, two bytes each: what happens,
// and to which of a few calls and requests. No sequence panics, and whatever
// the fold takes keeps the promises of sound: a log that would break one does
// not fold, and nothing of it runs.
func FuzzFold(f *testing.F) {
	for _, seed := range foldSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		s := &state{}
		var was heard
		for i := 0; i+1 < len(script) && i < 128; i += 2 {
			body := foldEvent(s, script[i], script[i+1])
			ev := &ringi.Event{Seq: int64(i/2) + 1, Kind: body.Kind(), At: time.Unix(int64(i), 0).UTC(), Body: body}
			if err := s.apply(ev); err != nil {
				if !errors.Is(err, ringi.ErrCorrupt) {
					t.Fatalf("event %d (%s): %v is no ErrCorrupt", ev.Seq, ev.Kind, err)
				}
				return
			}
			if err := was.sound(s, ev); err != nil {
				t.Fatalf("event %d (%s) is taken: %v", ev.Seq, ev.Kind, err)
			}
			s.waits()
			s.pending()
			s.openRequests()
		}
	})
}

// What happens, as the first byte of a pair names it.
const (
	opStart = iota
	opTurn
	opAsk
	opPropose
	opRefuseInput
	opApprove
	opDeny
	opRespond
	opTakeBack
	opClose
	opBegin
	opFinish
	opUnknown
	opSettle
	opCancel
	opEnd
	opErase
	opLastTurn
	ops
)

// foldSeeds are lives that an engine writes, and some that none does.
var foldSeeds = [][]byte{
	{opStart, 0, opTurn, 1, opAsk, 0, opApprove, 0, opBegin, 0, opFinish, 0, opLastTurn, 0},
	{opStart, 0, opTurn, 2, opBegin, 1 | 8, opFinish, 1, opAsk, 0, opDeny, 0, opEnd, 0},
	{opStart, 0, opTurn, 1, opAsk, 0, opPropose, 0, opClose, 0 | 2<<4, opAsk, 0 | 1<<4 | 8, opApprove, 1, opBegin, 0 | 1<<4, opFinish, 0},
	{opStart, 0, opTurn, 1, opAsk, 0, opApprove, 0, opTakeBack, 0, opAsk, 0 | 1<<4, opRespond, 1, opEnd, 0},
	{opStart, 0, opTurn, 1, opBegin, 0 | 8, opUnknown, 0, opSettle, 0 | 2<<4, opAsk, 0 | 1<<4, opApprove, 1, opBegin, 0 | 1<<4, opFinish, 0},
	{opStart, 0, opTurn, 1, opAsk, 0, opCancel, 0, opClose, 0 | 1<<4, opEnd, 0, opErase, 0},
	{opStart, 0, opTurn, 1, opAsk, 0, opFinish, 0, opDeny, 0},
	{opStart, 0, opTurn, 1, opAsk, 0, opFinish, 0, opEnd, 0},
	{opStart, 0, opTurn, 1, opBegin, 0 | 8, opUnknown, 0, opUnknown, 0 | 1<<4},
	{opStart, 0, opTurn, 1, opAsk, 0, opAsk, 0},
	{opTurn, 1}, {opStart, 0, opStart, 0}, {opStart, 0, opEnd, 0, opErase, 0, opTurn, 1},
}

// foldEvent makes the event of a pair of bytes. Its low three bits choose a
// call or a request, the fourth is a flag, the others a second choice.
func foldEvent(s *state, op, arg byte) ringi.EventBody {
	one, two, flag := int(arg&7), int(arg>>4), arg&8 != 0
	call := fmt.Sprintf("call_%d", one)
	request := fmt.Sprintf("req_%d", one)
	switch op % ops {
	case opStart:
		return &ringi.RunStarted{Thread: "thr"}
	case opTurn, opLastTurn:
		return foldTurn(s, one, flag, op%ops == opLastTurn)
	case opAsk:
		return &ringi.ApprovalRequested{Request: fmt.Sprintf("req_%d", two), Call: call, Ask: foldKinds[two%len(foldKinds)], Digest: "d", Proposed: flag, Input: `{"p":1}`}
	case opPropose:
		return &ringi.InputProposed{Request: request, Digest: "d", Answer: ringi.Edit, Input: `{}`}
	case opRefuseInput:
		return &ringi.InputRefused{Request: request}
	case opApprove:
		return &ringi.ApprovalDecided{Request: request, Answer: ringi.Approve, Digest: "d"}
	case opDeny:
		return &ringi.ApprovalDecided{Request: request, Answer: ringi.Deny, Digest: "d"}
	case opRespond:
		return &ringi.ApprovalDecided{Request: request, Answer: foldAnswers[two%len(foldAnswers)], Digest: "d"}
	case opTakeBack:
		return &ringi.ApprovalTakenBack{Request: request}
	case opClose:
		return &ringi.RequestClosed{Request: request, State: foldStates[two%len(foldStates)], Again: flag}
	case opBegin:
		ev := &ringi.ToolStarted{Call: call, Attempt: 1 + two/8, Effect: ringi.NonIdempotentWrite}
		if !flag {
			ev.Request = fmt.Sprintf("req_%d", two%8)
		}
		return ev
	case opFinish:
		results := []ringi.FinishedCall{{Call: call, Outcome: ringi.OutcomeOK}}
		if flag {
			results = append(results, ringi.FinishedCall{Call: fmt.Sprintf("call_%d", two%8)})
		}
		return &ringi.ToolFinished{Results: results}
	case opUnknown:
		ev := &ringi.OutcomeUnknown{Call: call}
		if !flag {
			ev.Request = ringi.ApprovalRequested{Request: fmt.Sprintf("req_%d", two), Call: call, Ask: ringi.KindOutcome, Digest: "d"}
		}
		return ev
	case opSettle:
		return &ringi.OutcomeSettled{Request: request, Call: fmt.Sprintf("call_%d", two/4), Answer: foldOutcomes[two%4], Digest: "d"}
	case opCancel:
		return &ringi.CancelRequested{Now: flag}
	case opEnd:
		return &ringi.RunFinished{Status: foldEnds[two%len(foldEnds)]}
	}
	return &ringi.RunErased{}
}

var (
	foldKinds    = []ringi.RequestKind{ringi.KindApproval, ringi.KindApproval, ringi.KindInput, ringi.KindResult, ringi.KindOutcome}
	foldAnswers  = []ringi.Answer{ringi.Respond, ringi.Edit, ringi.Ran, ""}
	foldStates   = []ringi.RequestState{ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent, ringi.Pending}
	foldOutcomes = []ringi.Answer{ringi.Ran, ringi.DidNotRun, ringi.RunAgain, ringi.Approve}
	foldEnds     = []ringi.RunStatus{ringi.Completed, ringi.Failed, ringi.Cancelled, ringi.Running}
)

// foldTurn is the next turn, or another, of up to seven calls with new ids.
func foldTurn(s *state, n int, flag, last bool) ringi.EventBody {
	ev := &ringi.ModelResponded{Step: len(s.turns) + 1}
	if flag {
		ev.Step++
	}
	if last {
		ev.Finished = &ringi.RunFinished{Status: ringi.Completed}
	}
	for i := range n {
		j := ringi.JudgedCall{ID: fmt.Sprintf("call_%d", s.calls+i), Tool: "pay", Input: `{}`}
		if i == 3 {
			j.Code = ringi.CodeUnknownTool
		}
		ev.Calls = append(ev.Calls, j)
	}
	return ev
}

// heard is what was true of a state before, to see what never changes.
type heard struct {
	results map[string]*ringi.ToolResult
	states  map[*request]ringi.RequestState
	ended   bool
}

// sound holds a state to what every event must leave as it is.
func (h *heard) sound(s *state, ev *ringi.Event) error {
	if h.results == nil {
		h.results, h.states = map[string]*ringi.ToolResult{}, map[*request]ringi.RequestState{}
	}
	if h.ended && ev.Kind != ringi.EventRunErased {
		return errors.New("the run had ended")
	}
	for i, t := range s.turns {
		if i < len(s.turns)-1 && t.open() {
			return fmt.Errorf("turn %d is open and not the last", i+1)
		}
		for _, c := range t.calls {
			if old := h.results[c.judged.ID]; old != nil && old != c.result {
				return fmt.Errorf("call %s has a second result", c.judged.ID)
			}
			if c.result != nil {
				h.results[c.judged.ID] = c.result
			}
		}
	}
	if err := h.requests(s); err != nil {
		return err
	}
	h.ended = s.finished != nil
	if h.ended && (len(s.openRequests()) > 0 || s.turn() != nil && s.turn().open()) {
		return errors.New("the run ended with an open call or request")
	}
	return nil
}

// requests: each id is there once, a call waits for one at most, states move by
// the table of ringi.RequestState, and nothing is spent that was not approved.
func (h *heard) requests(s *state) error {
	ids, open := map[string]bool{}, map[*call]bool{}
	for _, r := range s.requests {
		if ids[r.ev.Request] {
			return fmt.Errorf("request %s is there twice", r.ev.Request)
		}
		ids[r.ev.Request] = true
		if r.state.Open() {
			if open[r.call] {
				return fmt.Errorf("call %s has two open requests", r.call.judged.ID)
			}
			if r.call.result != nil {
				return fmt.Errorf("request %s of call %s is %s, and the call has its result", r.ev.Request, r.call.judged.ID, r.state)
			}
			open[r.call] = true
		}
		approved := r.decided != nil && r.decided.Answer != ringi.Deny
		if r.outcomeKind() {
			approved = r.settled != nil
			if len(r.call.started) == 0 && r.state == ringi.Pending {
				return fmt.Errorf("request %s asks what became of a call that did not start", r.ev.Request)
			}
		}
		if (r.state == ringi.Granted || r.state == ringi.Spent) && !approved {
			return fmt.Errorf("request %s is %s without a yes", r.ev.Request, r.state)
		}
		if old, ok := h.states[r]; ok && old != r.state && !movesTo(old, r.state) {
			return fmt.Errorf("request %s moved from %s to %s", r.ev.Request, old, r.state)
		}
		h.states[r] = r.state
	}
	return nil
}

func movesTo(from, to ringi.RequestState) bool {
	switch to {
	case ringi.Granted, ringi.Refused:
		return from == ringi.Pending
	case ringi.Spent: // at once, where a person answers in the tool's place or tells an outcome
		return from == ringi.Granted || from == ringi.Pending
	}
	return to != ringi.Pending && from.Open()
}
