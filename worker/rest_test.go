package worker

import (
	"testing"
	"time"
)

// What is remembered of runs does not grow with those that wait for people.
func TestForgetsWhatIsNotTriedAgain(t *testing.T) {
	now := time.Now()
	rests := map[string]*resting{
		"stuck":   {until: now.Add(time.Second)},
		"due":     {until: now.Add(-time.Second)},
		"waiting": {until: now.Add(-2 * time.Minute)},
	}
	forget(rests, time.Minute)
	if len(rests) != 2 || rests["waiting"] != nil {
		t.Errorf("%d are left: %v", len(rests), rests)
	}
}

// The rest doubles, from Options.Rest up to Options.MaxRest.
func TestRestDoubles(t *testing.T) {
	s := newShift(New(Options{Rest: time.Second, MaxRest: 5 * time.Second}), nil, nil)
	for tries, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if got := s.restOf(tries); got != want {
			t.Errorf("after %d tries: %s, want %s", tries, got, want)
		}
	}
	if got := s.restOf(1 << 30); got != 5*time.Second {
		t.Errorf("after many tries: %s", got)
	}
}
