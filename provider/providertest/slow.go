package providertest

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// slow are vendors that are silent or slow, and callers who leave.
func (v Vendor) slow(t *testing.T) {
	t.Run("SilentBeforeTheAnswer", func(t *testing.T) { v.silent(t, Reply{Stall: true}, Setup{Idle: 80 * time.Millisecond}) })
	t.Run("SilentInTheStream", func(t *testing.T) {
		frames := v.Stream(Answer{N: 1, Text: "a long text", Fragment: 1})
		v.silent(t, Reply{Header: v.Header, Frames: frames[:4], Hang: true}, Setup{Idle: 80 * time.Millisecond})
	})
	t.Run("LongerThanAllowed", func(t *testing.T) {
		frames := v.Stream(Answer{N: 1, Text: "a text of forty letters, or of even more", Fragment: 1})
		v.silent(t, Reply{Header: v.Header, Frames: frames, Gap: 20 * time.Millisecond}, Setup{Total: 200 * time.Millisecond})
	})
	t.Run("SlowButAlive", v.alive)
	t.Run("LeavesNoGoroutine", v.leaves)
}

func (v *Vendor) silent(t *testing.T, r Reply, s Setup) {
	server := NewServer(t, r)
	s.URL, s.Key = server.URL, server.Key
	within(t, 10*time.Second, func() {
		_, turn, err := generate(context.Background(), v.Model(t, s), oneRequest())
		if e, ok := ringi.ModelErrorOf(err); turn != nil || !ok || e.Class != ringi.ModelTimeout {
			t.Errorf("turn %+v, error %v, want one of class timeout", turn, err)
		}
	})
	if r.Gap == 0 {
		server.WantLeft()
	}
}

// alive: a stream that takes longer than the silence that is allowed, and is
// never silent so long.
func (v *Vendor) alive(t *testing.T) {
	frames := v.Stream(Answer{N: 1, Text: "twenty letters or so", Fragment: 1})
	s := NewServer(t, Reply{Header: v.Header, Frames: frames, Gap: 25 * time.Millisecond})
	_, turn, err := generate(t.Context(), v.Model(t, Setup{URL: s.URL, Key: s.Key, Idle: 400 * time.Millisecond}), oneRequest())
	if err != nil || turn.Text != "twenty letters or so" {
		t.Errorf("%+v, %v", turn, err)
	}
}

// leaves: whatever ends a call leaves nothing behind.
func (v *Vendor) leaves(t *testing.T) {
	frames := v.Stream(Answer{N: 1, Text: "a long text", Fragment: 1})
	before := runtime.NumGoroutine()
	for i := range 12 {
		r := Reply{Header: v.Header, Frames: frames[:4], Hang: true}
		switch i % 4 {
		case 1:
			r = Reply{Stall: true}
		case 2:
			r = Reply{Header: v.Header, Frames: frames, Cut: 40, Drop: true}
		case 3:
			r = Reply{Status: 500, Body: "sorry"}
		}
		s := NewServer(t, r)
		ctx, cancel := context.WithCancelCause(context.Background())
		left := errors.New("somebody left")
		if i%4 < 2 {
			time.AfterFunc(30*time.Millisecond, func() { cancel(left) })
		}
		_, turn, err := generate(ctx, v.Model(t, Setup{URL: s.URL, Key: s.Key}), oneRequest())
		if turn != nil || err == nil || i%4 < 2 && !errors.Is(err, left) {
			t.Errorf("turn %+v, error %v", turn, err)
		}
		cancel(nil)
		s.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}
