package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
)

const verifyLong = `Check the log of every run in every space, in one with --space, or of one run: that each record is the one that was

written, in its place, up to the newest one; that payloads are those that the
records commit to; that the inbox says of each request what the log says; and,
with the key in TOOL_APPROVAL_SECRET, that the newest commit of each run and
every request and decision were signed by a holder of the key.

It changes nothing. Exit 0: everything is as it was written. Exit 4: something
is not, and it is named. Exit 1: it could not be checked, or not all of it; so
is a keyed store without its key, unless --without-key says that the chain
alone is meant. A run that only a retired key can authenticate is NOT PROVEN:
put that key behind the one in TOOL_APPROVAL_SECRET to check it.

With --server the server checks the log of each run that the token may see, with
its own key; the token needs the scope audit.`

func newVerifyCommand(e *env) *cobra.Command {
	var withoutKey bool
	cmd := &cobra.Command{
		Use:   "verify [RUN]",
		Short: "Check every run's log, and say what that proves",
		Long:  verifyLong,
		Example: "  ringi verify --store sqlite:ringi.db\n" +
			"  ringi verify --store sqlite:ringi.db --space default --json",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := strings.Join(args, "")
			address, err := e.serverAddress()
			if err != nil {
				return err
			}
			if address != "" {
				if withoutKey {
					return usagef("--without-key is for a store: a server has the key, or says that it has not")
				}
				return e.verifyAtServer(cmd.Context(), address, run)
			}
			v, err := e.newVerifier(cmd.Context(), withoutKey)
			if err != nil {
				return err
			}
			defer v.store.Close()
			v.only = run
			if cmd.Flags().Changed("space") {
				v.report.Spaces = []string{e.space}
			}
			if err := v.all(cmd.Context()); err != nil {
				return err
			}
			if err := v.print(); err != nil {
				return err
			}
			return v.verdict()
		},
	}
	cmd.Flags().BoolVar(&withoutKey, "without-key", false, "check the chain alone, no signature")
	return cmd
}

// verifier goes through a store.
type verifier struct {
	e      *env
	store  ringi.Store
	keys   *sign.Keyring
	report verifyReport
	// space is the one that is being checked, engine is over it.
	space  string
	engine *engine.Engine
	// only is the run that is checked; empty for all.
	only string
	// noKey says why signatures were not checked, where they should have been.
	noKey error
	steps *steps
}

func (e *env) newVerifier(ctx context.Context, withoutKey bool) (_ *verifier, err error) {
	name, err := e.storeName()
	if err != nil {
		return nil, err
	}
	var keys *sign.Keyring
	if !withoutKey {
		if keys, err = keyring(); err != nil {
			return nil, err
		}
	}
	v := &verifier{e: e, report: verifyReport{Broken: []finding{}, Unproven: []finding{}, Unchecked: []finding{}}}
	if v.store, err = openStore(name); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.store.Close()
		}
	}()
	if v.report.Store, err = v.store.ID(ctx); err != nil {
		return nil, fmt.Errorf("read store id: %w", err)
	}
	used, err := v.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read key memory: %w", err)
	}
	v.report.Keyed = len(used) > 0
	if v.keys, v.noKey = usable(keys, used); withoutKey {
		v.noKey = nil
	}
	v.report.Signed = v.keys != nil
	if v.report.Spaces, err = v.store.Spaces(ctx); err != nil {
		return nil, damaged(err)
	}
	return v, nil
}

// usable returns the keys where one of them is the store's. A store that knows
// of no key is checked with them all the same: its memory may have been cut.
func usable(keys *sign.Keyring, used map[string]string) (*sign.Keyring, error) {
	if len(used) == 0 {
		return keys, nil
	}
	if keys == nil {
		return nil, fmt.Errorf("check signatures: %w: set TOOL_APPROVAL_SECRET, or say --without-key to check the chain alone", ringi.ErrNoKey)
	}
	for id, check := range used {
		if keys.Check(id) == check {
			return keys, nil
		}
	}
	return nil, fmt.Errorf("check signatures: %w: TOOL_APPROVAL_SECRET holds another", ringi.ErrNoKey)
}

// all checks every space.
func (v *verifier) all(ctx context.Context) error {
	v.steps = newSteps(v.e, "run")
	defer v.steps.stop()
	for _, space := range v.report.Spaces {
		if err := v.in(ctx, space); err != nil {
			return err
		}
	}
	if r := v.report; v.only != "" && r.Runs+len(r.Broken)+len(r.Unproven)+len(r.Unchecked) == 0 {
		return fmt.Errorf("verify run %s: %w", v.only, ringi.ErrNotFound)
	}
	return nil
}

// in checks every run of a space, and that no request lacks its run.
func (v *verifier) in(ctx context.Context, space string) (err error) {
	v.space = space
	v.engine, err = engine.New(engine.Config{Store: v.store, Keyring: v.keys, Space: space, ReadOnly: true, Now: v.e.now,
		Logger: slog.New(&tellHandler{e: v.e})})
	if err != nil {
		return err
	}
	if v.only != "" {
		row, err := v.store.Row(ctx, space, v.only)
		if errors.Is(err, ringi.ErrNotFound) {
			return nil // of another space
		} else if err != nil {
			return fmt.Errorf("read run %s: %w", v.only, damaged(err))
		}
		return v.run(ctx, row)
	}
	after := ""
	for {
		rows, err := v.store.Runs(ctx, ringi.RunQuery{Space: space, Limit: 1000, After: after})
		if err != nil {
			return fmt.Errorf("list runs: %w", damaged(err))
		}
		for _, row := range rows {
			if err := v.run(ctx, row); err != nil {
				return err
			}
			v.steps.step()
		}
		if len(rows) < 1000 {
			return v.orphans(ctx)
		}
		after = rows[len(rows)-1].ID
	}
}

