package httploop_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

const a5, b6 = `{"order": "A-1017", "amount": 5.0}`, `{"order":"A-1018","amount":6}`

// The bytes that the model wrote run, once, over restarts of both sides.
func TestWaitRestartApprove(t *testing.T) {
	each(t, "", []string{calls(a5), bye}, func(s *scene) {
		first := s.turn(1)
		s.restart()
		if again := s.turn(1); again[0] != first[0] {
			s.t.Errorf("it waits for %v, and waited for %v", again, first)
		}
		s.wantRan()
		s.decide(first[0], `{"answer":"approve"}`)
		s.restart()
		s.turn(0)
		s.wantRan("refund " + a5)
		s.wantTold("refunded 5")
		s.turn(0)
		s.wantRan("refund " + a5)
	})
}

func TestEightResumesAtOnce(t *testing.T) {
	each(t, "", []string{calls(a5), bye}, func(s *scene) {
		s.decide(s.turn(1)[0], `{"answer":"approve"}`)
		var outs [8]bytes.Buffer
		var ends []func() error
		for i := range outs {
			ends = append(ends, s.spawn(&outs[i]).Wait)
		}
		for i, end := range ends {
			if err := end(); err != nil || !strings.HasPrefix(outs[i].String(), "done") {
				s.t.Errorf("%v %s", err, outs[i].String())
			}
		}
		s.wantRan("refund " + a5)
	})
}

func TestApproveOneOfTwoAndDenyTheOther(t *testing.T) {
	each(t, "", []string{calls(a5, b6), bye}, func(s *scene) {
		both := s.turn(2)
		s.decide(both[0], `{"answer":"approve"}`)
		if left := s.turn(1); left[0] != both[1] {
			s.t.Errorf("it waits for %v", left)
		}
		s.wantRan("refund " + a5)
		s.decide(both[1], `{"answer":"deny","reason":"the lamp is fine, offer a voucher"}`)
		s.turn(0)
		s.wantRan("refund " + a5)
		s.wantTold("refunded 5", "the lamp is fine, offer a voucher")
	})
}

func TestEdit(t *testing.T) {
	each(t, "", []string{calls(a5), bye}, func(s *scene) {
		s.decide(s.turn(1)[0], `{"answer":"edit","input":{"order":"A-1017","amount":3},"and_approve":true}`)
		s.turn(0)
		s.wantRan(`refund {"order":"A-1017","amount":3}`)
		s.wantTold("refunded 3")
	})
}

func TestExpire(t *testing.T) {
	each(t, "    expiry: 1s\n", []string{calls(a5), bye}, func(s *scene) {
		s.turn(1)
		time.Sleep(1100 * time.Millisecond)
		s.restart()
		s.turn(0)
		s.wantRan()
		s.wantTold("expired")
	})
}

// A loop that dies between the start and the result leaves an unknown outcome,
// and a person says what happened.
func TestKilledBetweenStartAndResult(t *testing.T) {
	each(t, "    limits: {tool_timeout: 2s}\n", []string{calls(a5), bye}, func(s *scene) {
		s.decide(s.turn(1)[0], `{"answer":"approve"}`)
		cmd := s.spawn(os.Stderr, "HANG=1")
		for begun := time.Now(); s.ran() == ""; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 2*time.Minute {
				s.t.Fatal("the tool does not begin")
			}
		}
		s.must(cmd.Process.Kill())
		_ = cmd.Wait()
		s.restart()
		outcome := s.turn(1)
		if text, _ := s.api("GET", "/v1/approvals/"+outcome[0], "", ""); !strings.Contains(text, `"kind":"outcome"`) {
			s.t.Errorf("it waits for %s", text)
		}
		s.wantRan("refund " + a5)
		s.decide(outcome[0], `{"answer":"ran","result":"refunded 5, says the bank"}`)
		s.turn(0)
		s.wantRan("refund " + a5)
		s.wantTold("refunded 5, says the bank")
	})
}
