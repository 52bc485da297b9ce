package main

import "github.com/spf13/cobra"

func newTakeBackCommand(e *env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "take-back REQUEST",
		Short:   "Take an approval back that has not been used yet",
		Example: "  ringi take-back req_01k… --reason \"wrong order\" --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			by, err := person()
			if err != nil {
				return err
			}
			s, err := e.deciding(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			if _, err := e.request(ctx, s, args[0]); err != nil {
				return err
			}
			set, err := s.engine.TakeBack(ctx, args[0], by, reason)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(settledView{set.RunID, viewOf(set.Request, false), set.Remaining, set.Proposed})
			}
			e.say("Taken back: %s (%s). The call is asked anew when run %s is resumed.\n", set.Request.ID, set.Request.Call.Tool, set.RunID)
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	return cmd
}
