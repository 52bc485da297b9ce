package toolcontext

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type key struct{}

// teller tells its own text.
type teller string

func (t teller) Tell() any { return string(t) }

func TestContextAnswersItsKeysAndTheBasesValues(t *testing.T) {
	base, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	cancel()
	c := &Context{Base: Detach(base), Tool: teller("tool"), Run: "run"}
	if c.Value(Key{}) != "tool" || c.Value(RunKey{}) != "run" || c.Value(key{}) != "v" {
		t.Error("a value is lost")
	}
	if c.Err() != nil {
		t.Errorf("the caller's cancellation came through: %v", c.Err())
	}
	if _, ok := c.Deadline(); ok {
		t.Error("a deadline out of nothing")
	}
}

func TestContextEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, waits := range []bool{false, true} {
			c := &Context{Base: Detach(t.Context()), Until: time.Now().Add(time.Second)}
			if waits {
				<-c.Done()
			} else {
				time.Sleep(time.Second)
			}
			if !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("waits %v: %v", waits, c.Err())
			}
			c.Cancel()
		}
	})
}

func TestContextCancel(t *testing.T) {
	for _, asked := range []bool{false, true} {
		c := &Context{Base: Detach(context.WithValue(t.Context(), key{}, "v")), Until: time.Now().Add(time.Hour)}
		var child context.Context = c
		if asked {
			var stop context.CancelFunc
			child, stop = context.WithCancel(c)
			defer stop()
		}
		c.Cancel()
		c.Cancel()
		<-child.Done()
		if !errors.Is(c.Err(), context.Canceled) || c.Value(key{}) != "v" {
			t.Errorf("asked %v: %v, %v", asked, c.Err(), c.Value(key{}))
		}
	}
}

func TestDetachAllocatesNothingForAValue(t *testing.T) {
	ctx := Detach(context.WithValue(t.Context(), key{}, "v"))
	if n := testing.AllocsPerRun(100, func() { ctx.Value(key{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
