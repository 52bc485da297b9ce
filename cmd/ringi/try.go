package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

const tryLong = `A support agent of a small shop wants to refund an order. Looking the order up
runs by itself; the refund asks you. Nothing leaves this machine: the shop is in
memory, and the model is a script that answers to what you decide.

With --store sqlite:FILE the run outlives this process: leave it waiting, decide
it from another terminal with ringi approve or ringi deny, and start ringi try
with the same store again. It goes on where it stopped.`

// tryAgent names the agent of ringi try, and so the runs that it goes on with.
const tryAgent = "ringi try"

func newTryCommand(e *env) *cobra.Command {
	var approve string
	cmd := &cobra.Command{
		Use:   "try",
		Short: "See it work: an agent asks you before it refunds an order",
		Long:  tryLong,
		Example: "  ringi try\n" +
			"  ringi try --approve yes                  for a script, which nobody can ask\n" +
			"  ringi try --store sqlite:try.db          decide from another terminal",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if approve != "" && approve != "yes" && approve != "no" {
				return usagef("--approve takes yes or no")
			}
			t, err := e.newTrial(cmd.Context(), approve)
			if err != nil {
				return err
			}
			defer t.store.Close()
			return t.play(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&approve, "approve", "", "decide so without asking: yes or no")
	return cmd
}

// trial is one ringi try.
type trial struct {
	dialogue
	store   ringi.Store
	approve string
}

func (e *env) newTrial(ctx context.Context, approve string) (_ *trial, err error) {
	t := &trial{dialogue: dialogue{e: e, out: e.out}, approve: approve}
	t.dialogue.edit = t.edit
	if approve != "" {
		t.answer = t.scripted
	}
	if e.json {
		t.out = e.err
	}
	if t.by, err = person(); err != nil {
		return nil, err
	}
	keys, err := keyring()
	if err != nil {
		return nil, err
	}
	name := e.store
	if name == "" {
		name = "memory" // never the store of RINGI_STORE: this is play
	}
	if t.store, err = makeStore(name); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.store.Close()
		}
	}()
	if err := e.keysFit(ctx, t.store, keys); err != nil {
		return nil, err
	}
	if err := t.mayPlay(ctx, name); err != nil {
		return nil, err
	}
	reg, err := newShop().registry()
	if err != nil {
		return nil, err
	}
	t.dialogue.store = t.store
	t.engine, err = engine.New(engine.Config{
		Agent: tryAgent, Registry: reg, Model: agentModel{}, Store: t.store, Keyring: keys, Space: e.space, Now: e.now,
		Logger: slog.New(&tellHandler{e: e}),
	})
	return t, err
}

// mayPlay refuses stores that this is not for.
func (t *trial) mayPlay(ctx context.Context, name string) error {
	for flag, refuse := range map[string]func(string) error{
		flagReplayed: func(v string) error {
			if v == "" {
				return nil
			}
			return fmt.Errorf("open store: %w", ringi.ErrSimulated)
		},
		flagDecide: func(v string) error {
			if v != "server" {
				return nil
			}
			return errors.New("this store's requests are decided at its server: try another store")
		},
		flagScripted: func(v string) error {
			if t.approve == "" || v == "on" || name == "memory" {
				return nil
			}
			return usagef("--approve is refused: this store takes no scripted decisions. `ringi store set scripted-decisions on` lets any script of this user decide")
		},
	} {
		v, err := t.store.Flag(ctx, flag)
		if err != nil {
			return fmt.Errorf("read flag: %w", err)
		}
		if err := refuse(v); err != nil {
			return err
		}
	}
	return nil
}

// play starts a run, or goes on with the one that an earlier ringi try left in
// the store, until it ends or waits for somebody who is not here.
func (t *trial) play(ctx context.Context) error {
	run, err := t.left(ctx)
	if err != nil {
		return err
	}
	var res *ringi.Result
	if run != "" {
		t.tell("Going on with run %s, which an earlier ringi try left.\n", run)
		res, err = t.resume(ctx, run)
	} else {
		res, err = t.begin(ctx)
	}
	if res, err = t.finish(ctx, res, err); err != nil {
		return err
	}
	if res.Status.Waiting() && len(res.Pending) > 0 {
		return t.wait(res)
	}
	return t.end(res)
}

