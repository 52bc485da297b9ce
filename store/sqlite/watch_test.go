package sqlite

import (
	"path/filepath"
	"testing"
	"time"
)

// closes reports whether a channel is closed within a time.
func closes(c <-chan struct{}, within time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(within):
		return false
	}
}

// A store tells what it commits itself, and what another opening of the same
// file commits: the one it does not take for the other.
func TestChangesAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	a, b := openTest(t, path, Options{}), openTest(t, path, Options{})
	commit(t, b, first("run_before"))
	closes(a.ChangedElsewhere(), time.Second) // nobody has asked before: it may be closed for nothing

	any, elsewhere := a.Changed(), a.ChangedElsewhere()
	if closes(any, 5*watchEvery) || closes(elsewhere, 0) {
		t.Fatal("told of a change, and there was none")
	}
	commit(t, a, first("run_here"))
	if !closes(any, time.Minute) {
		t.Error("not told of its own commit once that is on the disk")
	}
	if closes(elsewhere, 5*watchEvery) {
		t.Error("its own commit is taken for another's")
	}
	any = a.Changed()
	commit(t, b, first("run_there"))
	if !closes(elsewhere, time.Minute) || !closes(any, time.Minute) {
		t.Error("not told of another's commit")
	}
}

// It is told too where the store itself writes without a rest.
func TestChangesAreToldWhileBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	a, b := openTest(t, path, Options{}), openTest(t, path, Options{})
	closes(a.ChangedElsewhere(), time.Second)
	elsewhere := a.ChangedElsewhere()
	commit(t, a, first("run_busy"))
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := int64(1); ; n += 2 {
			select {
			case <-stop:
				return
			default:
			}
			if err := a.Commit(t.Context(), step("run_busy", n)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	commit(t, b, first("run_there"))
	if !closes(elsewhere, time.Minute) {
		t.Error("not told of another's commit")
	}
	close(stop)
	<-ended
}

// BenchmarkLookElsewhere is what asking SQLite costs.
func BenchmarkLookElsewhere(b *testing.B) {
	w := &writer{s: &Store{}}
	if err := w.connect(filepath.Join(b.TempDir(), "ringi.db")); err != nil {
		b.Fatal(err)
	}
	defer w.disconnect()
	for b.Loop() {
		w.lookElsewhere()
	}
}
