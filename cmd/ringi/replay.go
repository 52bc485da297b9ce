package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/escape"
)

// replayFlags are the flags of ringi replay.
type replayFlags struct {
	tools, transcripts, system string
	approve, outcome, turn     string
	unattended, resume         bool
	join, limit, parallel      int
	effects                    string
	lease                      time.Duration
}

// newReplayCommand makes ringi replay: recorded conversations, played through
// the whole path with a scripted model and recorded tools.
func newReplayCommand(e *env) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay --tools FILE --transcripts FILE",
		Short: "Play recorded conversations through the whole path",
		Long: "Play recorded conversations, each as one thread, one run a user message. A scripted\n" +
			"model says the recorded assistant messages, the tools answer with the recorded\n" +
			"results, and calls of writes need an approval. No trust zone is declared.\n\n" +
			"The store is marked simulated: no real tool ever joins it. A store that holds\n" +
			"anything else is refused. RINGI_STORE is not read here; the default is memory.\n\n" +
			"Exit code 0: all is played; 1: something failed, or differs from the recording;\n" +
			"3: runs wait for a person.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := e.checkReplay(&f); err != nil {
				return err
			}
			return e.replay(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tools, "tools", "", "the tools, a JSON array of definitions with their effects")
	flags.StringVar(&f.transcripts, "transcripts", "", "the conversations, one JSON object a line")
	flags.StringVar(&f.system, "system", "", "a file with the system prompt of all of them")
	flags.StringVar(&f.approve, "approve", approveAll, "who answers requests: all, none, alternate, ask (in the terminal), later (leave them)")
	flags.BoolVar(&f.unattended, "unattended", false, "nobody can be asked: calls that would ask are withheld")
	flags.StringVar(&f.turn, "turn", string(ringi.Eager), "what runs while a call of the turn waits: eager, hold")
	flags.IntVar(&f.join, "join", 1, "say up to this many recorded calls, that follow each other without text, in one turn")
	flags.IntVar(&f.limit, "limit", 0, "play the first so many conversations (0: all)")
	flags.IntVar(&f.parallel, "parallel", 8, "conversations played at once (ask: one)")
	flags.StringVar(&f.effects, "effects", "", "append one line an execution to this file, synced before the tool answers")
	flags.BoolVar(&f.resume, "resume", false, "take up what an earlier replay left in the store")
	flags.StringVar(&f.outcome, "outcome", outcomeLeave, "how the script settles unknown outcomes: did-not-run, ran, leave")
	flags.DurationVar(&f.lease, "lease", 5*time.Second, "how long a replay that was killed keeps its runs")
	return cmd
}

// checkReplay refuses flags that make no sense, alone or together.
func (e *env) checkReplay(f *replayFlags) error {
	store := e.replayStore()
	switch {
	case f.tools == "" || f.transcripts == "":
		return usagef("say --tools FILE and --transcripts FILE")
	case !slices.Contains([]string{approveAll, approveNone, approveAlternate, approveAsk, approveLater}, f.approve):
		return usagef("unknown --approve %q: say all, none, alternate, ask or later", f.approve)
	case !slices.Contains([]string{outcomeLeave, outcomeRan, outcomeDidNotRun}, f.outcome):
		return usagef("unknown --outcome %q: say did-not-run, ran or leave", f.outcome)
	case f.turn != string(ringi.Eager) && f.turn != string(ringi.Hold):
		return usagef("unknown --turn %q: say eager or hold", f.turn)
	case f.join < 1 || f.parallel < 1 || f.limit < 0 || f.lease <= 0:
		return usagef("--join, --parallel and --lease are above zero, --limit is zero or more")
	case f.approve == approveLater && store == "memory":
		return usagef("--approve later needs a store that lasts: say --store sqlite:FILE")
	case f.resume && store == "memory":
		return usagef("--resume needs the store of the earlier replay: say --store sqlite:FILE")
	}
	if f.approve == approveAsk {
		f.parallel = 1
		_, err := e.asks(askInstead)
		return err
	}
	return nil
}