// left finds a run of an earlier ringi try that has not ended.
func (t *trial) left(ctx context.Context) (string, error) {
	q := ringi.RunQuery{Space: t.e.space, Limit: 1000,
		Status: []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForOutcome}}
	rows, err := t.store.Runs(ctx, q)
	if err != nil {
		return "", fmt.Errorf("list runs: %w", err)
	}
	i := slices.IndexFunc(rows, func(r ringi.RunRow) bool { return r.Agent == tryAgent && r.Corrupt == "" })
	if i < 0 {
		return "", nil
	}
	return rows[i].ID, nil
}

func (t *trial) begin(ctx context.Context) (*ringi.Result, error) {
	t.tell("Ann writes: %s\n", customerText)
	ann := ringi.Principal{ID: "customer:ann", Name: "Ann Example", Kind: ringi.Person, Auth: "example"}
	return t.start(ctx, ringi.RunStart{System: agentSystem, By: ann, Messages: []ringi.Message{ringi.User(customerText)}})
}

// scripted is what --approve says.
func (t *trial) scripted(r ringi.ApprovalRequest) ringi.Decision {
	d := r.Approve(t.by)
	if t.approve == "no" {
		d = r.Deny(t.by, "not this time")
	}
	t.tell("\n--approve %s: %s.\n", t.approve, d.Answer)
	return d
}

// edit asks for another amount. Every other byte of the input stays.
func (t *trial) edit(ctx context.Context, p *prompt, r ringi.ApprovalRequest) (ringi.Decision, error) {
	var in refundIn
	if err := json.Unmarshal([]byte(r.Call.Input), &in); err != nil {
		return ringi.Decision{}, fmt.Errorf("read input: %w", err)
	}
	for range maxTries {
		typed, err := p.line(ctx, "How many cents? ")
		if err != nil {
			return ringi.Decision{}, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(typed), 10, 64)
		if err != nil || n <= 0 {
			t.e.tell("Type a whole number of cents, such as 2000.\n")
			continue
		}
		in.Amount = n
		input, err := json.Marshal(in)
		if err != nil {
			return ringi.Decision{}, fmt.Errorf("write input: %w", err)
		}
		t.e.tell("That is a new question: it is checked, and you see what would run.\n")
		return r.Edit(t.by, input), nil
	}
	return ringi.Decision{}, errNothingDecided
}

// wait says how to go on with a run that nobody here can decide.
func (t *trial) wait(res *ringi.Result) error {
	r := res.Pending[0]
	if strings.HasPrefix(t.e.store, "sqlite:") {
		t.tell("\nNobody is at a terminal here. Decide it from one:\n  ringi approve %s --store %s\n  ringi deny %s --reason WHY --store %s\n"+
			"and start it again, which goes on:\n  ringi try --store %s\n", r.ID, t.e.store, r.ID, t.e.store, t.e.store)
	} else {
		t.tell("\nNobody is at a terminal here, and the memory store ends with this process. Say\n  ringi try                          at a terminal\n" +
			"  ringi try --approve yes            for a script, or --approve no\n  ringi try --store sqlite:try.db    to decide from another terminal\n")
	}
	if t.e.json {
		if err := t.e.printJSON(res); err != nil {
			return err
		}
	}
	return waitingf("run %s waits for a person", res.RunID)
}

// end tells how the run ended.
func (t *trial) end(res *ringi.Result) error {
	if t.e.json {
		if err := t.e.printJSON(res); err != nil {
			return err
		}
	}
	if err := res.Err(); err != nil {
		return err
	}
	t.tell("\nRun %s is %s.\n", res.RunID, res.Status)
	if strings.HasPrefix(t.e.store, "sqlite:") {
		t.tell("Its log is whole: ringi verify --store %s\n", t.e.store)
	}
	return nil
}
