package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// errDisk is what a faulty store says.
var errDisk = errors.New("disk is not well today")

// faultyStore fails commits, half of them after they were made: the caller
// cannot know which. Reads fail too where readShare is above zero.
type faultyStore struct {
	ringi.Store
	commitShare, readShare float64

	mu     sync.Mutex
	rng    *rand.Rand
	faults int
}

// fails draws one, and says whether the fault comes after the deed.
func (s *faultyStore) fails(share float64) (before, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rng.Float64() >= share {
		return false, false
	}
	s.faults++
	after = s.rng.IntN(2) == 0
	return !after, after
}

func (s *faultyStore) Commit(ctx context.Context, c *ringi.Commit) error {
	before, after := s.fails(s.commitShare)
	if before {
		return errDisk
	}
	err := s.Store.Commit(ctx, c)
	if after && err == nil {
		err = errDisk
	}
	return err
}

func (s *faultyStore) Load(ctx context.Context, space, runID string) (*ringi.StoredRun, error) {
	if before, after := s.fails(s.readShare); before || after {
		return nil, errDisk
	}
	return s.Store.Load(ctx, space, runID)
}

func (s *faultyStore) Transcript(ctx context.Context, space, thread string) ([]*ringi.StoredRun, error) {
	if before, after := s.fails(s.readShare); before || after {
		return nil, errDisk
	}
	return s.Store.Transcript(ctx, space, thread)
}

func (s *faultyStore) Row(ctx context.Context, space, runID string) (ringi.RunRow, error) {
	if before, after := s.fails(s.readShare); before || after {
		return ringi.RunRow{}, errDisk
	}
	return s.Store.Row(ctx, space, runID)
}

func (s *faultyStore) Beat(ctx context.Context, owner string, lease time.Duration) error {
	if before, after := s.fails(s.readShare); before || after {
		return errDisk
	}
	return s.Store.Beat(ctx, owner, lease)
}

// Promise 3 of the design, with errors instead of kills: a process that goes
// on after a failed commit strands no run, runs no non-idempotent write twice,
// and says what it cannot know.
func TestReplayFaultyStore(t *testing.T) {
	files := killedFiles(t)
	tests := []struct {
		name           string
		store          string
		commits, reads float64
		args           func(*replayFlags)
	}{
		{"memory", "memory", 0.4, 0, nil},
		{"memory joined", "memory", 0.4, 0, func(f *replayFlags) { f.join = 4 }},
		{"memory joined and held", "memory", 0.4, 0, func(f *replayFlags) { f.join, f.turn = 4, string(ringi.Hold) }},
		{"memory with failing reads", "memory", 0.2, 0.05, func(f *replayFlags) { f.join = 4 }},
		{"memory that hardly works", "memory", 0.8, 0, func(f *replayFlags) { f.limit, f.join = 15, 4 }},
		{"sqlite", "sqlite", 0.3, 0, func(f *replayFlags) { f.limit = 40 }},
		{"sqlite joined", "sqlite", 0.3, 0.02, func(f *replayFlags) { f.limit, f.join = 40, 4 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := replayFlags{tools: files.tools, transcripts: files.transcripts, approve: approveAll, outcome: outcomeRan,
				join: 1, parallel: 8, lease: 2 * time.Second, effects: filepath.Join(t.TempDir(), "effects")}
			if testing.Short() {
				f.limit = 20
			}
			if tt.args != nil {
				tt.args(&f)
			}
			name := tt.store
			if name == "sqlite" {
				name = "sqlite:" + filepath.Join(t.TempDir(), "replay.db")
			}
			replayWithFaults(t, f, name, tt.commits, tt.reads)
		})
	}
}

// replayWithFaults plays over a faulty store, and once more over the sound one
// as another process would: nothing may be left that it cannot take up.
func replayWithFaults(t *testing.T, f replayFlags, name string, commits, reads float64) {
	sound, err := makeStore(name)
	if err != nil {
		t.Fatal(err)
	}
	defer sound.Close()
	seed := uint64(time.Now().UnixNano())
	faulty := &faultyStore{Store: sound, commitShare: commits, readShare: reads, rng: rand.New(rand.NewPCG(seed, 0))}
	rec, err := readRecording(f)
	if err != nil {
		t.Fatal(err)
	}
	e, _, errs := testEnv()
	e.space = "default"
	e.err = errs
	tools := &recordedTools{join: f.join}
	if tools.effects, err = openEffects(f.effects); err != nil {
		t.Fatal(err)
	}
	defer tools.effects.close()
	reg, err := tools.registry(rec.tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []ringi.Store{faulty, sound} {
		p, err := e.newPlayer(f, rec, store, reg)
		if err != nil {
			t.Fatal(err)
		}
		err = p.playAll(t.Context(), rec.scripts, store == sound)
		if err != nil && (store == sound || !errors.Is(err, errDisk)) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err != nil {
			t.Logf("the faulty store ended some threads: %.300s", err)
		}
	}
	sum, err := summarize(t.Context(), sound, "default", rec.scripts, f.join)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d: %d faults, %+v", seed, faulty.faults, *sum)
	if sum.unfinished > 0 || sum.Waiting > 0 || sum.Mismatches > 0 {
		t.Errorf("%d conversations are not played to their end, %d runs wait, %d messages differ: %s", sum.unfinished, sum.Waiting, sum.Mismatches, sum.first)
	}
	if faulty.faults == 0 {
		t.Error("the store never failed")
	}
	left, err := sound.Runnable(t.Context(), 100)
	if err != nil || len(left) > 0 {
		t.Errorf("%d runs are left for somebody to take up, %v", len(left), err)
	}
	text, err := os.ReadFile(f.effects)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range verifyScripts(t, sound, rec.scripts, f.join, string(text)) {
		t.Errorf("seed %d: %s", seed, fault)
	}
}