// run checks one run and its rows in the inbox. A run that moves meanwhile is
// checked again: another process may be at work.
func (v *verifier) run(ctx context.Context, row ringi.RunRow) error {
	var got engine.Verification
	var why string
	for range 10 {
		var err error
		got, why, err = v.once(ctx, row)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if gone, ok := errors.AsType[*engine.NoKeyError](err); ok {
				v.report.Unproven = append(v.report.Unproven, finding{v.space, row.ID, gone.Error()})
			} else if err = damaged(err); errors.Is(err, ringi.ErrCorrupt) {
				v.broken(row.ID, "%v", err)
			} else {
				v.report.Unchecked = append(v.report.Unchecked, finding{v.space, row.ID, err.Error()})
			}
			return nil
		}
		now, err := v.store.Row(ctx, v.space, row.ID)
		if err != nil {
			return fmt.Errorf("read run %s: %w", row.ID, damaged(err))
		}
		if now.Seq == row.Seq {
			break
		}
		row = now
	}
	v.report.Runs++
	v.report.Records += got.Records
	v.report.Erased += got.Erased
	v.report.Requests += got.Requests
	v.report.Decisions += got.Decisions
	if why != "" {
		v.broken(row.ID, "%s", why)
	}
	if row.MAC != "" && !v.report.Keyed {
		v.broken(row.ID, "it is signed, and the store remembers no key: its key memory was taken away")
	}
	if row.Corrupt != "" && why == "" {
		v.broken(row.ID, "marked corrupt when it was read: %s", row.Corrupt)
	}
	return nil
}

// once checks a run as it stands; why says what is broken.
func (v *verifier) once(ctx context.Context, run ringi.RunRow) (got engine.Verification, why string, err error) {
	if got, err = v.engine.Verify(ctx, run.ID); err != nil || got.Broken != "" {
		return got, got.Broken, err
	}
	if got.Erased > 0 || run.Corrupt != "" {
		return got, "", nil // what was erased cannot be compared, what is marked is not read
	}
	n := 0
	q := ringi.RequestQuery{Space: v.space, RunID: run.ID, State: requestStates, Limit: 1000}
	for {
		rows, err := v.store.Requests(ctx, q)
		if err != nil {
			return got, "", fmt.Errorf("list requests: %w", err)
		}
		for _, row := range rows {
			if why, err := v.compare(ctx, row); err != nil || why != "" {
				return got, why, err
			}
		}
		if n += len(rows); len(rows) < q.Limit {
			break
		}
		q.After = rows[len(rows)-1].ID
	}
	if complete := v.report.Signed || !v.report.Keyed; complete && n != got.Requests {
		return got, fmt.Sprintf("the inbox holds %d of the %d requests in its log", n, got.Requests), nil
	}
	return got, "", nil
}

// compare holds a row of the inbox against the log.
func (v *verifier) compare(ctx context.Context, row ringi.RequestRow) (string, error) {
	r, err := v.engine.Request(ctx, row.ID)
	switch {
	case errors.Is(err, ringi.ErrCorrupt):
		return fmt.Sprintf("request %s: %v", row.ID, err), nil
	case err != nil:
		return "", err
	case r.RunID != row.RunID || r.Thread != row.Thread || r.Call.ID != row.CallID || r.Call.Tool != row.Tool || r.Kind != row.Kind:
		return fmt.Sprintf("request %s: the inbox names another run, call, tool or kind than the log", row.ID), nil
	case r.Digest != row.Digest:
		return fmt.Sprintf("request %s: the inbox has another digest than the log", row.ID), nil
	case r.State != row.State:
		return fmt.Sprintf("request %s: the inbox says %s, the log says %s", row.ID, row.State, r.State), nil
	case r.DecidedBy != row.DecidedBy:
		return fmt.Sprintf("request %s: the inbox names another decider than the log", row.ID), nil
	}
	return "", nil
}

// orphans looks for requests whose run is gone.
func (v *verifier) orphans(ctx context.Context) error {
	gone := map[string]bool{}
	q := ringi.RequestQuery{Space: v.space, State: requestStates, Limit: 1000}
	for {
		rows, err := v.store.Requests(ctx, q)
		if err != nil {
			return fmt.Errorf("list requests: %w", damaged(err))
		}
		for _, row := range rows {
			if _, seen := gone[row.RunID]; !seen {
				_, err := v.store.Row(ctx, v.space, row.RunID)
				lost := errors.Is(err, ringi.ErrNotFound)
				if err != nil && !lost {
					return fmt.Errorf("read run %s: %w", row.RunID, damaged(err))
				}
				gone[row.RunID] = lost
				if lost {
					v.broken(row.RunID, "the run is gone: request %s belongs to it", row.ID)
				}
			}
		}
		if len(rows) < q.Limit {
			return nil
		}
		q.After = rows[len(rows)-1].ID
	}
}

func (v *verifier) broken(run, format string, args ...any) {
	v.report.Broken = append(v.report.Broken, finding{v.space, run, fmt.Sprintf(format, args...)})
}

// damaged marks an error of the file itself as what it is: the bytes are not
// those that a store wrote.
func damaged(err error) error {
	if isDamaged(err) {
		return fmt.Errorf("%w: %w", ringi.ErrCorrupt, err)
	}
	return err
}
