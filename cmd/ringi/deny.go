package main

import (
	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newDenyCommand(e *env) *cobra.Command {
	var reason, note, digest string
	var thisTool bool
	cmd := &cobra.Command{
		Use:     "deny REQUEST",
		Short:   "Refuse a call; the model reads the reason",
		Example: "  ringi deny req_01k… --reason \"the customer has been refunded\" --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := e.answering(cmd.Context(), args[0], digest, func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.Deny(by, reason)
				d.Note = note
				if thisTool {
					d.Scope = ringi.ThisTool
				}
				return d
			})
			if err != nil {
				return err
			}
			defer a.desk.close()
			return e.record(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "why: the model reads it")
	f.StringVar(&note, "note", "", "for people: the model does not read it")
	f.BoolVar(&thisTool, "this-tool", false, "refuse every later call of the tool in this thread too")
	f.StringVar(&digest, "digest", "", "the digest of the request that is meant; another one is refused as stale")
	return cmd
}
