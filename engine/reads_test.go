package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
)

// The reads of every turn run beside each other, those of a later one too: each
// waits until all of its turn are there.
func TestReadsOfEveryTurnRunTogether(t *testing.T) {
	const turns, reads = 4, 3
	w := newWorld(t)
	var met [turns]sync.WaitGroup
	for i := range met {
		met[i].Add(reads)
	}
	var said []*ringi.ModelTurn
	for i := range turns {
		n := string(rune('0' + i))
		said = append(said, calls("meet", `{"n":`+n+`}`, "meet", `{"n": `+n+`}`, "meet", `{ "n":`+n+`}`))
	}
	w.tool(ringi.Tool{Name: "meet", Effect: ringi.ReadOnly}, func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
		for i := range met {
			if c.Input.Canonical() == `{"n":`+string(rune('0'+i))+`}` {
				met[i].Done()
				met[i].Wait()
				return ringi.ToolResult{Output: string(c.Input)}, nil
			}
		}
		return ringi.ToolResult{}, ringi.NotDone(context.Canceled)
	})
	w.says(said...)
	res := w.run(w.engine(), ringi.RunStart{})
	wantStatus(t, res, ringi.Completed, 0)
	for i, r := range res.Results {
		if r.Output != string(said[i/reads].Calls[i%reads].Input) {
			t.Errorf("result %d is %+v", i, r)
		}
	}
}