func (e *env) replayStore() string {
	if e.store == "" {
		return "memory"
	}
	return e.store
}

func (e *env) replay(ctx context.Context, f replayFlags) error {
	rec, err := readRecording(f)
	if err != nil {
		return err
	}
	store, err := makeStore(e.replayStore())
	if err != nil {
		return err
	}
	err = e.replayOver(ctx, f, rec, store)
	return errors.Join(err, store.Close())
}

// recording is everything that a replay reads.
type recording struct {
	tools   []ringi.Tool
	scripts []*script
	system  string
	// recipe names what a store was made from: a restart with another one
	// would lose its place.
	recipe string
}

func readRecording(f replayFlags) (*recording, error) {
	var rec recording
	var digest string
	var err error
	if rec.tools, err = readTools(f.tools); err != nil {
		return nil, err
	}
	if rec.scripts, digest, err = readTranscripts(f.transcripts); err != nil {
		return nil, err
	}
	if f.limit > 0 && f.limit < len(rec.scripts) {
		rec.scripts = rec.scripts[:f.limit]
	}
	if f.system != "" {
		text, err := os.ReadFile(f.system)
		if err != nil {
			return nil, fmt.Errorf("read system prompt: %w", err)
		}
		rec.system = string(text)
	}
	rec.recipe = fmt.Sprintf("transcripts %s, join %d", digest, f.join)
	return &rec, nil
}

// replayOver plays a recording over an open store, and says what came of it.
func (e *env) replayOver(ctx context.Context, f replayFlags, rec *recording, store ringi.Store) (err error) {
	tools := &recordedTools{join: f.join}
	reg, err := tools.registry(rec.tools)
	if err != nil {
		return err
	}
	if err := e.claimForReplay(ctx, store, rec.recipe, f.resume); err != nil {
		return err
	}
	if f.effects != "" {
		if tools.effects, err = openEffects(f.effects); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tools.effects.close()) }()
	}
	p, err := e.newPlayer(f, rec, store, reg)
	if err != nil {
		return err
	}
	begun := time.Now()
	p.progress.start(rec.scripts)
	played := p.playAll(ctx, rec.scripts, f.resume)
	p.progress.stop()
	took := time.Since(begun)
	sum, err := summarize(context.WithoutCancel(ctx), store, e.space, rec.scripts, f.join)
	if err != nil {
		return errors.Join(played, err)
	}
	sum.Seconds = float64(took.Milliseconds()) / 1000
	if err := e.printSummary(sum); err != nil {
		return err
	}
	return replayError(played, sum)
}

// flagRecipe is the store's flag that says what a replay made it from;
// flagReplayed is "replay" there.
const flagRecipe = "replay"

// claimForReplay marks an empty store as simulated, and refuses any other that
// is not this replay's own.
func (e *env) claimForReplay(ctx context.Context, store ringi.Store, recipe string, resume bool) error {
	simulated, err := store.Flag(ctx, flagReplayed)
	if err != nil {
		return err
	}
	made, err := store.Flag(ctx, flagRecipe)
	if err != nil {
		return err
	}
	empty, err := e.isEmpty(ctx, store)
	switch {
	case err != nil:
		return err
	case simulated != "replay" && !empty:
		return usagef("the store holds what no replay made: a replay does not touch it")
	case simulated == "replay" && !empty && made != recipe:
		return usagef("the store was made from another recording, or with another --join (%s; now %s)", made, recipe)
	case !empty && !resume:
		return usagef("the store holds an earlier replay: take it up with --resume, or name a new file")
	case empty:
		if err := store.SetFlag(ctx, flagReplayed, "replay"); err != nil {
			return err
		}
		return store.SetFlag(ctx, flagRecipe, recipe)
	}
	return nil
}

// isEmpty reports whether a store has neither runs nor keys, in this space or
// the usual one; a run that waits for an owner counts in any space.
func (e *env) isEmpty(ctx context.Context, store ringi.Store) (bool, error) {
	for _, space := range []string{e.space, "default"} {
		rows, err := store.Runs(ctx, ringi.RunQuery{Space: space, Limit: 1})
		if err != nil || len(rows) > 0 {
			return false, err
		}
	}
	open, err := store.Runnable(ctx, 1)
	if err != nil || len(open) > 0 {
		return false, err
	}
	keys, err := store.Keys(ctx)
	return len(keys) == 0, err
}

