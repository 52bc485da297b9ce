package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
)

// Promise 3 of the design: kill the process between any two writes, and
// nothing pending is lost, no run is stranded, no non-idempotent write runs
// twice, and what may have run is said to be unknown. RINGI_KILLS says how
// often; the default keeps the test short.
func TestReplayKilled(t *testing.T) {
	kills := kills(25, 6)
	t.Run("one a turn", func(t *testing.T) { killReplays(t, kills-kills/2) })
	t.Run("joined", func(t *testing.T) { killReplays(t, kills/2, "--join", "4") })
	t.Run("joined and held", func(t *testing.T) { killReplays(t, min(kills, 5), "--join", "4", "--turn", "hold") })
}

// kills says how often a test kills: what RINGI_KILLS says, or the default.
func kills(long, short int) int {
	if n, err := strconv.Atoi(os.Getenv("RINGI_KILLS")); err == nil {
		return n
	}
	if testing.Short() {
		return short
	}
	return long
}

// A killed replay keeps its runs for as long as its lease, and no longer.
func TestReplayKilledKeepsItsLease(t *testing.T) {
	k := newKilling(t, copies(t, shed(), 10), "--lease", "700ms")
	for k.kill(); k.killed == 0; k.kill() {
	}
	got := replay(t, k.files, append(k.args, "--resume", "--outcome", "ran")...)
	if got.code != exitDone {
		t.Fatalf("exit %d: %s", got.code, got.err)
	}
	k.verify()
}

func killReplays(t *testing.T, kills int, args ...string) {
	files, total, left := killedFiles(t), 0, kills
	unknown := 0
	for left > 0 {
		k := newKilling(t, files, args...)
		for k.killed < left && !k.done {
			k.kill()
			k.endLease()
		}
		left -= k.killed
		total += k.killed
		got := replay(t, files, append(k.args, "--resume", "--outcome", "ran")...)
		if got.code != exitDone || got.sum.Waiting != 0 || got.sum.Mismatches != 0 {
			t.Fatalf("after %d kills: exit %d, %+v\n%s", k.killed, got.code, got.sum, got.err)
		}
		k.verify()
		unknown += got.sum.UnknownOutcome
	}
	t.Logf("%d kills, %d unknown outcomes", total, unknown)
}

// killedFiles is the airline's recording, or many copies of our own.
func killedFiles(t *testing.T) recordingFiles {
	if files, ok := findAirline(); ok {
		return files
	}
	return copies(t, shed(), 40)
}

