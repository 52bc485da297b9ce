package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// A recording to play, as files.
type recordingFiles struct{ tools, transcripts, system string }

func (r recordingFiles) args() []string {
	return []string{"replay", "--json", "--tools", r.tools, "--transcripts", r.transcripts, "--system", r.system}
}

func filesIn(dir string) recordingFiles {
	return recordingFiles{filepath.Join(dir, "tools.json"), filepath.Join(dir, "transcripts.jsonl"), filepath.Join(dir, "system.md")}
}

// shed is our own recording: 4 conversations, 7 runs, 17 calls, 7 of writes.
func shed() recordingFiles { return filesIn(filepath.Join("testdata", "replay")) }

// findAirline finds 140 real recordings beside the repository, or where
// RINGI_SHARED says. They are not part of it.
func findAirline() (recordingFiles, bool) {
	var roots []string
	if dir := os.Getenv("RINGI_SHARED"); dir != "" {
		roots = append(roots, dir)
	}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			roots = append(roots, filepath.Join(dir, "shared"))
		}
	}
	for _, root := range roots {
		files := filesIn(filepath.Join(root, "data", "airline"))
		if _, err := os.Stat(files.transcripts); err == nil {
			return files, true
		}
	}
	return recordingFiles{}, false
}

func airline(t *testing.T) recordingFiles {
	t.Helper()
	files, ok := findAirline()
	if !ok {
		t.Skip("no recordings of an airline: no folder shared/data/airline above, and RINGI_SHARED names none")
	}
	return files
}

// replayed is what one ringi replay came to.
type replayed struct {
	code     int
	sum      replaySummary
	out, err string
}

// testEnv is an environment without a terminal.
func testEnv() (*env, *bytes.Buffer, *bytes.Buffer) {
	var out, err bytes.Buffer
	return &env{in: strings.NewReader(""), out: &out, err: &err, getenv: func(string) string { return "" }, now: time.Now}, &out, &err
}

// replay runs ringi replay in this process.
func replay(t *testing.T, r recordingFiles, args ...string) replayed {
	t.Helper()
	e, out, errs := testEnv()
	got := replayed{code: execute(t.Context(), e, append(r.args(), args...))}
	got.out, got.err = out.String(), errs.String()
	if got.out != "" {
		if err := json.Unmarshal(out.Bytes(), &got.sum); err != nil {
			t.Fatalf("summary is no JSON: %v\n%s", err, got.out)
		}
	}
	got.sum.Seconds = 0
	return got
}

// want compares code and counts. Events is compared where it is set.
func (r replayed) want(t *testing.T, code int, want replaySummary) {
	t.Helper()
	if want.Events == 0 {
		want.Events = r.sum.Events
	}
	if r.code != code || r.sum != want {
		t.Fatalf("exit %d, summary\n%+v, want exit %d,\n%+v\n%s", r.code, r.sum, code, want, r.err)
	}
}

func sqliteIn(t *testing.T) []string {
	return []string{"--store", "sqlite:" + filepath.Join(t.TempDir(), "replay.db")}
}

// shedAll is the shed with every request approved.
var shedAll = replaySummary{Transcripts: 4, Runs: 7, ModelTurns: 23, ToolCalls: 17, Executed: 17, Requests: 7, Approved: 7}

func TestReplayShed(t *testing.T) {
	joined := shedAll
	joined.ModelTurns = 14
	none, unattended, alternate := shedAll, shedAll, shedAll
	none.Executed, none.Approved, none.Denied = 10, 0, 7
	unattended.Executed, unattended.Requests, unattended.Approved, unattended.Withheld = 10, 0, 0, 7
	alternate.Executed, alternate.Approved, alternate.Denied = 15, 5, 2
	tests := []struct {
		name string
		args []string
		want replaySummary
	}{
		{"all", nil, shedAll},
		{"none", []string{"--approve", "none"}, none},
		{"alternate", []string{"--approve", "alternate"}, alternate},
		{"unattended", []string{"--unattended"}, unattended},
		{"hold", []string{"--turn", "hold"}, shedAll},
		{"joined", []string{"--join", "4"}, joined},
		{"joined and held", []string{"--join", "4", "--turn", "hold"}, joined},
		{"one at a time", []string{"--parallel", "1"}, shedAll},
		{"limit", []string{"--limit", "1"}, replaySummary{Transcripts: 1, Runs: 2, ModelTurns: 5, ToolCalls: 3, Executed: 3, Requests: 1, Approved: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			replay(t, shed(), tt.args...).want(t, exitDone, tt.want)
			replay(t, shed(), append(tt.args, sqliteIn(t)...)...).want(t, exitDone, tt.want)
		})
	}
}