func (e *env) newPlayer(f replayFlags, rec *recording, store ringi.Store, reg *ringi.Registry) (*player, error) {
	keys, err := keyring()
	if err != nil {
		return nil, err
	}
	if err := e.keysFit(context.Background(), store, keys); err != nil {
		return nil, err
	}
	eng, err := engine.New(engine.Config{
		Agent: "replay", Registry: reg, Store: store, Space: e.space, TurnMode: ringi.TurnMode(f.turn),
		Model: newScriptModel(rec.scripts, f.join), Lease: f.lease, Expiry: -1, Limits: noLimits(), ThreadRequests: -1,
		Keyring: keys, Logger: slog.New(&tellHandler{e: e}),
	})
	if err != nil {
		return nil, err
	}
	p := &player{engine: eng, store: store, space: e.space, system: rec.system, lease: f.lease, parallel: f.parallel}
	if f.unattended {
		p.unattended = ringi.PerTool
	}
	p.decide = scriptAnswers(f.approve, f.outcome, f.join, asking(eng, reg))
	if f.approve == approveAsk {
		if p.decide, err = e.askInTerminal(p.decide); err != nil {
			return nil, err
		}
	}
	p.progress = newProgress(e, f.approve != approveAsk)
	return p, nil
}

// noLimits lets a recording be as long as it is: its runs have as many steps,
// its people denied as often.
func noLimits() ringi.Limits {
	return ringi.Limits{Steps: -1, ToolCalls: -1, CallsPerTurn: -1, InputBytes: -1, ResultBytes: -1,
		OpenRequests: -1, SameDenied: -1, Denied: -1, Attempts: -1}
}

// asking names the tools whose every call asks a person.
func asking(eng *engine.Engine, reg *ringi.Registry) []string {
	var names, asks []string
	for _, t := range reg.Tools() {
		names = append(names, t.Name)
	}
	for _, w := range eng.Unattended().Explain(names) {
		if w.Answer == ringi.UnattendedAsks {
			asks = append(asks, w.Tool)
		}
	}
	return asks
}

// replayError says what a replay ends with, failures first.
func replayError(played error, sum *replaySummary) error {
	switch {
	case played != nil && errors.Is(played, context.Canceled):
		return fmt.Errorf("%w: --resume takes it up", context.Canceled)
	case played != nil:
		return played
	case sum.Mismatches > 0:
		return fmt.Errorf("messages that differ from the recording: %d; the first is %s", sum.Mismatches, sum.first)
	case sum.Waiting > 0:
		return waitingf("runs that wait for a person: %d", sum.Waiting)
	case sum.unfinished > 0:
		return fmt.Errorf("conversations that are not played to their end: %d", sum.unfinished)
	}
	return nil
}

// printSummary writes the summary as one object, or a line a count.
func (e *env) printSummary(sum *replaySummary) error {
	if e.json {
		return e.printJSON(sum)
	}
	var b strings.Builder
	for _, l := range []struct {
		n    int
		what string
	}{
		{sum.Transcripts, "transcripts"}, {sum.Runs, "runs"}, {sum.ModelTurns, "model turns"}, {sum.ToolCalls, "tool calls"},
		{sum.Executed, "executed"}, {sum.Requests, "requests"}, {sum.Approved, "approved"}, {sum.Denied, "denied"},
		{sum.Withheld, "withheld"}, {sum.Waiting, "waiting"}, {sum.UnknownOutcome, "unknown outcomes"},
		{sum.Mismatches, "mismatches"}, {sum.Events, "events"},
	} {
		fmt.Fprintf(&b, "%6d %s\n", l.n, l.what)
	}
	fmt.Fprintf(&b, "%6.2f seconds\n", sum.Seconds)
	e.printf("%s", escape.Text(b.String()))
	return nil
}
