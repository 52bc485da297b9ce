package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// tools holds the snapshots of definitions.
func tools(t *testing.T, o opener) {
	o.run(t, "ByDigest", func(t *testing.T, g *stage) {
		if _, err := g.Tool(ctx, "sha256:1"); is(ringi.ErrNotFound)(err) != "" {
			t.Errorf("an unknown tool gives %v", err)
		}
		for _, def := range []string{`{"name":"pay"}`, `{"name":"pay"}`, `{"name":"forged"}`} {
			if err := g.SaveTool(ctx, "sha256:1", []byte(def)); err != nil {
				t.Fatal(err)
			}
		}
		g.tool("sha256:1", `{"name":"pay"}`)
		if _, err := g.Tool(ctx, "SHA256:1"); is(ringi.ErrNotFound)(err) != "" {
			t.Errorf("another letter case gives %v", err)
		}
	})
	o.run(t, "InACommit", func(t *testing.T, g *stage) {
		c := first("run_1", "thr_1")
		c.Tools = map[string][]byte{"sha256:1": []byte(`{"name":"pay"}`), "sha256:2": []byte(`{"name":"mail"}`)}
		g.commit(c)
		c = first("run_2", "thr_2")
		c.Tools = map[string][]byte{"sha256:2": []byte(`{"name":"forged"}`), "sha256:3": []byte(`{"name":"call"}`)}
		g.commit(c)
		g.tool("sha256:1", `{"name":"pay"}`)
		g.tool("sha256:2", `{"name":"mail"}`)
		g.tool("sha256:3", `{"name":"call"}`)
	})
}

func (g *stage) tool(digest, want string) {
	g.t.Helper()
	if got, err := g.Tool(ctx, digest); err != nil || string(got) != want {
		g.t.Errorf("tool %s is %q, %v; want %q", digest, got, err, want)
	}
}

// attempts holds what is kept beside the chain, and its bounds (S-31).
func attempts(t *testing.T, o opener) {
	o.run(t, "Kept", attemptsKept)
	o.run(t, "S31_OneRunIsBounded", func(t *testing.T, g *stage) {
		g.attempt(space, "run_2", "first")
		for i := range 1100 {
			g.attempt(space, "run_1", fmt.Sprint(i))
		}
		g.attempted(space, "run_1", 100, 1100)
		if a := g.attemptsOf(space, "run_2"); len(a) != 1 {
			t.Errorf("another run has %d attempts, want 1", len(a))
		}
	})
	t.Run("S31_AllAreBounded", func(t *testing.T) {
		if !o.features.Bounds {
			t.Skip("the store does not heed MaxAttempts")
		}
		allAreBounded(t, o.stage(t, func(o *Options) { o.MaxAttempts, o.MaxRunAttempts = 10, 4 }))
	})
}