// With a keyring every request and every decision of a replay is signed.
func TestReplaySigned(t *testing.T) {
	t.Setenv("TOOL_APPROVAL_SECRET", "c2hlZCBzaGVkIHNoZWQgc2hlZCBzaGVkIHNoZWQgc2hlZCBzaGVkIQ==")
	store := sqliteIn(t)
	replay(t, shed(), store...).want(t, exitDone, shedAll)
	replay(t, shed(), append(store, "--resume")...).want(t, exitDone, shedAll)
	t.Setenv("TOOL_APPROVAL_SECRET", "")
	got := replay(t, shed(), append(store, "--resume")...)
	if got.code != exitFailed || !strings.Contains(got.err, "key") {
		t.Fatalf("a keyed store was taken up without its key: exit %d, %s", got.code, got.err)
	}
}

// airlineAll is what the recordings hold: stats.json says 870 calls, 216 of
// them of writes, in 140 conversations; 946 user messages have an answer, and
// 27 conversations end on a result.
var airlineAll = replaySummary{Transcripts: 140, Runs: 946, ModelTurns: 1789 + 27, ToolCalls: 870, Executed: 870, Requests: 216, Approved: 216}

// airlineJoined: 486 turns hold the calls, where up to four are joined.
func airlineJoined() replaySummary {
	s := airlineAll
	s.ModelTurns = 486 + 919 + 27
	return s
}

func TestReplayAirline(t *testing.T) {
	files := airline(t)
	none, unattended := airlineAll, airlineAll
	none.Executed, none.Approved, none.Denied = 654, 0, 216
	unattended.Executed, unattended.Requests, unattended.Approved, unattended.Withheld = 654, 0, 0, 216
	tests := []struct {
		name string
		args []string
		want replaySummary
	}{
		{"all", nil, airlineAll},
		{"none", []string{"--approve", "none"}, none},
		{"unattended", []string{"--unattended"}, unattended},
		{"joined", []string{"--join", "4"}, airlineJoined()},
		{"joined and held", []string{"--join", "4", "--turn", "hold"}, airlineJoined()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			replay(t, files, tt.args...).want(t, exitDone, tt.want)
		})
	}
	t.Run("sqlite", func(t *testing.T) {
		replay(t, files, sqliteIn(t)...).want(t, exitDone, airlineAll)
	})
}

// The joined turns that the recordings come to: without them a replay would
// try few turns of several calls.
func TestReplayAirlineJoinsTurns(t *testing.T) {
	files := airline(t)
	scripts, _, err := readTranscripts(files.transcripts)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := readTools(files.tools)
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]bool{}
	for _, tool := range tools {
		reads[tool.Name] = tool.Effect == ringi.ReadOnly
	}
	turns, several, mixed, longest := 0, 0, 0, 0
	for _, s := range scripts {
		for i := range s.runs {
			r := &s.runs[i]
			longest = max(longest, len(r.said))
			for said := 0; !r.ended(said); {
				turn, _ := r.turn(said, 4)
				said += turn.weight()
				n := 0
				for _, c := range turn.calls {
					if reads[c.tool] {
						n++
					}
				}
				if len(turn.calls) > 0 {
					turns++
				}
				if len(turn.calls) > 1 {
					several++
				}
				if n > 0 && n < len(turn.calls) {
					mixed++
				}
			}
		}
	}
	if turns != 486 || several != 203 || mixed != 35 || longest != 26 {
		t.Fatalf("%d turns with calls, %d with several, %d mixed, longest run %d; want 486, 203, 35, 26", turns, several, mixed, longest)
	}
}

