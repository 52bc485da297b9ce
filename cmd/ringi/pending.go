package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newPendingCommand(e *env) *cobra.Command {
	var q ringi.RequestQuery
	var states []string
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "List the requests that wait for a person",
		Example: "  ringi pending --store sqlite:ringi.db\n" +
			"  ringi pending --run run_01k… --state pending,approved,denied --json",
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
			return e.pending(cmd.Context(), q)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.RunID, "run", "", "only those of this run")
	flags.StringVar(&q.Thread, "thread", "", "only those of this thread")
	flags.StringSliceVar(&states, "state", []string{"pending"}, "only those in these states: "+joined(requestStates))
	flags.IntVar(&q.Limit, "limit", 50, "at most so many, 1 to 1000")
	flags.StringVar(&q.After, "after", "", "go on behind this request")
	return cmd
}

var requestStates = []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent}

// pendingPage is the JSON of ringi pending.
type pendingPage struct {
	Requests []requestView `json:"requests"`
	Next     string        `json:"next,omitempty"`
}

func (e *env) pending(ctx context.Context, q ringi.RequestQuery) error {
	s, err := e.reading(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	page, err := s.engine.Requests(ctx, q)
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

// table is rows of cells, the first row being the heading.
type table [][]any

// lay lays the cells out in columns, escaped.
func (t table) lay() plain {
	wide := make([]int, len(t[0]))
	cells := make([][]string, len(t))
	for i, row := range t {
		cells[i] = make([]string, len(row))
		for j, c := range row {
			cells[i][j] = fmt.Sprint(escapedOne(c))
			wide[j] = max(wide[j], columns(cells[i][j]))
		}
	}
	var b strings.Builder
	for _, row := range cells {
		for j, c := range row {
			b.WriteString(c)
			if j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", wide[j]-columns(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	return plain(b.String())
}

// request reads one request. Where there is none of that id it names the
// nearest: a mistyped id decides nothing.
func (e *env) request(ctx context.Context, s *session, id string) (ringi.ApprovalRequest, error) {
	r, err := s.engine.Request(ctx, id)
	if !errors.Is(err, ringi.ErrNotFound) {
		return r, err
	}
	near, err := nearestRequest(ctx, s, e.space, id)
	if err != nil {
		return r, err
	}
	if near == "" {
		return r, fmt.Errorf("there is no request %s in space %s", id, e.space)
	}
	return r, fmt.Errorf("there is no request %s in space %s; the nearest is %s", id, e.space, near)
}

// nearestRequest finds the request whose id is most like a mistyped one; ""
// where none is like it.
func nearestRequest(ctx context.Context, s *session, space, id string) (string, error) {
	rows, err := s.store.Requests(ctx, ringi.RequestQuery{Space: space, State: requestStates, Limit: 1000})
	if err != nil {
		return "", fmt.Errorf("list requests: %w", err)
	}
	best, least := "", len(id)/2+1
	for _, row := range rows {
		d := distance(id, row.ID)
		if len(id) >= 6 && strings.HasPrefix(row.ID, id) {
			d = 1
		}
		if d < least {
			best, least = row.ID, d
		}
	}
	return best, nil
}

// distance is how many letters must be added, removed or exchanged to make b
// of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

func joined[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}
