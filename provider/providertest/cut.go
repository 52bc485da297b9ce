package providertest

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

// cuts are streams that end early (S-38). A turn is whole or there is none: the
// same turn, never a part of it.
func (v Vendor) cuts(t *testing.T) {
	t.Run("S38_AtEveryByte", v.everyByte)
	t.Run("S38_NothingIsJudged", v.nothingJudged)
	t.Run("S38_FramesInPieces", v.pieces)
}

func cuttable() Answer {
	return Answer{N: 1, Text: "I pay ä.", Reasoning: "It is due.", Fragment: 7, Usage: usage,
		Calls: []ringi.ToolCall{call("call_1", "look", `{}`), call("call_2", "pay", `{"n":1,"note":"{}"}`)}}
}

// everyByte cuts at each of the first and last 40 bytes and at every 13th between
// them; RINGI_CUTS=1 at each.
func (v *Vendor) everyByte(t *testing.T) {
	frames := v.Stream(cuttable())
	total := len(strings.Join(frames, ""))
	s := NewServer(t)
	m := v.Model(t, Setup{URL: s.URL, Key: s.Key})
	s.Add(Reply{Header: v.Header, Frames: frames})
	_, whole, err := generate(t.Context(), m, oneRequest())
	if err != nil {
		t.Fatal(err)
	}
	every, turns := os.Getenv("RINGI_CUTS") != "", 0
	for n := 1; n < total; n++ {
		if !every && n%13 != 0 && n > 40 && n < total-40 {
			continue
		}
		s.Add(Reply{Header: v.Header, Frames: frames, Cut: n, Drop: n%5 == 0})
		_, turn, err := generate(t.Context(), m, oneRequest())
		switch {
		case turn == nil && err == nil:
			t.Fatalf("cut at byte %d: neither a turn nor an error", n)
		case turn != nil && err != nil:
			t.Fatalf("cut at byte %d: a turn and %v", n, err)
		case turn != nil && !reflect.DeepEqual(turn, whole):
			t.Fatalf("cut at byte %d of %d: another turn: %+v", n, total, turn)
		case turn != nil:
			turns++
		default:
			if e, ok := ringi.ModelErrorOf(err); !ok || !e.Class.Retryable() {
				t.Fatalf("cut at byte %d: %v, want an error that may pass", n, err)
			}
		}
	}
	// Behind what closes the stream a vendor may send a few bytes more.
	if last := len(frames[len(frames)-1]); turns > last {
		t.Errorf("%d cuts gave a turn; the closing frame has %d bytes", turns, last)
	}
}

// nothingJudged cuts between frames and asks the engine: no call is recorded.
func (v *Vendor) nothingJudged(t *testing.T) {
	frames := v.Stream(cuttable())
	n := 0
	for i := range len(frames) - 1 {
		n += len(frames[i])
		s := NewServer(t, Reply{Header: v.Header, Frames: frames, Cut: n})
		g := &stage{t: t, v: v, server: s}
		g.open(v.Model(t, Setup{URL: s.URL, Key: s.Key}))
		res := g.run("", "Pay.")
		if res.Status != ringi.Failed || res.Reason != ringi.ReasonModelFailed || res.ToolCalls != 0 || len(g.ran.Calls()) != 0 {
			t.Errorf("cut behind frame %d: run is %s (%s) with %d calls, %v ran", i, res.Status, res.Reason, res.ToolCalls, g.ran.Calls())
		}
		events, err := g.e.Events(context.Background(), res.RunID, 0)
		must(t, err)
		for _, ev := range events {
			if ev.Kind == ringi.EventModelResponded {
				t.Errorf("cut behind frame %d: a turn is recorded", i)
			}
		}
	}
}

// pieces: a network splits frames anywhere.
func (v *Vendor) pieces(t *testing.T) {
	a := cuttable()
	all := strings.Join(v.Stream(a), "")
	for _, size := range []int{1, 2, 3, 7, 64} {
		var frames []string
		for rest := all; rest != ""; {
			n := min(size, len(rest))
			frames, rest = append(frames, rest[:n]), rest[n:]
		}
		s := NewServer(t, Reply{Header: v.Header, Frames: frames, Gap: 1})
		_, turn, err := generate(t.Context(), v.Model(t, Setup{URL: s.URL, Key: s.Key}), oneRequest())
		if err != nil || turn.Text != a.Text || len(turn.Calls) != 2 || turn.Calls[1].Input != a.Calls[1].Input {
			t.Errorf("pieces of %d bytes: %+v, %v", size, turn, err)
		}
	}
}
