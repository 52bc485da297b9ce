package engine_test

import (
	"fmt"
	"testing"

	"github.com/ringi-dev/ringi"
)

// A commit that was made and reported a failure is streamed like any other:
// the reader misses no event of the log.
func TestStreamHandsOutACommitThatReportedAFailure(t *testing.T) {
	for k := range 4 {
		t.Run(fmt.Sprintf("commit %d", k), func(t *testing.T) {
			w := newWorld(t)
			w.says(calls("find", `{}`))
			n := 0
			w.cfg.Store = &failing{Store: w.store, after: true, when: func(*ringi.Commit) bool { n++; return n == k+1 }}
			seq := int64(0)
			var last ringi.EventKind
			for ev, err := range w.engine().Stream(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}) {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Seq == 0 {
					continue
				}
				if ev.Seq != seq+1 {
					t.Errorf("event %d follows event %d", ev.Seq, seq)
				}
				seq, last = ev.Seq, ev.Kind
			}
			if seq != 4 || last != ringi.EventModelResponded {
				t.Errorf("the last event is %d, %s", seq, last)
			}
		})
	}
}
