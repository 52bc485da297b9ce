package backoffice

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// TestKettleOverCrashes ends the process at each commit of the conversation.
// Asked what happened, a person looks the call up in the office. Whatever
// happens, the customer is paid once and written to once, and the model says
// so.
func TestKettleOverCrashes(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		o := newOffice(t)
		o.Timeout = 25 * time.Second
		c.Engine(engine.Config{Registry: register(t, o), Model: Scripted{}, Zone: ringi.ZoneLocal})
		res := c.Run(ringi.RunStart{Messages: []ringi.Message{ringi.User(kettle)}, By: ringitest.Ben})
		res = c.Settle(res, func(r ringi.ApprovalRequest) (ringi.Decision, error) {
			if r.Kind == ringi.KindOutcome {
				return lookedUp(t, o, r), nil
			}
			return r.Approve(ringitest.Ana), nil
		})
		if err := res.Err(); err != nil {
			t.Fatal(err)
		}
		paid, err := o.Refunds(context.Background(), "A-1042")
		if err != nil {
			t.Fatal(err)
		}
		box, err := o.Outbox(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(paid) > 1 || len(box) > 2 {
			t.Errorf("paid %d times, wrote %d times", len(paid), len(box)-1)
		}
		// What a person says did not run is not tried again by the script.
		if said := strings.Contains(res.Text, "34.90 EUR is booked") || strings.Contains(res.Text, "34.90 EUR went through"); said != (len(paid) == 1) {
			t.Errorf("paid %d times, and the model says %q", len(paid), res.Text)
		}
		if said := strings.Contains(res.Text, "in the outbox") || strings.Contains(res.Text, "the mail to Mira Solheim went through"); said != (len(box) == 2) {
			t.Errorf("wrote %d times, and the model says %q", len(box)-1, res.Text)
		}
	})
}

// lookedUp is the answer of a person who reads the office's books.
func lookedUp(t *testing.T, o *Office, r ringi.ApprovalRequest) ringi.Decision {
	t.Helper()
	if r.Call.Tool == "send_mail" {
		box, err := o.Outbox(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(box) > 1 {
			return r.Ran(ringitest.Ana, "")
		}
		return r.DidNotRun(ringitest.Ana)
	}
	list, err := o.Refunds(context.Background(), "A-1042")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return r.DidNotRun(ringitest.Ana)
	}
	text, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	return r.Ran(ringitest.Ana, string(text))
}
