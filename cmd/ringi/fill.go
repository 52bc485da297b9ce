package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newFillCommand(e *env) *cobra.Command {
	var values, digest string
	cmd := &cobra.Command{
		Use:   "fill REQUEST [--values JSON|FILE|-]",
		Short: "Supply the values that a tool asks a person for",
		Example: "  ringi fill req_01k… --store sqlite:ringi.db                 asks for each\n" +
			"  ringi fill req_01k… --values '{\"code\":\"418993\"}'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := !cmd.Flags().Changed("values")
			if ask && !e.interactive() {
				return usagef("no values, and no terminal to ask at: say --values JSON, --values FILE, or --values - for standard input")
			}
			text, err := e.givenObject(values)
			if err != nil {
				return err
			}
			return e.propose(cmd.Context(), args[0], digest, func(r ringi.ApprovalRequest, by ringi.Principal) (ringi.Decision, error) {
				if ask {
					if text, err = e.asked(cmd.Context(), r); err != nil {
						return ringi.Decision{}, err
					}
				}
				return r.Fill(by, json.RawMessage(text)), nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&values, "values", "", "the values as a JSON object: JSON, a file, or - for standard input")
	f.StringVar(&digest, "digest", "", "the digest of the request that is meant; another one is refused as stale")
	return cmd
}

// asked asks for the typed values of a request, one after another.
func (e *env) asked(ctx context.Context, r ringi.ApprovalRequest) (string, error) {
	if r.State != ringi.Pending || !r.Allows(ringi.Fill) {
		return "{}", nil // Decide refuses it, and says why
	}
	fields, err := fieldsOf(r.InputSchema)
	if err != nil {
		return "", err
	}
	page := e.paints(e.err)
	page.request(viewOf(r, false), e.now())
	if err := page.flush(e.err); err != nil {
		return "", err
	}
	p, err := e.asks("")
	if err != nil {
		return "", err
	}
	e.tell("\n")
	return p.askFields(ctx, fields)
}
