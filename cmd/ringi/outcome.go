package main

import (
	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newOutcomeCommand(e *env) *cobra.Command {
	var c consent
	var result, reason, note string
	answers := map[string]ringi.Answer{"ran": ringi.Ran, "did-not-run": ringi.DidNotRun, "run-again": ringi.RunAgain}
	cmd := &cobra.Command{
		Use:   "outcome REQUEST ran|did-not-run|run-again",
		Short: "Say what happened to a call that may have run",
		Example: "  ringi outcome req_01k… ran --result '{\"refund_id\":\"R-7\"}' --store sqlite:ringi.db\n" +
			"  ringi outcome req_01k… did-not-run",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			said, ok := answers[args[1]]
			if !ok {
				return usagef("unknown outcome %q: say ran, did-not-run or run-again", args[1])
			}
			if said != ringi.Ran && cmd.Flags().Changed("result") {
				return usagef("--result belongs to ran")
			}
			text, err := e.given(result)
			if err != nil {
				return err
			}
			return e.settle(cmd.Context(), args[0], c, e.outcomeQuestion(said, text), func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.DidNotRun(by)
				d.Answer, d.Result, d.Reason, d.Note = said, text, reason, note
				return d
			})
		},
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&result, "result", "", "with ran: what it returned; RESULT, @FILE or - for standard input")
	f.StringVar(&reason, "reason", "", "why: the model reads it")
	f.StringVar(&note, "note", "", "for people: the model does not read it")
	return cmd
}

func (e *env) outcomeQuestion(said ringi.Answer, result string) string {
	switch said {
	case ringi.Ran:
		return "It surely ran, and returned this?\n" + string(e.framed(result))
	case ringi.DidNotRun:
		return "It surely did not run?"
	}
	return "Ask for it to be run again?"
}