func attemptsKept(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	want := []ringi.Attempt{
		{Space: space, RunID: "run_1", RequestID: "req_1", CallID: "call_1", Kind: "not_permitted",
			By: "eve", Channel: "inbox", Detail: "not a decider \u202e\x1b", At: g.clock.Now()},
		{Space: space, RunID: "run_1", Kind: "late_result", At: g.clock.Now().Add(-time.Hour)},
		{Space: space, RunID: "run_1", Kind: "late_result", At: g.clock.Now().Add(-time.Hour)}, // the same again
	}
	for _, a := range want {
		if err := g.Attempt(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "the attempts", g.attemptsOf(space, "run_1"), want)
	same(t, "the run's row", g.row("run_1"), row) // the run's log does not grow
	g.attempt(space, "run_unknown", "0")
	g.attempt("other", "run_1", "0")
	g.attempt(space, "RUN_1", "0")
	same(t, "the attempts", g.attemptsOf(space, "run_1"), want)
	g.attempted(space, "run_unknown", 0, 1)
	g.attempted("other", "run_1", 0, 1)
}

func allAreBounded(t *testing.T, g *stage) {
	for i := range 6 {
		g.attempt(space, "run_1", fmt.Sprint(i))
	}
	g.attempted(space, "run_1", 2, 6) // 4 of one run
	for i := range 4 {
		g.attempt(space, "run_2", fmt.Sprint(i))
	}
	g.attempt("other", "run_1", "0")
	g.attempt("other", "run_1", "1") // 10 in all
	g.attempted(space, "run_1", 2, 6)
	g.attempt("other", "run_1", "2")
	g.attempted(space, "run_1", 3, 6) // the oldest of all goes
	for i := range 3 {
		g.attempt(space, "run_3", fmt.Sprint(i))
	}
	if a := g.attemptsOf(space, "run_1"); len(a) != 0 {
		t.Errorf("run_1 has %d attempts, want none", len(a))
	}
	g.attempted(space, "run_2", 0, 4)
	g.attempted("other", "run_1", 0, 3)
	g.attempted(space, "run_3", 0, 3)
	// One run that goes on and on does not push the others out.
	for i := range 50 {
		g.attempt(space, "run_4", fmt.Sprint(i))
	}
	g.attempted(space, "run_4", 46, 50)
	total := 0
	for _, r := range [][2]string{{space, "run_2"}, {"other", "run_1"}, {space, "run_3"}, {space, "run_4"}} {
		total += len(g.attemptsOf(r[0], r[1]))
	}
	if total != 10 {
		t.Errorf("%d attempts in all, want 10", total)
	}
}

func (g *stage) attempt(sp, run, detail string) {
	g.t.Helper()
	if err := g.Attempt(ctx, ringi.Attempt{Space: sp, RunID: run, Kind: "stale", Detail: detail, At: g.clock.Now()}); err != nil {
		g.t.Fatalf("keep attempt: %v", err)
	}
}

func (g *stage) attemptsOf(sp, run string) []ringi.Attempt {
	g.t.Helper()
	a, err := g.Attempts(ctx, sp, run)
	if err != nil {
		g.t.Fatalf("read attempts: %v", err)
	}
	return a
}

// attempted expects attempts whose details count from, from+1, … up to to.
func (g *stage) attempted(sp, run string, from, to int) {
	g.t.Helper()
	var got, want []string
	for _, a := range g.attemptsOf(sp, run) {
		got = append(got, a.Detail)
	}
	for i := from; i < to; i++ {
		want = append(want, fmt.Sprint(i))
	}
	order(g.t, "attempts of "+sp+"/"+run, got, want...)
}

// keys holds what the store says of itself: id, key ids, flags.
func keys(t *testing.T, o opener) {
	o.run(t, "ID", func(t *testing.T, g *stage) {
		one, err := g.ID(ctx)
		if err != nil || !strings.HasPrefix(one, "store_") || len(one) != len("store_")+26 {
			t.Errorf("the id is %q, %v", one, err)
		}
		if again, err := g.ID(ctx); err != nil || again != one {
			t.Errorf("the id is %q, %v the second time, want %q", again, err, one)
		}
		if two, err := o.stage(t).ID(ctx); err != nil || two == one {
			t.Errorf("another store's id is %q too, %v", two, err)
		}
	})
	o.run(t, "Keys", keysRemembered)
	o.run(t, "Forget", keysForgotten)
	o.run(t, "Flags", flags)
	o.run(t, "Close", closed)
}

func keysRemembered(t *testing.T, g *stage) {
	check := func(want map[string]string) {
		t.Helper()
		got, err := g.Keys(ctx)
		if err != nil || len(got) != len(want) {
			t.Fatalf("the keys are %v, %v; want %v", got, err, want)
		}
		for id, c := range want {
			if v, ok := got[id]; !ok || v != c {
				t.Errorf("the key %s is %q, want %q", id, v, c)
			}
		}
		got["mine"] = "changed" // a copy
	}
	check(nil)
	want := map[string]string{"k1": "check1", "k2": "", "K1": "check3"}
	for id, c := range want {
		if err := g.RememberKey(ctx, id, c); err != nil {
			t.Fatal(err)
		}
	}
	check(want)
	if err := g.RememberKey(ctx, "k1", "check1"); err != nil {
		t.Errorf("the same key again: %v", err)
	}
	if err := g.RememberKey(ctx, "k1", "forged"); err == nil {
		t.Error("another check value for a known key was taken")
	}
	check(want)
}

// keysForgotten: a key goes, and the only one never does.
func keysForgotten(t *testing.T, g *stage) {
	left := func(want ...string) {
		t.Helper()
		got, err := g.Keys(ctx)
		if err != nil {
			t.Fatal(err)
		}
		order(t, "keys", slices.Sorted(maps.Keys(got)), want...)
	}
	if err := g.ForgetKey(ctx, "k1"); is(ringi.ErrNotFound)(err) != "" {
		t.Errorf("a key of an empty store: %v, want ErrNotFound", err)
	}
	for _, id := range []string{"k1", "k2", "k3"} {
		if err := g.RememberKey(ctx, id, "check of "+id); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.ForgetKey(ctx, "K1"); is(ringi.ErrNotFound)(err) != "" {
		t.Errorf("another letter case: %v, want ErrNotFound", err)
	}
	for _, id := range []string{"k1", "k3"} {
		if err := g.ForgetKey(ctx, id); err != nil {
			t.Fatal(err)
		}
		if err := g.ForgetKey(ctx, id); is(ringi.ErrNotFound)(err) != "" {
			t.Errorf("the same key again: %v, want ErrNotFound", err)
		}
	}
	left("k2")
	if complaint := plain(g.ForgetKey(ctx, "k2")); complaint != "" {
		t.Errorf("the only key: %s", complaint)
	}
	left("k2")
	if err := g.RememberKey(ctx, "k1", "of another key"); err != nil { // it is not known any more
		t.Errorf("a forgotten key again: %v", err)
	}
	left("k1", "k2")
}

func flags(t *testing.T, g *stage) {
	check := func(name, want string) {
		t.Helper()
		if got, err := g.Flag(ctx, name); err != nil || got != want {
			t.Errorf("the flag %q is %q, %v; want %q", name, got, err, want)
		}
	}
	check("simulated", "")
	for _, v := range []string{"replay of run_1", "another", "", "\u202e \U0001d50a"} {
		if err := g.SetFlag(ctx, "simulated", v); err != nil {
			t.Fatal(err)
		}
		check("simulated", v)
		check("Simulated", "")
		check("scripted_decisions", "")
	}
}

func closed(t *testing.T, g *stage) {
	g.commit(first("run_1", "thr_1"))
	row := g.row("run_1")
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	for name, err := range g.everyCall(ctx, row) {
		if err == nil {
			t.Errorf("%s on a closed store gives no error", name)
		}
	}
}