func TestReplayLater(t *testing.T) {
	t.Run("shed", func(t *testing.T) { playLater(t, shed(), shedAll) })
	joined := shedAll
	joined.ModelTurns = 14
	t.Run("shed joined", func(t *testing.T) { playLater(t, shed(), joined, "--join", "4") })
	t.Run("shed joined and held", func(t *testing.T) { playLater(t, shed(), joined, "--join", "4", "--turn", "hold") })
}

func TestReplayAirlineLater(t *testing.T) {
	if testing.Short() {
		t.Skip("many replays of all recordings")
	}
	files := airline(t)
	t.Run("one a turn", func(t *testing.T) { playLater(t, files, airlineAll) })
	t.Run("joined", func(t *testing.T) { playLater(t, files, airlineJoined(), "--join", "4") })
	t.Run("joined and held", func(t *testing.T) { playLater(t, files, airlineJoined(), "--join", "4", "--turn", "hold") })
}

// playLater leaves every request to another process, which has neither tools
// nor model, and takes the replay up in turn until nothing waits. Requests are
// answered one by one in random order, and now and then not all of them.
func playLater(t *testing.T, files recordingFiles, want replaySummary, args ...string) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 7))
	path := filepath.Join(t.TempDir(), "replay.db")
	args = append(args, "--approve", "later", "--store", "sqlite:"+path)
	got := replay(t, files, args...)
	args = append(args, "--resume")
	for round := 0; got.code == exitWaiting; round++ {
		if round > 200 {
			t.Fatal("the replay does not come to an end")
		}
		if got.sum.Waiting == 0 || got.sum.Mismatches != 0 {
			t.Fatalf("exit %d with %+v", got.code, got.sum)
		}
		approveSome(t, path, rng)
		got = replay(t, files, args...)
	}
	got.want(t, exitDone, want)
}

// approveSome is the other process.
func approveSome(t *testing.T, path string, rng *rand.Rand) {
	store, err := openStore("sqlite:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := engine.New(engine.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	page, err := e.Requests(t.Context(), ringi.RequestQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Requests) == 0 {
		t.Fatal("runs wait and no request is pending")
	}
	rng.Shuffle(len(page.Requests), func(i, k int) {
		page.Requests[i], page.Requests[k] = page.Requests[k], page.Requests[i]
	})
	by := ringi.Principal{ID: "test:other", Kind: ringi.Person, Admin: true, Auth: "test"}
	n := len(page.Requests)
	if rng.IntN(4) == 0 {
		n = 1 + rng.IntN(n)
	}
	for _, r := range page.Requests[:n] {
		d := r.Approve(by)
		d.Channel = "cli"
		if _, err := e.Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	dir := t.TempDir()
	real := "sqlite:" + filepath.Join(dir, "real.db")
	makeRealStore(t, real)
	played := "sqlite:" + filepath.Join(dir, "played.db")
	replay(t, shed(), "--store", played).want(t, exitDone, shedAll)
	tests := []struct {
		name string
		args []string
		says string
	}{
		{"a store that is real", []string{"--store", real}, "no replay made"},
		{"a store that is real, taken up", []string{"--store", real, "--resume"}, "no replay made"},
		{"a store that is real, in another space", []string{"--store", real, "--space", "other"}, "no replay made"},
		{"a store that was played", []string{"--store", played}, "--resume"},
		{"another join", []string{"--store", played, "--resume", "--join", "4"}, "join"},
		{"later in memory", []string{"--approve", "later"}, "sqlite:FILE"},
		{"resume in memory", []string{"--resume"}, "sqlite:FILE"},
		{"ask without a terminal", []string{"--approve", "ask"}, "terminal"},
		{"unknown approve", []string{"--approve", "maybe"}, "maybe"},
		{"unknown outcome", []string{"--outcome", "maybe"}, "maybe"},
		{"unknown turn mode", []string{"--turn", "maybe"}, "maybe"},
		{"join of zero", []string{"--join", "0"}, "--join"},
		{"unknown store", []string{"--store", "pigeons"}, "pigeons"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := replay(t, shed(), tt.args...)
			if got.code != exitUsage || !strings.Contains(got.err, tt.says) || got.out != "" {
				t.Fatalf("exit %d, %q, want %d and words of %q", got.code, got.err, exitUsage, tt.says)
			}
		})
	}
}

