package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newTakeBackCommand(e *env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "take-back REQUEST",
		Short:   "Take an approval back that has not been used yet",
		Example: "  ringi take-back req_01k… --reason \"wrong order\" --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.at(cmd.Context(), e.settling, func(d desk) error {
				return e.takeBack(cmd.Context(), d, args[0], reason)
			})
		},
	}
	reasonFlag(cmd, &reason)
	return cmd
}

func (e *env) takeBack(ctx context.Context, d desk, request, reason string) error {
	if _, err := e.request(ctx, d, request); err != nil {
		return err
	}
	set, err := d.TakeBack(ctx, request, d.typist(), reason)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(settledView{set.RunID, viewOf(set.Request, false), set.Remaining, set.Proposed})
	}
	e.say("Taken back: %s (%s). The call is asked anew when run %s is resumed.\n", set.Request.ID, set.Request.Call.Tool, set.RunID)
	return nil
}
