package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

func newClockCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clock",
		Short: "Show a store's time, and accept a clock that was set right",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("say ringi clock show, or ringi clock accept TIME")
		},
	}
	cmd.AddCommand(newClockShowCommand(e), newClockAcceptCommand(e))
	return cmd
}

// clockView is the JSON of ringi clock show.
type clockView struct {
	Clock       time.Time               `json:"clock"`
	Newest      time.Time               `json:"newest_recorded,omitzero"`
	Refuses     bool                    `json:"refuses"`
	Corrections []ringi.ClockCorrection `json:"corrections"`
}

func newClockShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show this machine's clock, the newest recorded time, and past corrections",
		Example: "  ringi clock show --store sqlite:ringi.db\n" +
			"  ringi clock show --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := e.reading(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			c, err := s.store.Clock(cmd.Context())
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(clockView{c.Wall, c.Newest, c.Refuses, append([]ringi.ClockCorrection{}, c.Corrections...)})
			}
			return e.showClock(c)
		},
	}
}

func (e *env) showClock(c ringi.StoreClock) error {
	page := e.paints(e.out)
	page.fact("clock", "%s", c.Wall.Format(time.RFC3339))
	newest := "none"
	if !c.Newest.IsZero() {
		newest = c.Newest.Format(time.RFC3339)
	}
	page.fact("newest", "%s", newest)
	page.fact("refuses", "%v", c.Refuses)
	for _, x := range c.Corrections {
		page.put("  accepted: %s, where %s was recorded, by %s", x.At.Format(time.RFC3339), x.Newest.Format(time.RFC3339), x.By)
		if x.Reason != "" {
			page.put(" (%s)", x.Reason)
		}
		page.put("\n")
	}
	if c.Refuses {
		page.put("Nothing is decided or run here: times are recorded that this machine's clock has\nnot reached. Set it right; if it is right, `ringi clock accept TIME` goes on.\n")
	}
	return page.flush(e.out)
}

const clockAcceptLong = `Say that this machine's clock is right although later times are recorded in the
store. A store refuses to decide and to run while its newest recorded time is
more than two minutes ahead of the clock: the clock was set back, and what has
expired would be open again; or it was ahead before, and is right now. Only you
can know which. So TIME is what time it is by another clock, to two minutes; if
this machine's shows something else nothing is accepted.

Who accepted what is kept in the store (ringi clock show). From then on time goes
on from the clock. What was recorded as expired stays expired; what was only past
its time by the wrong clock is open again. Logs stay as they are: the next event
of a run is never earlier than its newest one. Open requests that were made by
the wrong time keep their deadlines, and are named: look at them.`

func newClockAcceptCommand(e *env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "accept TIME",
		Short: "Say that this machine's clock is right although later times are recorded",
		Long:  clockAcceptLong,
		Example: "  ringi clock accept 2026-11-30T12:04Z --reason \"was a year ahead\" --store sqlite:ringi.db\n" +
			"  ringi clock accept 2026-11-30T13:04:20+01:00 --json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			is, err := readTime(args[0])
			if err != nil {
				return err
			}
			return e.asPerson(cmd.Context(), e.operating, func(s *session, by ringi.Principal) error {
				return e.acceptClock(cmd.Context(), s, is, by, reason)
			})
		},
	}
	reasonFlag(cmd, &reason)
	return cmd
}

// readTime reads a time with its zone, with seconds or without (RFC 3339).
func readTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%q is no time: say it with its zone, like 2026-11-30T12:04Z", text)
}

func (e *env) acceptClock(ctx context.Context, s *session, is time.Time, by ringi.Principal, reason string) error {
	a, err := s.engine.AcceptClock(ctx, is, by, reason)
	switch {
	case err != nil:
		return err
	case e.json:
		return e.printJSON(a)
	}
	e.say("Accepted: it is %s, though %s was recorded.\n", a.At.Format(time.RFC3339), a.Newest.Format(time.RFC3339))
	for _, r := range a.Ahead {
		e.say("Of the wrong time, and open: request %s of run %s in space %s (%s)\n", r.RequestID, r.RunID, r.Space, r.State)
	}
	return nil
}