// makeRealStore makes a store with one run that no replay made.
func makeRealStore(t *testing.T, name string) {
	t.Helper()
	store, err := makeStore(name)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	scripts, _, err := readTranscripts(shed().transcripts)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Store: store, Model: newScriptModel(scripts, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), ringi.RunStart{Thread: "shed-001", Messages: []ringi.Message{ringi.User("hello")}}); err != nil {
		t.Fatal(err)
	}
}

// S-45: the store says that it is simulated, and whose word the decisions are.
func TestS45_ReplayMarksItsStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "replay.db")
	replay(t, shed(), "--store", "sqlite:"+path).want(t, exitDone, shedAll)
	store, err := openStore("sqlite:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if mark, err := store.Flag(t.Context(), flagReplayed); err != nil || mark != "replay" {
		t.Fatalf("flag is %q, %v", mark, err)
	}
	rows, err := store.Requests(t.Context(), ringi.RequestQuery{Space: "default", State: []ringi.RequestState{ringi.Spent}, Limit: 100})
	if err != nil || len(rows) != 7 {
		t.Fatalf("%d spent requests, %v", len(rows), err)
	}
	for _, r := range rows {
		if r.DecidedBy != "script:replay" {
			t.Errorf("request %s was decided by %q", r.ID, r.DecidedBy)
		}
	}
}

// A result that is not the recorded one is found, and counted.
func TestReplayFindsMismatches(t *testing.T) {
	scripts, _, err := readTranscripts(shed().transcripts)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "replay.db")
	replay(t, shed(), "--store", "sqlite:"+path).want(t, exitDone, shedAll)
	store, err := openStore("sqlite:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	scripts[0].runs[0].users[0] += "!"                                                       // a user message
	scripts[0].runs[1].said[0].text = "Hm."                                                  // a text
	scripts[1].runs[0].said[2].calls[0].input += " "                                         // a call
	scripts[1].runs[0].said[5].calls[0].answer = "?"                                         // a result
	scripts[3].runs[2].said = append(scripts[3].runs[2].said, recordedMessage{text: "Bye."}) // a turn
	sum, err := summarize(t.Context(), store, "default", scripts, 1)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Mismatches != 5 || !strings.HasPrefix(sum.first, "shed-001: user message") {
		t.Fatalf("%d mismatches, the first %q; want 5", sum.Mismatches, sum.first)
	}
	if err := replayError(nil, sum); err == nil {
		t.Fatal("mismatches are no error")
	}
}

