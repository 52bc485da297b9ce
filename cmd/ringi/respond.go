package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newRespondCommand(e *env) *cobra.Command {
	var c consent
	var result, note string
	cmd := &cobra.Command{
		Use:   "respond REQUEST --result RESULT|@FILE|-",
		Short: "Give the result in the tool's place; the tool does not run",
		Example: "  ringi respond req_01k… --result '{\"refund_id\":\"R-7\"}' --store sqlite:ringi.db\n" +
			"  ringi respond req_01k… --result @result.json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("result") {
				return usagef("no result: say --result RESULT, --result @FILE, or --result - for standard input")
			}
			text, err := e.given(result)
			if err != nil {
				return err
			}
			return e.settle(cmd.Context(), args[0], c, "Answer so, in the tool's place?\n"+string(e.framed(text)), func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.Respond(by, json.RawMessage(text))
				d.Note = note
				return d
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&result, "result", "", "the result, as the tool would return it")
	cmd.Flags().StringVar(&note, "note", "", "for people: the model does not read it")
	return cmd
}
