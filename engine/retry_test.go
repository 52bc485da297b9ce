package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

func modelFault(class ringi.ModelErrorClass, after time.Duration) ringitest.Reply {
	return ringitest.Fail(&ringi.ModelError{Class: class, Provider: "test", RetryAfter: after, Err: errors.New("a fault")})
}

// The engine is the one place that retries a model call: what cannot pass is not
// tried again, and what may pass is, after what the vendor asked for.
func TestModelCallsAreTriedAgainByTheirClass(t *testing.T) {
	for _, c := range []struct {
		name    string
		fails   []ringitest.Reply
		asked   int
		min     time.Duration
		max     time.Duration
		done    bool
		details string
	}{
		{"auth", []ringitest.Reply{modelFault(ringi.ModelAuth, 0)}, 1, 0, 0, false, "auth"},
		{"quota", []ringitest.Reply{modelFault(ringi.ModelQuota, time.Second)}, 1, 0, 0, false, "quota"},
		{"context length", []ringitest.Reply{modelFault(ringi.ModelContextLength, 0)}, 1, 0, 0, false, "context_length"},
		{"bad request", []ringitest.Reply{modelFault(ringi.ModelBadRequest, 0)}, 1, 0, 0, false, "bad_request"},
		{"filtered", []ringitest.Reply{modelFault(ringi.ModelFiltered, 0)}, 1, 0, 0, false, "filtered"},
		{"no class", []ringitest.Reply{modelFault("", 0)}, 1, 0, 0, false, "a fault"},
		{"retry after", []ringitest.Reply{modelFault(ringi.ModelRateLimit, 20*time.Second), modelFault(ringi.ModelOverloaded, 3*time.Second)}, 3, 23 * time.Second, 23 * time.Second, true, ""},
		{"as long as allowed", []ringitest.Reply{modelFault(ringi.ModelRateLimit, time.Minute)}, 2, time.Minute, time.Minute, true, ""},
		{"longer than allowed", []ringitest.Reply{modelFault(ringi.ModelRateLimit, 61*time.Second)}, 1, 0, 0, false, "asked to wait 1m1s, longer than 1m0s"},
		{"no word of a wait", []ringitest.Reply{modelFault(ringi.ModelServer, 0), modelFault(ringi.ModelTimeout, 0)}, 3, 1125 * time.Millisecond, 1875 * time.Millisecond, true, ""},
		{"nothing is known", []ringitest.Reply{ringitest.Fail(errors.New("a fault")), ringitest.Broken()}, 3, 0, 0, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := ringitest.Script(append(c.fails, ringitest.Text("done"))...)
				start := time.Now()
				res, err := ringitest.Engine(t, engine.Config{Model: m}).Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < c.min || took > c.max {
					t.Errorf("took %s, want %s to %s", took, c.min, c.max)
				}
				if n := len(m.Requests()); n != c.asked || c.done != (res.Text == "done") || !strings.Contains(res.Detail, c.details) {
					t.Errorf("asked %d times, want %d; run is %s %q (%s)", n, c.asked, res.Status, res.Text, res.Detail)
				}
			})
		})
	}
}

// A run that waits for a vendor ends its wait with its caller, and with a cancel.
func TestAWaitForTheVendorEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ringitest.Script(modelFault(ringi.ModelRateLimit, 50*time.Second), ringitest.Text("done"))
		e := ringitest.Engine(t, engine.Config{Model: m})
		ctx, cancel := context.WithCancel(context.Background())
		start := time.Now()
		time.AfterFunc(2*time.Second, cancel)
		if _, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}); err == nil {
			t.Error("no error")
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the caller waited %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := ringitest.Script(modelFault(ringi.ModelRateLimit, 50*time.Second), ringitest.Text("done"))
		e := ringitest.Engine(t, engine.Config{Model: m})
		start := time.Now()
		time.AfterFunc(2*time.Second, func() {
			rows, err := e.Runs(context.Background(), ringi.RunQuery{})
			if err != nil || len(rows) != 1 {
				t.Errorf("%v, %v", rows, err)
				return
			}
			if err := e.Cancel(context.Background(), rows[0].ID, ana, "enough", true); err != nil {
				t.Error(err)
			}
		})
		res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
		if err != nil || res.Status != ringi.Cancelled || time.Since(start) != 2*time.Second {
			t.Errorf("%+v, %v after %s", res, err, time.Since(start))
		}
	})
}

// A fault whose own methods panic is a fault of which nothing is known.
func TestAModelErrorOfAForeignKind(t *testing.T) {
	if _, ok := ringi.ModelErrorOf(panicking{}); ok {
		t.Error("an error that panics has a class")
	}
	if _, ok := ringi.ModelErrorOf((*ringi.ModelError)(nil)); ok {
		t.Error("a nil error has a class")
	}
	if _, ok := ringi.ModelErrorOf(nil); ok {
		t.Error("no error has a class")
	}
}

type panicking struct{}

func (panicking) Error() string { panic("no") }
func (panicking) As(any) bool   { panic("no") }
