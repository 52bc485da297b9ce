package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

// The commands that do with a pending request what is no answer to it.

func newWithdrawCommand(e *env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "withdraw REQUEST",
		Short:   "Withdraw what you asked for: the call does not run",
		Example: "  ringi withdraw req_01k… --reason \"no longer needed\" --server https://ringi.example",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.move(cmd.Context(), args[0], "Withdrawn", func(ctx context.Context, d desk) (ringi.Settled, error) {
				return d.Withdraw(ctx, args[0], d.typist(), reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why: the model reads it")
	return cmd
}

func newReassignCommand(e *env) *cobra.Command {
	var to ringi.Deciders
	var reason string
	cmd := &cobra.Command{
		Use:     "reassign REQUEST --to PERSON|--team TEAM",
		Short:   "Hand a request over: a new one names who may decide",
		Example: "  ringi reassign req_01k… --team finance --reason \"above my limit\" --server https://ringi.example",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to.IsZero() {
				return usagef("nobody is named: say --to PERSON or --team TEAM")
			}
			return e.move(cmd.Context(), args[0], "Handed over", func(ctx context.Context, d desk) (ringi.Settled, error) {
				return d.Reassign(ctx, args[0], to, d.typist(), reason)
			})
		},
	}
	cmd.Flags().StringArrayVar(&to.People, "to", nil, "a person's id; may be given several times")
	cmd.Flags().StringArrayVar(&to.Teams, "team", nil, "a team; may be given several times")
	reasonFlag(cmd, &reason)
	return cmd
}

func newExtendCommand(e *env) *cobra.Command {
	var until, reason string
	var by time.Duration
	cmd := &cobra.Command{
		Use:   "extend REQUEST --for DURATION|--until TIME",
		Short: "Give a request more time: a new one waits until then",
		Example: "  ringi extend req_01k… --for 48h --server https://ringi.example\n" +
			"  ringi extend req_01k… --until 2030-01-31T18:00:00Z",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := e.moment(until, by)
			if err != nil {
				return err
			}
			return e.move(cmd.Context(), args[0], "Extended", func(ctx context.Context, d desk) (ringi.Settled, error) {
				return d.Extend(ctx, args[0], at, d.typist(), reason)
			})
		},
	}
	cmd.Flags().StringVar(&until, "until", "", "until when it waits, as 2030-01-31T18:00:00Z (RFC 3339)")
	cmd.Flags().DurationVar(&by, "for", 0, "how long from now it waits, such as 48h")
	reasonFlag(cmd, &reason)
	return cmd
}

// moment is the time that one of two flags names.
func (e *env) moment(until string, by time.Duration) (time.Time, error) {
	switch {
	case (until == "") == (by == 0):
		return time.Time{}, usagef("until when? Say one of --for DURATION and --until TIME")
	case by < 0:
		return time.Time{}, usagef("--for takes a duration above zero")
	case by > 0:
		return e.now().Add(by), nil
	}
	at, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return time.Time{}, usagef("--until takes a time as 2030-01-31T18:00:00Z: %w", err)
	}
	return at, nil
}

// move does it, and says what came of it.
func (e *env) move(ctx context.Context, id, done string, do func(context.Context, desk) (ringi.Settled, error)) error {
	return e.at(ctx, e.settling, func(d desk) error {
		if _, err := e.request(ctx, d, id); err != nil {
			return err
		}
		set, err := do(ctx, d)
		if err != nil {
			return err
		}
		if e.json {
			return e.printJSON(settledView{set.RunID, viewOf(set.Request, false), set.Remaining, set.Proposed})
		}
		after := ""
		if set.Request.ID != id {
			after = fmt.Sprintf("; %s takes its place", escapedOne(set.Request.ID))
		}
		e.say("%s: %s (%s)%s.\n", plain(done), id, set.Request.Call.Tool, plain(after))
		if set.Remaining == 0 {
			e.say("Run %s can go on where its process resumes it.\n", set.RunID)
			return nil
		}
		e.say("%s of run %s still %s for a person.\n", count(set.Remaining, "request"), set.RunID, plain(verb(set.Remaining, "waits", "wait")))
		return nil
	})
}