// copies makes a recording of n times the conversations of another.
func copies(t testing.TB, r recordingFiles, n int) recordingFiles {
	t.Helper()
	text, err := os.ReadFile(r.transcripts)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for i := range n {
		all.WriteString(strings.ReplaceAll(string(text), `{"id": "shed-`, fmt.Sprintf(`{"id": "shed-%d-`, i)))
	}
	r.transcripts = filepath.Join(t.TempDir(), "transcripts.jsonl")
	if err := os.WriteFile(r.transcripts, all.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// killing is one store whose replay is killed again and again.
type killing struct {
	t       *testing.T
	files   recordingFiles
	args    []string
	db      string
	effects string
	rng     *rand.Rand
	killed  int
	done    bool
}

func newKilling(t *testing.T, files recordingFiles, args ...string) *killing {
	dir := t.TempDir()
	k := &killing{t: t, files: files, db: filepath.Join(dir, "replay.db"), effects: filepath.Join(dir, "effects")}
	k.args = append([]string{"--store", "sqlite:" + k.db, "--effects", k.effects}, args...)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k.rng = rand.New(rand.NewPCG(seed, 0))
	return k
}

// kill starts the replay, or takes it up, and kills it: after some more
// executions, or after some time, and a moment.
func (k *killing) kill() {
	k.t.Helper()
	outcomes := []string{outcomeLeave, outcomeRan, outcomeDidNotRun}
	args := append(k.files.args(), append(k.args, "--resume", "--outcome", outcomes[k.rng.IntN(3)])...)
	child := asProcess(args...)
	var errs bytes.Buffer
	child.Stderr = &errs
	if err := child.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	err := k.wait(ended)
	if errors.Is(err, errStillRunning) {
		child.Process.Kill() // SIGKILL
		err = <-ended
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		k.done = true
	case errors.As(err, &exit) && exit.ExitCode() == -1:
		k.killed++
	case errors.As(err, &exit) && exit.ExitCode() == exitWaiting:
		// Only unknown outcomes are left, which this round leaves.
	default:
		k.t.Fatalf("replay ended with %v: %s", err, errs.String())
	}
}

// asProcess is the command in a process of its own: the test binary.
func asProcess(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	return c
}

var errStillRunning = errors.New("still running")

// wait waits for the moment to kill, or for the end of the process.
func (k *killing) wait(ended <-chan error) error {
	target := lines(k.effects) + 1 + k.rng.IntN(40)
	end := time.Now().Add(90 * time.Second)
	if k.rng.IntN(4) == 0 {
		end = time.Now().Add(time.Duration(k.rng.IntN(400)) * time.Millisecond)
	}
	for time.Now().Before(end) && lines(k.effects) < target {
		select {
		case err := <-ended:
			return err
		case <-time.After(200 * time.Microsecond):
		}
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Duration(k.rng.IntN(5000)) * time.Microsecond):
		return errStillRunning
	}
}

// endLease ends the heartbeats of the process, which is known to be dead here:
// the test does not wait for its lease.
func (k *killing) endLease() {
	k.t.Helper()
	ctx := k.t.Context()
	store, err := makeStore("sqlite:" + k.db)
	if err != nil {
		k.t.Fatal(err)
	}
	defer store.Close()
	rows, err := store.Runs(ctx, ringi.RunQuery{Space: "default", Status: []ringi.RunStatus{ringi.Running}, Limit: 1000})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, row := range rows {
		if row.Owner == "" {
			k.t.Errorf("run %s is running and nobody holds it", row.ID)
			continue
		}
		if err := store.Beat(ctx, row.Owner, 0); err != nil {
			k.t.Fatal(err)
		}
	}
}

// verify holds the effects against the recording and the log: no
// non-idempotent write has two lines, and every call of the recording has one,
// or its outcome was unknown.
func (k *killing) verify() {
	k.t.Helper()
	text, err := os.ReadFile(k.effects)
	if err != nil {
		k.t.Fatal(err)
	}
	store, err := openStore("sqlite:" + k.db)
	if err != nil {
		k.t.Fatal(err)
	}
	defer store.Close()
	join := 1
	for i, a := range k.args {
		if a == "--join" {
			join, _ = strconv.Atoi(k.args[i+1])
		}
	}
	for _, fault := range verifyEffects(k.t, store, k.files, join, string(text)) {
		k.t.Error(fault)
	}
}

func verifyEffects(t *testing.T, store ringi.Store, files recordingFiles, join int, effects string) []string {
	t.Helper()
	scripts, _, err := readTranscripts(files.transcripts)
	if err != nil {
		t.Fatal(err)
	}
	return verifyScripts(t, store, scripts, join, effects)
}

// verifyScripts returns what is wrong, over any store.
func verifyScripts(t *testing.T, store ringi.Store, scripts []*script, join int, effects string) (faults []string) {
	t.Helper()
	ran := map[string]int{} // by thread, run and call
	for line := range strings.Lines(effects) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 {
			return []string{fmt.Sprintf("effects hold the line %q", line)}
		}
		key := strings.Join(f[:3], "\t")
		if ran[key]++; ran[key] > 1 && ringi.Effect(f[4]) == ringi.NonIdempotentWrite {
			faults = append(faults, "ran twice: "+line)
		}
	}
	for _, s := range scripts {
		runs, err := store.Transcript(t.Context(), "default", s.thread)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != len(s.runs) {
			faults = append(faults, fmt.Sprintf("%s has %d ended runs of %d", s.thread, len(runs), len(s.runs)))
			continue
		}
		for i, run := range runs {
			faults = append(faults, verifyRun(t, store, &s.runs[i], run, join, ran)...)
		}
	}
	return faults
}

func verifyRun(t *testing.T, store ringi.Store, want *scriptRun, run *ringi.StoredRun, join int, ran map[string]int) (faults []string) {
	t.Helper()
	id, err := store.ID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events, err := audit.Events(id, "default", run.Row.ID, run.Records, run.Row.Head, run.Row.Seq)
	if err != nil {
		t.Fatal(err)
	}
	unknown := foldPlayed(events).unknown
	said := 0
	for step := 1; !want.ended(said); step++ {
		turn, _ := want.turn(said, join)
		said += turn.weight()
		for pos := range turn.calls {
			call := fmt.Sprintf("call_%s_%d_%d", strings.TrimPrefix(run.Row.ID, "run_"), step, pos)
			if ran[run.Row.Thread+"\t"+run.Row.ID+"\t"+call] == 0 && !unknown[call] {
				faults = append(faults, fmt.Sprintf("call %s of %s neither ran nor is an unknown outcome", call, run.Row.Thread))
			}
		}
	}
	return faults
}

// The checks above find what they are for.
func TestVerifyEffectsFindsFaults(t *testing.T) {
	k := newKilling(t, shed())
	replay(t, k.files, k.args...).want(t, exitDone, shedAll)
	store, err := openStore("sqlite:" + k.db)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	text, err := os.ReadFile(k.effects)
	if err != nil {
		t.Fatal(err)
	}
	var letter, read string
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, "send_letter\tnon_idempotent_write"):
			letter = line
		case strings.Contains(line, "\tread_only"):
			read = line
		}
	}
	tests := map[string]struct {
		effects string
		faults  int
	}{
		"as it ran":       {string(text), 0},
		"a read twice":    {string(text) + read, 0},
		"a letter twice":  {string(text) + letter, 1},
		"a letter never":  {strings.ReplaceAll(string(text), letter, ""), 1},
		"half a line":     {string(text) + "shed-001\trun", 1},
		"nothing of it":   {"", shedAll.ToolCalls},
		"another's lines": {strings.ReplaceAll(string(text), "\tcall_", "\tcall_x"), shedAll.ToolCalls},
	}
	for name, tt := range tests {
		if got := verifyEffects(t, store, k.files, 1, tt.effects); len(got) != tt.faults {
			t.Errorf("%s: %d faults, want %d: %q", name, len(got), tt.faults, got)
		}
	}
}
