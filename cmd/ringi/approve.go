package main

import (
	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newApproveCommand(e *env) *cobra.Command {
	var c consent
	var note string
	cmd := &cobra.Command{
		Use:   "approve REQUEST",
		Short: "Show a request, ask, and let the call run once",
		Example: "  ringi approve req_01k… --store sqlite:ringi.db\n" +
			"  ringi approve req_01k… --yes --digest 9f2c…   (only where scripted decisions are on)",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.settle(cmd.Context(), args[0], c, "Let it run once, exactly so?", func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.Approve(by)
				d.Note = note
				return d
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&note, "note", "", "for people: the model does not read it")
	return cmd
}
