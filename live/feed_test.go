package live_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/live"
)

func text(step, attempt int, s string) ringi.Event {
	return ringi.Event{Kind: ringi.EventTextDelta, RunID: "run_1", Body: &ringi.Delta{Step: step, Attempt: attempt, Text: s}}
}

func started(step, attempt int) ringi.Event {
	return ringi.Event{Kind: ringi.EventStepStarted, RunID: "run_1", Body: &ringi.StepStarted{Step: step, Attempt: attempt}}
}

func read(w *live.Follower) string {
	got, st := w.Read(nil)
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d open=%v seq=%d", st.Step, st.Attempt, st.Open, st.Seq)
	for _, f := range got {
		fmt.Fprintf(&b, " %d:%s:%s%s", f.Piece, strings.TrimSuffix(string(f.Kind), "_delta"), f.Call, f.Text)
	}
	return b.String()
}

// A late follower gets the open turn from its start, a slow one gets more at
// once, and a turn that was discarded is no one's.
func TestFeed_OpenTurn(t *testing.T) {
	var f live.Feed
	f.Publish(started(1, 1))
	f.Publish(text(1, 1, "he"))
	w := f.Follow("run_1")
	defer w.Close()
	f.Publish(text(1, 1, "llo"))
	f.Publish(ringi.Event{Kind: ringi.EventInputDelta, RunID: "run_1", Body: &ringi.Delta{Step: 1, Attempt: 1, Text: "{", Call: "c1", Tool: "pay"}})
	select {
	case <-w.Bell():
	default:
		t.Error("no bell after a delta")
	}
	for _, want := range []string{"1/1 open=true seq=0 0:text:hello 1:input:c1{", "1/1 open=true seq=0"} {
		if got := read(w); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	f.Publish(ringi.Event{Kind: ringi.EventStepDiscarded, RunID: "run_1", Body: &ringi.StepDiscarded{Step: 1, Attempt: 1}})
	f.Publish(started(1, 2))
	f.Publish(text(1, 2, "again"))
	if got, want := read(w), "1/2 open=true seq=0 0:text:again"; got != want {
		t.Errorf("after a discarded turn: %q, want %q", got, want)
	}
	f.Publish(ringi.Event{Seq: 2, Kind: ringi.EventModelResponded, RunID: "run_1"})
	if got, want := read(w), "1/2 open=false seq=2"; got != want {
		t.Errorf("after the turn: %q, want %q", got, want)
	}
}

// A turn beyond the bound is not kept; nothing is lost but its deltas.
func TestFeed_Bound(t *testing.T) {
	var f live.Feed
	w := f.Follow("run_1")
	defer w.Close()
	big := strings.Repeat("x", live.MaxTurn/2+1)
	f.Publish(started(1, 1))
	f.Publish(text(1, 1, big))
	f.Publish(text(1, 1, big))
	got, _ := w.Read(nil)
	if len(got) != 1 || len(got[0].Text) != len(big) {
		t.Errorf("kept %d fragments", len(got))
	}
}

// Runs that nobody drives and nobody follows are forgotten, whatever is raced.
func TestFeed_Forgets(t *testing.T) {
	var f live.Feed
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for range 500 {
				f.Publish(started(1, 1))
				f.Publish(text(1, 1, "x"))
				f.Publish(ringi.Event{Kind: ringi.EventRunLeft, RunID: "run_1"})
			}
		}()
		go func() {
			defer wg.Done()
			for range 500 {
				w := f.Follow("run_1")
				w.Read(nil)
				w.Close()
			}
		}()
	}
	wg.Wait()
	w := f.Follow("run_1")
	if got := read(w); got != "0/0 open=false seq=0" && !strings.Contains(got, "open=false") {
		t.Errorf("left over: %s", got)
	}
	w.Close()
}

func BenchmarkPublish(b *testing.B) {
	var f live.Feed
	w := f.Follow("run_1")
	defer w.Close()
	d := &ringi.Delta{Step: 1, Attempt: 1, Text: "word "}
	ev := ringi.Event{Kind: ringi.EventTextDelta, RunID: "run_1", Body: d}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%200 == 0 {
			d.Step++
		}
		f.Publish(ev)
	}
}
