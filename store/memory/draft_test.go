package memory_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/store/memory"
)

// numbers is a sealer that numbers what it seals.
type numbers struct{ n byte }

func (s *numbers) Seal(drafts []ringi.Record) (head [32]byte, mac string) {
	for i := range drafts {
		s.n++
		drafts[i].Hash[0], drafts[i].Head[0] = s.n, 'a'+s.n
	}
	head[0] = s.n
	return head, string('A' + rune(s.n))
}

func draftOf(seq int64, owner string, seal ringi.Sealer) *ringi.Commit {
	return &ringi.Commit{
		Space: "default", RunID: "run_1", Expect: seq, Owner: owner, Claim: seq == 0, Epoch: min(seq, 1), Sealer: seal,
		Records: []ringi.Record{{Seq: seq + 1, Kind: ringi.EventRunStarted, Head: []byte("?"), Payload: []byte("p"), Salt: []byte("s")}},
		Row:     ringi.RunRow{Thread: "thr_1", Status: ringi.Running},
	}
}

// TestDrafts holds that whoever reads a run reads sealed records and the row's
// head, by whatever method, once and the same for all.
func TestDrafts(t *testing.T) {
	ctx := t.Context()
	read := map[string]func(*memory.Store) (ringi.RunRow, error){
		"Load": func(s *memory.Store) (ringi.RunRow, error) {
			r, err := s.Load(ctx, "default", "run_1")
			if err != nil {
				return ringi.RunRow{}, err
			}
			return r.Row, nil
		},
		"Row": func(s *memory.Store) (ringi.RunRow, error) { return s.Row(ctx, "default", "run_1") },
		"Runs": func(s *memory.Store) (ringi.RunRow, error) {
			rows, err := s.Runs(ctx, ringi.RunQuery{Space: "default"})
			return rows[0], err
		},
		"Runnable": func(s *memory.Store) (ringi.RunRow, error) {
			if err := s.Beat(ctx, "own_1", 0); err != nil {
				return ringi.RunRow{}, err
			}
			rows, err := s.Runnable(ctx, 1)
			return rows[0], err
		},
		"Transcript": func(s *memory.Store) (ringi.RunRow, error) {
			end := draftOf(3, "own_1", nil)
			end.Records, end.Row.Status = nil, ringi.Completed
			if err := s.Commit(ctx, end); err != nil {
				return ringi.RunRow{}, err
			}
			runs, err := s.Transcript(ctx, "default", "thr_1")
			return runs[0].Row, err
		},
	}
	for name, by := range read {
		t.Run(name, func(t *testing.T) {
			s := memory.New(memory.Options{})
			if err := s.Beat(ctx, "own_1", time.Hour); err != nil {
				t.Fatal(err)
			}
			seal := &numbers{}
			for seq := range int64(3) {
				if err := s.Commit(ctx, draftOf(seq, "own_1", seal)); err != nil {
					t.Fatal(err)
				}
			}
			if seal.n != 0 {
				t.Errorf("%d sealed before anybody read", seal.n)
			}
			row, err := by(s)
			if err != nil || row.Head[0] != 3 || row.MAC != "D" || row.Seq != 3 {
				t.Fatalf("%v, head %d", err, row.Head[0])
			}
			run, err := s.Load(ctx, "default", "run_1")
			if err != nil || seal.n != 3 {
				t.Fatalf("%v, %d sealed", err, seal.n)
			}
			for i, r := range run.Records {
				if r.Hash[0] != byte(i+1) || string(r.Head) != string('a'+rune(i+1)) {
					t.Errorf("record %d: %+v", i, r)
				}
			}
		})
	}
}

// TestDraftsAndOthers holds that drafts are sealed before another writer's
// records follow, and that readers beside a writer see none that are not.
func TestDraftsAndOthers(t *testing.T) {
	ctx := context.Background()
	s := memory.New(memory.Options{})
	if err := s.Beat(ctx, "own_1", time.Hour); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				run, err := s.Load(ctx, "default", "run_1")
				if err != nil {
					continue // not made yet
				}
				for _, r := range run.Records {
					if string(r.Head) == "?" || r.Hash == [32]byte{} {
						t.Errorf("record %d is not sealed", r.Seq)
					}
				}
			}
		})
	}
	var seals [2]numbers
	for seq := range int64(200) {
		c := draftOf(seq, "own_1", &seals[seq/100])
		if seq%50 == 49 {
			c.Sealer, c.Records[0].Head, c.Records[0].Hash[0] = nil, []byte(strconv.Itoa(int(seq))), 1
		}
		if err := s.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
	if _, err := s.Row(ctx, "default", "run_1"); err != nil || seals[0].n != 98 || seals[1].n != 98 {
		t.Errorf("%v, %d and %d sealed", err, seals[0].n, seals[1].n)
	}
}
