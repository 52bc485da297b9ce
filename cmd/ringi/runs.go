package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

var runStatuses = []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForInput, ringi.WaitingForOutcome,
	ringi.Completed, ringi.Failed, ringi.Cancelled}

func newRunsCommand(e *env) *cobra.Command {
	var q ringi.RunQuery
	var statuses []string
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List runs, newest first",
		Example: "  ringi runs --store sqlite:ringi.db\n" +
			"  ringi runs --status waiting_for_approval,failed --json --server https://ringi.example",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range statuses {
				status := ringi.RunStatus(name)
				if !slices.Contains(runStatuses, status) {
					return usagef("unknown status %q: say one of %s", name, joined(runStatuses))
				}
				q.Status = append(q.Status, status)
			}
			if q.Limit < 1 || q.Limit > 1000 {
				return usagef("--limit takes 1 to 1000")
			}
			return e.runs(cmd.Context(), q)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.Thread, "thread", "", "only those of this thread")
	flags.StringSliceVar(&statuses, "status", nil, "only those in these states: "+joined(runStatuses))
	flags.IntVar(&q.Limit, "limit", 50, "at most so many, 1 to 1000")
	flags.StringVar(&q.After, "after", "", "go on behind this run")
	return cmd
}

// runLine is a run in the JSON of ringi runs.
type runLine struct {
	RunID   string          `json:"run_id"`
	Thread  string          `json:"thread"`
	Agent   string          `json:"agent,omitempty"`
	Parent  string          `json:"parent,omitempty"`
	Status  ringi.RunStatus `json:"status"`
	Reason  ringi.Reason    `json:"reason,omitempty"`
	Created time.Time       `json:"created_at"`
	Updated time.Time       `json:"updated_at"`
}

// runsPage is the JSON of ringi runs.
type runsPage struct {
	Runs []runLine `json:"runs"`
	Next string    `json:"next,omitempty"`
}

func (e *env) runs(ctx context.Context, q ringi.RunQuery) error {
	return e.at(ctx, e.looking, func(d desk) error {
		rows, err := d.Runs(ctx, q)
		if err != nil {
			return err
		}
		page := runsPage{Runs: []runLine{}}
		for _, r := range rows {
			page.Runs = append(page.Runs, runLine{r.ID, r.Thread, r.Agent, r.Parent, r.Status, r.Reason, r.CreatedAt, r.UpdatedAt})
		}
		if len(rows) == q.Limit {
			page.Next = rows[len(rows)-1].ID
		}
		if e.json {
			return e.printJSON(page)
		}
		if len(rows) == 0 {
			e.say("No run is there.\n")
			return nil
		}
		now := e.now()
		t := table{{"RUN", "STATUS", "AGENT", "THREAD", "STARTED", "LAST MOVED"}}
		for _, r := range rows {
			status := string(r.Status)
			if r.Reason != "" && string(r.Reason) != status {
				status += ": " + string(r.Reason)
			}
			t = append(t, []any{r.ID, status, r.Agent, r.Thread, durationText(max(0, now.Sub(r.CreatedAt))) + " ago",
				durationText(max(0, now.Sub(r.UpdatedAt))) + " ago"})
		}
		e.say("%s", t.lay())
		if page.Next != "" {
			e.say("More: --after %s\n", page.Next)
		}
		return nil
	})
}