// The whole conversation goes byte for byte: what a JSON library would write
// anew stays as it is.
func TestReplayKeepsBytes(t *testing.T) {
	scripts, _, err := readTranscripts(shed().transcripts)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{ "number" : 204 }`, `{"item":"L-7","member":204,"deposit":20.0}`, `{"member":77,"deposit":1e1,"item":"S-9"}`, ""} {
		found := false
		for _, s := range scripts {
			for _, r := range s.runs {
				for _, m := range r.said {
					for _, c := range m.calls {
						found = found || c.input == want
					}
				}
			}
		}
		if !found {
			t.Errorf("no call has the input %q", want)
		}
	}
}

// A replay that is interrupted stops, says so, and is taken up.
func TestReplayInterrupted(t *testing.T) {
	store := sqliteIn(t)
	effects := filepath.Join(t.TempDir(), "effects")
	args := append(store, "--effects", effects)
	files := copies(t, shed(), 50)
	child := asProcess(append(files.args(), args...)...)
	var out, errs bytes.Buffer
	child.Stdout, child.Stderr = &out, &errs
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(90 * time.Second); lines(effects) < 5 && time.Now().Before(end); {
		time.Sleep(200 * time.Microsecond)
	}
	if err := child.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	if code := child.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(errs.String(), "--resume") {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	if !strings.Contains(out.String(), `"transcripts": 200`) {
		t.Fatalf("no summary of what was played: %s", out.String())
	}
	want := replaySummary{Transcripts: 200, Runs: 350, ModelTurns: 1150, ToolCalls: 850, Executed: 850, Requests: 350, Approved: 350}
	replay(t, files, append(args, "--resume", "--lease", "1m")...).want(t, exitDone, want) // nothing waits for a lease
	if n := lines(effects); n != want.Executed {
		t.Fatalf("%d effects, want %d: a call in flight was not recorded", n, want.Executed)
	}
}

func lines(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

func TestReadTranscriptsRefuses(t *testing.T) {
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","name":"n","arguments":"{}"}]}`
	user := `{"role":"user","content":"hi"}`
	tests := map[string]struct{ text, says string }{
		"nothing":                   {"\n \n", "holds none"},
		"no JSON":                   {"{", "line 1"},
		"a key twice":               {`{"id":"x","id":"y","messages":[]}`, "duplicate"},
		"a lone surrogate":          {`{"id":"x","messages":[{"role":"user","content":"\ud800"}]}`, "surrogate"},
		"no id":                     {`{"messages":[]}`, "id"},
		"an id of two lines":        {`{"id":"a\nb","messages":[]}`, "control"},
		"an id twice":               {`{"id":"x","messages":[]}` + "\n" + `{"id":"x","messages":[]}`, "line 2"},
		"an unknown role":           {`{"id":"x","messages":[{"role":"oracle","content":"hm"}]}`, "oracle"},
		"an assistant first":        {`{"id":"x","messages":[` + call + `]}`, "before any user"},
		"a word after the last":     {`{"id":"x","messages":[` + user + `,{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]}`, "again"},
		"a result without call":     {`{"id":"x","messages":[` + user + `,{"role":"tool","tool_call_id":"a","content":"1"}]}`, "without a call"},
		"a result of another call":  {`{"id":"x","messages":[` + user + `,` + call + `,{"role":"tool","tool_call_id":"b","content":"1"}]}`, "waits for none"},
		"two results of one call":   {`{"id":"x","messages":[` + user + `,` + call + `,{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"a","content":"2"}]}`, "waits for none"},
		"a result of another name":  {`{"id":"x","messages":[` + user + `,` + call + `,{"role":"tool","tool_call_id":"a","name":"m","content":"1"}]}`, "named m"},
		"a call that has no result": {`{"id":"x","messages":[` + user + `,` + call + `]}`, "no recorded answer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.jsonl")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := readTranscripts(path)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want words of %q", err, tt.says)
			}
		})
	}
}

// Tools that a recording cannot stand for are refused, and an undeclared
// effect is: a tools file never leaves open what a tool does.
func TestReplayRefusesTools(t *testing.T) {
	tests := map[string]struct {
		tool ringi.Tool
		says string
	}{
		"external":        {ringi.Tool{Name: "t", Effect: ringi.ReadOnly, External: true}, "no words"},
		"typed input":     {ringi.Tool{Name: "t", Effect: ringi.ReadOnly, InputRequired: json.RawMessage(`{}`)}, "no words"},
		"without effect":  {ringi.Tool{Name: "t"}, "undeclared"},
		"without a name":  {ringi.Tool{Effect: ringi.ReadOnly}, "name"},
		"unknown effects": {ringi.Tool{Name: "t", Effect: "perhaps"}, "perhaps"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := (&recordedTools{}).registry([]ringi.Tool{tt.tool})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want words of %q", err, tt.says)
			}
		})
	}
}

// The script model says what comes next from the messages alone.
func TestScriptModelKeepsNothing(t *testing.T) {
	scripts, _, err := readTranscripts(shed().transcripts)
	if err != nil {
		t.Fatal(err)
	}
	s := scripts[1]
	msgs := []ringi.Message{ringi.User(s.runs[0].users[0])}
	for i, want := range []int{4, 2, 0} { // turns of up to four calls
		m := newScriptModel(scripts, 4) // as another process would make it
		turn, err := m.next(ringi.ModelRequest{Thread: s.thread, Messages: msgs})
		if err != nil {
			t.Fatal(err)
		}
		if len(turn.Calls) != want || turn.Text != "" {
			t.Fatalf("turn %d has %d calls and says %q, want %d", i, len(turn.Calls), turn.Text, want)
		}
		msgs = append(msgs, ringi.Message{Role: ringi.RoleAssistant, Calls: turn.Calls}, ringi.Message{Role: ringi.RoleTool})
	}
	m := newScriptModel(scripts, 4)
	for name, req := range map[string]ringi.ModelRequest{
		"an unknown thread":       {Thread: "shed-999", Messages: msgs},
		"a user message too many": {Thread: s.thread, Messages: append(msgs[:1:1], ringi.User("and?"))},
		"a place between two turns": {Thread: "shed-003", Messages: []ringi.Message{ringi.User("?"),
			{Role: ringi.RoleAssistant, Calls: make([]ringi.ToolCall, 1)}}},
	} {
		if turn, err := m.next(req); err == nil {
			t.Errorf("%s gives %+v", name, turn)
		}
	}
}

