// Package bench compares Ringi's loop with charm.land/fantasy's, which has no
// approvals. It is a module of its own: what it compares with reaches no user
// of the library.
package bench

import "testing"

// The rows of the comparison. A turn is short enough that a busy machine
// leaves some turns alone, and long enough that the clock does not count.
var (
	toolCall     = row{steps: 1, calls: 1, turn: 50}
	tenSteps     = row{steps: 10, calls: 3, turn: 5}
	hundredSteps = row{steps: 100, calls: 3, turn: 1}
)

// BenchmarkToolCall is one call of a tool and a final text.
func BenchmarkToolCall(b *testing.B) { compare(b, toolCall) }

// BenchmarkTenSteps is ten steps of three calls, and a final text.
func BenchmarkTenSteps(b *testing.B) { compare(b, tenSteps) }

// BenchmarkHundredSteps shows whether cost is linear in the steps: set it
// beside ten times BenchmarkTenSteps.
func BenchmarkHundredSteps(b *testing.B) { compare(b, hundredSteps) }

// TestBenchmarkedSides holds that both sides do the same work: every call
// reaches the tool with its input, every result reaches the model as the same
// bytes, and the run ends with the model's text.
func TestBenchmarkedSides(t *testing.T) {
	for _, setUp := range []maker{ringiSide, fantasySide} {
		for _, r := range []row{toolCall, tenSteps, hundredSteps} {
			var log worklog
			s := setUp(t, r, &log)
			t.Run(s.name, func(t *testing.T) {
				if err := s.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := r.steps * r.calls
				if got := int(log.calls.Load()); got != want || log.results != want || log.models != r.steps+1 {
					t.Errorf("%d steps of %d calls: %d calls reached the tool, %d results and %d questions the model",
						r.steps, r.calls, got, log.results, log.models)
				}
			})
		}
	}
}
