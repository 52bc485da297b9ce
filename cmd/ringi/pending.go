package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newPendingCommand(e *env) *cobra.Command {
	var q ringi.RequestQuery
	var states []string
	var who, risk, order string
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "List the requests that wait for a person",
		Example: "  ringi pending --store sqlite:ringi.db\n" +
			"  ringi pending --run run_01k… --state pending,approved,denied --json\n" +
			"  ringi pending --tool refund_order --search 'a-1017 ana@example.com' --for os:1000@host,team:finance",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range states {
				state := ringi.RequestState(name)
				if !slices.Contains(requestStates, state) {
					return usagef("unknown state %q: say one of %s", name, joined(requestStates))
				}
				q.State = append(q.State, state)
			}
			if q.Limit < 1 || q.Limit > 1000 {
				return usagef("--limit takes 1 to 1000")
			}
			q.Risk, q.Order = ringi.Risk(risk), ringi.RequestOrder(order)
			if risk != "" && !slices.Contains(ringi.Risks(), q.Risk) {
				return usagef("unknown risk %q: say one of %s", risk, joined(ringi.Risks()))
			}
			if !slices.Contains(requestOrders, q.Order) {
				return usagef("unknown order %q: say one of %s", order, joined(requestOrders))
			}
			if q.Order == "oldest" {
				q.Order = ringi.OldestFirst
			}
			if err := q.Check(); err != nil {
				return usagef("--search: %v", err)
			}
			q.For.ID, q.For.Teams = forWhom(who)
			return e.pending(cmd.Context(), q)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.RunID, "run", "", "only those of this run")
	flags.StringVar(&q.Thread, "thread", "", "only those of this thread")
	flags.StringSliceVar(&states, "state", []string{"pending"}, "only those in these states: "+joined(requestStates))
	flags.StringVar(&q.Tool, "tool", "", "only those of this tool")
	flags.StringVar(&q.Agent, "agent", "", "only those of this agent")
	flags.StringVar(&risk, "risk", "", "only those to be looked at so closely: "+joined(ringi.Risks()))
	flags.StringVar(&order, "order", "oldest", "what comes first: "+joined(requestOrders))
	flags.StringVar(&q.Search, "search", "", "only those with all these words, anywhere in tool, agent, ids and the texts of the input")
	flags.StringVar(&who, "for", "", "only those that this principal may decide by name, as `id,team:a,team:b`; those that name nobody too")
	flags.IntVar(&q.Limit, "limit", 50, "at most so many, 1 to 1000")
	flags.StringVar(&q.After, "after", "", "go on behind this request")
	return cmd
}

// forWhom reads a principal's id and teams: parts that begin with "team:" are
// teams.
func forWhom(text string) (id string, teams []string) {
	for part := range strings.SplitSeq(text, ",") {
		if team, ok := strings.CutPrefix(part, "team:"); ok {
			teams = append(teams, team)
		} else if id == "" {
			id = part
		} else {
			id += "," + part // an id may hold a comma
		}
	}
	return id, teams
}

var requestStates = []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent}

var requestOrders = []ringi.RequestOrder{"oldest", ringi.NewestFirst, ringi.SoonestFirst, ringi.RiskiestFirst}

// pendingPage is the JSON of ringi pending.
type pendingPage struct {
	Requests []requestView `json:"requests"`
	Next     string        `json:"next,omitempty"`
}

func (e *env) pending(ctx context.Context, q ringi.RequestQuery) error {
	d, err := e.looking(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	page, err := d.Requests(ctx, q)
	if err != nil {
		return err
	}
	if e.json {
		out := pendingPage{Requests: []requestView{}, Next: page.Next}
		for _, r := range page.Requests {
			out.Requests = append(out.Requests, viewOf(r, false))
		}
		return e.printJSON(out)
	}
	if len(page.Requests) == 0 {
		e.say("No request is there.\n")
		return nil
	}
	t := table{{"REQUEST", "STATE", "TOOL", "ASKS FOR", "ASKED BY", "ASKED", "EXPIRES"}}
	now := e.now()
	for _, r := range page.Requests {
		expires := "never"
		if !r.ExpiresAt.IsZero() {
			expires = "in " + durationText(max(0, r.ExpiresAt.Sub(now)))
		}
		state := string(r.State)
		if r.ProposalWaits {
			state += " (proposed)"
		}
		t = append(t, []any{r.ID, state, r.Call.Tool, r.Kind, plain(initiatorText(r.Initiators)),
			durationText(max(0, now.Sub(r.CreatedAt))) + " ago", expires})
	}
	e.say("%s", t.lay())
	if page.Next != "" {
		e.say("More: --after %s\n", page.Next)
	}
	return nil
}

func joined[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}
