package ringitest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

var hello = ringi.RunStart{Messages: []ringi.Message{ringi.User("hello")}}

// ask asks a model once, and returns its deltas, its turn and its error.
func ask(ctx context.Context, m ringi.Model, step, attempt int) (deltas []string, turn *ringi.ModelTurn, err error) {
	for ev, e := range m.Generate(ctx, ringi.ModelRequest{Step: step, Attempt: attempt}) {
		switch {
		case e != nil:
			err = e
		case ev.Turn != nil:
			turn = ev.Turn
		default:
			deltas = append(deltas, ev.TextDelta)
		}
	}
	return deltas, turn, err
}

func TestScriptIsReadByStepAndAttempt(t *testing.T) {
	lost := errors.New("connection lost")
	m := ringitest.Script(
		ringitest.Fail(lost),
		ringitest.Broken(),
		ringitest.Calls(ringitest.Call("a", `{}`)),
		ringitest.Deltas("Do", "ne."), ringitest.Finish(ringi.FinishLength, ringitest.Text("Done.")))
	for range 2 { // asked again, as after a restart, it says the same
		if _, turn, err := ask(t.Context(), m, 1, 1); turn != nil || !errors.Is(err, lost) {
			t.Errorf("first attempt: %v, %v", turn, err)
		}
		if _, turn, err := ask(t.Context(), m, 1, 2); turn != nil || err != nil {
			t.Errorf("broken attempt: %v, %v", turn, err)
		}
		for _, attempt := range []int{3, 4} {
			if _, turn, err := ask(t.Context(), m, 1, attempt); err != nil || len(turn.Calls) != 1 || turn.Calls[0].Tool != "a" || turn.Finish != ringi.FinishCalls {
				t.Errorf("attempt %d: %v, %v", attempt, turn, err)
			}
		}
		deltas, turn, err := ask(t.Context(), m, 2, 1)
		if err != nil || turn.Text != "Done." || turn.Finish != ringi.FinishLength || !slices.Equal(deltas, []string{"Do", "ne."}) {
			t.Errorf("second step: %q, %v, %v", deltas, turn, err)
		}
		for _, step := range []int{0, 3} {
			if _, turn, err := ask(t.Context(), m, step, 1); turn != nil || err == nil {
				t.Errorf("step %d is outside the script: %v, %v", step, turn, err)
			}
		}
	}
	if n := len(m.Requests()); n != 14 {
		t.Errorf("%d requests are kept, want 14", n)
	}
}

func TestDeltasAtTheEndAreABrokenStream(t *testing.T) {
	deltas, turn, err := ask(t.Context(), ringitest.Script(ringitest.Deltas("half a")), 1, 1)
	if turn != nil || err != nil || !slices.Equal(deltas, []string{"half a"}) {
		t.Error(deltas, turn, err)
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ringitest.Script(ringitest.Delay(time.Hour, ringitest.Text("late")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		if _, turn, err := ask(ctx, m, 1, 1); turn != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(turn, err)
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the model stopped after %s", took)
		}
		if _, turn, err := ask(t.Context(), m, 1, 1); err != nil || turn.Text != "late" {
			t.Error(turn, err)
		}
		if took := time.Since(begun); took != time.Hour+time.Minute {
			t.Errorf("the model answered after %s", took)
		}
	})
}

func TestScriptFuncSeesTheRequest(t *testing.T) {
	m := ringitest.ScriptFunc(func(req ringi.ModelRequest) ringi.ModelTurn {
		return ringi.ModelTurn{Text: "you said " + req.Messages[0].Text}
	})
	res, err := ringitest.Engine(t, engine.Config{Model: m}).Run(t.Context(), hello)
	if err != nil || res.Text != "you said hello" {
		t.Error(res, err)
	}
}

// A model that fails once is asked again by the engine; one that fails always
// fails the run.
func TestFailingModels(t *testing.T) {
	fail := ringitest.Fail(errors.New("overloaded"))
	for _, c := range []struct {
		name  string
		model *ringitest.Model
		want  ringi.Reason
		asked int
	}{
		{"once", ringitest.Script(fail, ringitest.Text("hi")), ringi.ReasonCompleted, 2},
		{"broken once", ringitest.Script(ringitest.Broken(), ringitest.Text("hi")), ringi.ReasonCompleted, 2},
		{"always", ringitest.Script(fail), ringi.ReasonModelFailed, 3},
		{"no turn left", ringitest.Script(), ringi.ReasonModelFailed, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := ringitest.Engine(t, engine.Config{Model: c.model}).Run(t.Context(), hello)
			if err != nil || res.Reason != c.want {
				t.Errorf("%+v, %v; want %s", res, err, c.want)
			}
			if n := len(c.model.Requests()); n != c.asked {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
		})
	}
}
