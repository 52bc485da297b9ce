package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

// cancelled is the JSON of ringi cancel.
type cancelled struct {
	RunID  string          `json:"run_id"`
	Status ringi.RunStatus `json:"status"`
}

func newCancelCommand(e *env) *cobra.Command {
	var reason string
	var now bool
	cmd := &cobra.Command{
		Use:     "cancel RUN",
		Short:   "End a run: what it waits for is withdrawn, never denied",
		Example: "  ringi cancel run_01k… --reason \"no longer needed\" --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.at(cmd.Context(), e.settling, func(d desk) error {
				return e.cancel(cmd.Context(), d, args[0], reason, now)
			})
		},
	}
	reasonFlag(cmd, &reason)
	cmd.Flags().BoolVar(&now, "now", false, "cut a call in flight: a write that was cut may have happened or not")
	return cmd
}

func (e *env) cancel(ctx context.Context, d desk, run, reason string, now bool) error {
	if err := d.Cancel(ctx, run, d.typist(), reason, now); err != nil {
		return err
	}
	row, err := d.Row(ctx, run)
	if err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	switch {
	case e.json:
		return e.printJSON(cancelled{row.ID, row.Status})
	case row.Status.Final():
		e.say("Run %s is cancelled.\n", row.ID)
	default:
		e.say("Run %s will be cancelled by the process that drives it; a call in flight is recorded first.\n", row.ID)
	}
	return nil
}
