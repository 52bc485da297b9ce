package aisdk_test

import (
	"encoding/json"
	"testing"

	"github.com/ringi-dev/ringi/aisdk"
)

// The order of chunks is the SDK's own.
func TestB47_B63_AGatedCallWaits(t *testing.T) {
	s := newShop(t, opened{})
	u := s.user("ana", "chat-1")
	r := u.say("pay")
	if want := "start start-step text-start text-delta text-end tool-input-available tool-approval-request data-ringi-request finish-step finish"; r.types() != want {
		t.Errorf("chunks\n%s, want\n%s", r.types(), want)
	}
	if got := r.find("finish")["finishReason"]; got != "tool-calls" {
		t.Errorf("finish reason %v", got)
	}
	if p := s.Payments(); len(p) != 0 {
		t.Errorf("paid %v before anybody allowed it", p)
	}
	parts := u.toolParts()
	if len(parts) != 1 || parts[0]["state"] != "approval-requested" || parts[0]["approval"].(map[string]any)["id"] != r.find("tool-approval-request")["approvalId"] {
		t.Errorf("messages show %v", parts)
	}
}

func TestB49_B50_AnApprovalRunsTheOriginalInputOnce(t *testing.T) {
	s := newShop(t, opened{})
	u := s.user("ana", "chat-1")
	u.say("pay")
	answerPart(u.toolParts()[0], true, "")
	r := u.post("submit-message")
	if want := "start data-ringi-request tool-output-available start-step text-start text-delta text-end finish-step finish"; r.types() != want {
		t.Errorf("chunks\n%s, want\n%s", r.types(), want)
	}
	if p := s.Payments(); len(p) != 1 || p[0] != `{"to":"bob","amount":10}` {
		t.Errorf("paid %v", p)
	}
	u.reload()
	if got := u.toolParts()[0]; got["state"] != "output-available" || got["approval"].(map[string]any)["approved"] != true {
		t.Errorf("part %v", got)
	}
}

func TestB56_B65_ADenialRunsNothing(t *testing.T) {
	s := newShop(t, opened{})
	u := s.user("ana", "chat-1")
	u.say("pay")
	answerPart(u.toolParts()[0], false, "too dear")
	r := u.post("submit-message")
	if want := "start data-ringi-request tool-output-denied start-step text-start text-delta text-end finish-step finish"; r.types() != want {
		t.Errorf("chunks\n%s, want\n%s", r.types(), want)
	}
	if p := s.Payments(); len(p) != 0 {
		t.Errorf("paid %v", p)
	}
	u.reload()
	got := u.toolParts()[0]
	if a := got["approval"].(map[string]any); got["state"] != "output-denied" || a["approved"] != false || a["reason"] != "too dear" {
		t.Errorf("part %v", got)
	}
}

func TestThread_BelongsToItsUser(t *testing.T) {
	s := newShop(t, opened{})
	ana := s.user("ana", "chat-1")
	ana.say("pay")
	eve := s.user("eve", "chat-1")
	if got := eve.reload(); len(got) != 0 {
		t.Errorf("eve reads ana's chat: %v", got)
	}
	if r := eve.do("GET", "/chat-1/stream", nil); r.status != 204 {
		t.Errorf("eve streams ana's chat: %d %s", r.status, r.text)
	}
	eve.messages = ana.messages
	answerPart(eve.toolParts()[0], true, "")
	if r := eve.post("submit-message"); r.status != 409 || len(s.Payments()) != 0 {
		t.Errorf("eve answers for ana: %d %s, paid %v", r.status, r.text, s.Payments())
	}
	by, _ := json.Marshal(ana.messages[1]["metadata"])
	if want := aisdk.Thread("shop", principal("ana"), "chat-1"); !contains(string(by), want) {
		t.Errorf("metadata %s without thread %s", by, want)
	}
}
