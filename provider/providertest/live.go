package providertest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// live talks to the real vendor: text, a call that is approved, one that is
// denied, and one that is answered by a person.
func (v Vendor) live(t *testing.T) {
	key := os.Getenv(v.LiveKey)
	if v.Live == nil || key == "" {
		t.Skipf("%s is not set: nothing is sent to the real vendor", v.LiveKey)
	}
	m := v.Live(t, key)
	t.Run("Text", func(t *testing.T) {
		_, turn, err := generate(t.Context(), m, ringi.ModelRequest{Messages: []ringi.Message{ringi.User("Say the word ringi, nothing else.")}, Step: 1, Attempt: 1})
		if err != nil || !strings.Contains(strings.ToLower(turn.Text), "ringi") || turn.Usage.InputTokens == 0 {
			t.Errorf("%+v, %v", turn, err)
		}
	})
	answers := map[string]func(ringi.ApprovalRequest) ringi.Decision{
		"Approved":  func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ana) },
		"Denied":    func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ana, "not today") },
		"Responded": func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(ana, []byte(`{"paid":true}`)) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) { v.livePause(t, m, answer) })
	}
}

func (v *Vendor) livePause(t *testing.T, m ringi.Model, answer func(ringi.ApprovalRequest) ringi.Decision) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	g := &stage{t: t, v: v}
	reg := ringi.NewRegistry()
	g.tools(reg)
	e := ringitest.Engine(t, engine.Config{Registry: reg, Model: m, System: system})
	res, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("Call the tool pay once with n = 1, and look once, both in the same turn. Then tell me in a word what came of it.")}})
	must(t, err)
	for range 5 {
		if !res.Status.Waiting() {
			break
		}
		for _, r := range res.Pending {
			_, err := e.Decide(ctx, answer(r))
			must(t, err)
		}
		res, err = e.Resume(ctx, res.RunID)
		must(t, err)
	}
	if err := res.Err(); err != nil || res.Text == "" {
		t.Errorf("run is %s: %v", res.Status, err)
	}
}
