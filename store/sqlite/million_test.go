package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// BenchmarkMillion asks for pages of 50 among a million pending requests, in
// ways that suit the indices and in ways that do not, and reports the p50 and
// p99 of each. It makes its store once, in some minutes: give it -timeout 30m.
func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("it makes a million requests")
	}
	path := million(b)
	s, err := Open(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	middle, err := s.Requests(ctx, ringi.RequestQuery{Space: "default", Search: "n500000n"})
	if err != nil || len(middle) != 1 {
		b.Fatalf("%d rows, %v", len(middle), err)
	}
	if all, err := s.RequestCount(ctx, ringi.RequestQuery{Space: "default"}, 0); err != nil || all != 1000 {
		b.Fatalf("%d are counted, %v", all, err)
	}
	eve := ringi.Principal{ID: "eve", Teams: []string{"team7", "none"}}
	for _, c := range []struct {
		name string
		q    ringi.RequestQuery
		want int
	}{
		{"list", ringi.RequestQuery{}, 50},
		{"middle", ringi.RequestQuery{After: middle[0].ID}, 50},
		{"common tool", ringi.RequestQuery{Tool: "tool0"}, 50},
		{"rare tool", ringi.RequestQuery{Tool: "rare"}, 10},
		{"rare kind", ringi.RequestQuery{Kind: ringi.KindOutcome}, 50},
		{"no such agent", ringi.RequestQuery{Agent: "nobody"}, 0},
		{"tool and agent that never meet", ringi.RequestQuery{Tool: "tool0", Agent: "agent1"}, 0},
		{"initiator", ringi.RequestQuery{Initiator: "user777"}, 50},
		{"initiator and tool", ringi.RequestQuery{Initiator: "user777", Tool: "tool3"}, -1},
		{"for a person", ringi.RequestQuery{For: ringi.Principal{ID: "person99"}}, 50},
		{"for a person and his teams", ringi.RequestQuery{For: eve}, 50},
		{"for him, of a tool and agent", ringi.RequestQuery{For: eve, Tool: "tool7", Agent: "agent1"}, -1},
		{"a risk", ringi.RequestQuery{Risk: ringi.RiskHigh}, 50},
		{"a risk that the tool never has", ringi.RequestQuery{Risk: ringi.RiskHigh, Tool: "tool3"}, 0},
		{"the lowest risk that the tool never has", ringi.RequestQuery{Risk: ringi.RiskLow, Tool: "tool4"}, 0},
		{"a risk for a person and his teams", ringi.RequestQuery{Risk: ringi.RiskHigh, For: eve}, 50},
		{"a risk and a common word", ringi.RequestQuery{Risk: ringi.RiskHigh, Search: "customer"}, 50},
		{"common word", ringi.RequestQuery{Search: "customer"}, 50},
		{"one row's word", ringi.RequestQuery{Search: "n987654n"}, 1},
		{"inside of a word", ringi.RequestQuery{Search: "98765"}, -1},
		{"no row's word", ringi.RequestQuery{Search: "xylophone"}, 0},
		{"words that never meet", ringi.RequestQuery{Search: "even-handed odd-numbered"}, 0},
		{"many words", ringi.RequestQuery{Search: "please send the money back to the customer user4321"}, -1},
		{"two letters that are rare", ringi.RequestQuery{Search: "zq"}, 10},
		{"two letters of few rows", ringi.RequestQuery{Search: "77", Tool: "rare"}, -1},
		{"word for a person", ringi.RequestQuery{Search: "user432", For: eve}, -1},
		{"letters without words between them", ringi.RequestQuery{Search: "漢字"}, 50},
	} {
		for _, order := range []ringi.RequestOrder{ringi.OldestFirst, ringi.NewestFirst, ringi.SoonestFirst, ringi.RiskiestFirst} {
			c.q.Space, c.q.Order = "default", order
			name := strings.ReplaceAll(c.name+"/"+string(order), " ", "_")
			b.Run(strings.TrimSuffix(name, "/"), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					rows, err := s.Requests(ctx, c.q)
					took = append(took, time.Since(start))
					if err != nil || c.want >= 0 && len(rows) != c.want {
						b.Fatalf("%d rows, %v; want %d", len(rows), err, c.want)
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}

// BenchmarkMillionCounts asks, of the same store, what stands on every page of an
// inbox: how many wait for somebody, up to a hundred; and the numbers of a day
// on which 10,000 of a million were decided.
func BenchmarkMillionCounts(b *testing.B) {
	if testing.Short() {
		b.Skip("it makes a million requests")
	}
	s, err := Open(million(b), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	err = s.write(ctx, 0, func(w *writer) error {
		_, err := w.exec(`UPDATE requests SET state = 'denied', decided_at = created_at + 60000000, decided_by = 'boss'
			WHERE n IN (SELECT n FROM requests WHERE decided_at IS NULL LIMIT max(0, 10000 - (SELECT count(*) FROM requests WHERE decided_at IS NOT NULL)))`)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	eve := ringi.Principal{ID: "eve", Teams: []string{"team7", "none"}}
	now := time.Now()
	for name, ask := range map[string]func() error{
		"badge": func() error {
			_, err := s.RequestCount(ctx, ringi.RequestQuery{Space: "default", For: eve}, 100)
			return err
		},
		"day": func() error {
			t, err := s.RequestTally(ctx, ringi.RequestQuery{Space: "default"}, now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
			if err == nil && t.Sum().Denied != 10_000 {
				b.Fatalf("%d are counted", t.Sum().Denied)
			}
			return err
		},
		"day for a person": func() error {
			_, err := s.RequestTally(ctx, ringi.RequestQuery{Space: "default", For: eve}, now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
			return err
		},
		"similar": func() error {
			_, err := s.RequestTally(ctx, ringi.RequestQuery{Space: "default", Tool: "tool1", Search: "similar:0123456789abcdef"}, now.AddDate(0, -1, 0), now)
			return err
		},
	} {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if err := ask(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// million makes the store of the benchmark, in the file that RINGI_MILLION names
// where it is set: there the next one finds it.
func million(b *testing.B) string {
	b.Helper()
	path := os.Getenv("RINGI_MILLION")
	if path == "" {
		path = filepath.Join(b.TempDir(), "ringi.db")
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	start := time.Now()
	if err := fillMillion(path, 1_000_000); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("made in %s, %d MiB", time.Since(start).Round(time.Second), info.Size()>>20)
	return path
}

// fillMillion writes n pending requests as commits do, many in a transaction.
func fillMillion(path string, n int) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	const bulk, usual = 32 << 20, 1 << 20 // what FTS5 collects before it writes a segment
	if err := collects(s, bulk); err != nil {
		return err
	}
	dice := rand.New(rand.NewPCG(1, 2))
	at := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	const some = 20_000
	for i := 0; i < n; i += some {
		c := first(fmt.Sprintf("run_%d", i))
		c.Row.Agent = "agent"
		if err := s.Commit(context.Background(), c); err != nil {
			return err
		}
		err := s.write(context.Background(), 0, func(w *writer) error {
			for j := i; j < min(i+some, n); j++ {
				at = at.Add(time.Duration(1+dice.IntN(5000)) * time.Microsecond)
				r := millionth(dice, j, at)
				r.RunID, r.Thread = c.RunID, c.Row.Thread
				if err := w.insertRequest(c, &r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return collects(s, usual)
}

func collects(s *Store, bytes int64) error {
	return s.write(context.Background(), 0, func(w *writer) error {
		_, err := w.exec(`INSERT INTO request_terms (request_terms, rank) VALUES ('hashsize', ?)`, bytes)
		return err
	})
}

func millionth(dice *rand.Rand, i int, at time.Time) ringi.RequestRow {
	const letters = "0123456789abcdefghjkmnprstvwxy"
	id := func() string {
		b := []byte("01kbfh7")
		for range 19 {
			b = append(b, letters[dice.IntN(len(letters))])
		}
		return string(b)
	}
	r := ringi.RequestRow{Space: "default", ID: "req_" + id() + "_1_0", CallID: "call_" + id(), Kind: ringi.KindApproval,
		State: ringi.Pending, Digest: id() + id(), CreatedAt: at, ExpiresAt: at.Add(72 * time.Hour)}
	tool := dice.IntN(10)
	r.Tool, r.Agent = fmt.Sprint("tool", tool), fmt.Sprint("agent", (tool+2*dice.IntN(5))%10) // of the same parity
	r.Risk = ringi.Risks()[1+tool%2]                                                          // a tool reads or writes; few requests are of the highest risk
	if tool >= 8 && i%3 == 0 {
		r.Risk = ringi.RiskHigh
	}
	user := dice.IntN(5000)
	r.Initiator = fmt.Sprint("user", user)
	half := "even-handed"
	switch {
	case i%2 == 1:
		half = "odd-numbered"
	case i%1000 == 500:
		r.Kind, r.ExpiresAt = ringi.KindOutcome, time.Time{}
	}
	switch dice.IntN(4) {
	case 0:
		r.People = []string{fmt.Sprint("person", dice.IntN(2000)), "boss"}
	case 1, 2:
		r.Teams = []string{fmt.Sprint("team", dice.IntN(500))}
	default:
		r.People = []string{"boss"}
	}
	word := ""
	switch {
	case i%100_000 == 99_998:
		r.Tool, word = "rare", "azqb"
	case i%5000 == 4000:
		word = "漢字です"
	}
	r.Text = strings.ToLower(fmt.Sprintf("%s %s %s %s %s please send the money back to the customer order n%dn %s %s",
		r.Tool, r.Agent, r.ID, r.CallID, r.Initiator, i, half, word))
	return r
}