// A handler outside a replay, or of a call that is not the recorded one, says
// that nothing was done.
func TestRecordedToolsRefuse(t *testing.T) {
	scripts, _, err := readTranscripts(shed().transcripts)
	if err != nil {
		t.Fatal(err)
	}
	tools := &recordedTools{join: 1}
	call := ringi.ToolCall{ID: "call_x_1_0", ModelID: "c1", Tool: "find_item", Input: `{"name":"ladder","day":"saturday"}`}
	in := func(c ringi.ToolCall) context.Context {
		ctx := withScriptRun(t.Context(), &scripts[0].runs[0])
		return ringi.WithToolContext(ctx, &ringi.ToolContext{CallID: c.ID, Tool: c.Tool})
	}
	if res, err := tools.answer(in(call), call); err != nil || res.Output != `{"item":"L-7","free":true}` {
		t.Fatalf("the recorded call gives %q, %v", res.Output, err)
	}
	for name, change := range map[string]func(*ringi.ToolCall){
		"other input": func(c *ringi.ToolCall) { c.Input = `{"name":"ladder"}` },
		"other tool":  func(c *ringi.ToolCall) { c.Tool = "get_member" },
		"other id":    func(c *ringi.ToolCall) { c.ModelID = "c2" },
		"other place": func(c *ringi.ToolCall) { c.ID = "call_x_2_0" },
		"no place":    func(c *ringi.ToolCall) { c.ID = "call_x" },
	} {
		c := call
		change(&c)
		if _, err := tools.answer(in(c), c); !ringi.IsNotDone(err) {
			t.Errorf("%s: %v, want an error that says not done", name, err)
		}
	}
	if _, err := tools.answer(t.Context(), call); !ringi.IsNotDone(err) {
		t.Errorf("outside a replay: %v", err)
	}
}

// A decider that fails leaves the run waiting, and the replay says so.
func TestReplayDeciderFails(t *testing.T) {
	e, _, _ := testEnv()
	e.space = "default"
	f := replayFlags{tools: shed().tools, transcripts: shed().transcripts, approve: approveAll, join: 1, parallel: 2, lease: time.Second}
	rec, err := readRecording(f)
	if err != nil {
		t.Fatal(err)
	}
	store, err := makeStore("memory")
	if err != nil {
		t.Fatal(err)
	}
	reg, err := (&recordedTools{join: 1}).registry(rec.tools)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.newPlayer(f, rec, store, reg)
	if err != nil {
		t.Fatal(err)
	}
	down := errors.New("nobody is in")
	p.decide = func(context.Context, asked) (ringi.Decision, bool, error) { return ringi.Decision{}, false, down }
	if err := p.playAll(t.Context(), rec.scripts, false); !errors.Is(err, down) {
		t.Fatalf("error %v, want %v", err, down)
	}
	sum, err := summarize(t.Context(), store, "default", rec.scripts, 1)
	if err != nil || sum.Waiting != 3 {
		t.Fatalf("%d runs wait, %v; want 3", sum.Waiting, err)
	}
}

// All conversations of the airline, or 35 copies of our own.
func BenchmarkReplay(b *testing.B) {
	files, ok := findAirline()
	if !ok {
		files = copies(b, shed(), 35)
	}
	for _, name := range []string{"memory", "sqlite"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				store := "memory"
				if name == "sqlite" {
					store = "sqlite:" + filepath.Join(b.TempDir(), "replay.db")
				}
				e, _, errs := testEnv()
				if code := execute(b.Context(), e, append(files.args(), "--store", store)); code != exitDone {
					b.Fatalf("exit %d: %s", code, errs)
				}
			}
		})
	}
}
