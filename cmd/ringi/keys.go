package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

func newKeysCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List the keys that a store has used, and retire one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("say ringi keys list, or ringi keys retire KEY")
		},
	}
	cmd.AddCommand(newKeysListCommand(e), newKeysRetireCommand(e))
	return cmd
}

const keysListLong = `List the keys that a store has used: their ids, never the keys themselves; which
of them TOOL_APPROVAL_SECRET holds; how much that is open still needs each, over
all spaces; and how many runs that have ended only it can authenticate.`

func newKeysListCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the keys that a store has used, and what needs them",
		Long:  keysListLong,
		Example: "  ringi keys list --store sqlite:ringi.db\n" +
			"  ringi keys list --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := e.reading(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			uses, err := s.engine.Keys(cmd.Context())
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(struct {
					Keys []engine.KeyUse `json:"keys"`
				}{append([]engine.KeyUse{}, uses...)})
			}
			if len(uses) == 0 {
				e.say("This store has used no key.\n")
				return nil
			}
			t := table{{"KEY", "HERE", "OPEN", "ENDED RUNS"}}
			for _, u := range uses {
				here := "no"
				switch {
				case u.Signs:
					here = "signs"
				case u.Here:
					here = "verifies"
				}
				t = append(t, []any{u.ID, here, u.Open, u.Ended})
			}
			e.say("%s", t.lay())
			return nil
		},
	}
}

const keysRetireLong = `Take a key off the list of those that a store has used, so that a process
without it may open the store. To rotate a key:

  1. Put the new secret first in TOOL_APPROVAL_SECRET of every process, the old
     one behind a comma: the new one signs, both verify.
  2. Wait until nothing open needs the old one: ringi keys list counts.
  3. ringi keys retire KEY, with both secrets set. It is refused, and says what
     is in the way, while an unfinished run, an open request or an approval that
     is not spent is signed with the key.
  4. Take the old secret out of TOOL_APPROVAL_SECRET, and keep it somewhere.

Nothing else authenticates the runs that ended under the old key. Without it
they are not corrupt, and not proven either: ringi verify says so and exits 1,
their requests are not shown, and their threads take no new run. A process that
has the old secret in second place does all of that as before.`

func newKeysRetireCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "retire KEY",
		Short:   "Drop a key that nothing open needs, so that a process can do without it",
		Long:    keysRetireLong,
		Example: "  ringi keys retire 2f1d09c1b7aa4e55 --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.asPerson(cmd.Context(), e.operating, func(s *session, by ringi.Principal) error {
				return e.retireKey(cmd.Context(), s, args[0], by)
			})
		},
	}
}

func (e *env) retireKey(ctx context.Context, s *session, id string, by ringi.Principal) error {
	u, err := s.engine.RetireKey(ctx, id, by)
	if held, ok := errors.AsType[*engine.KeyHeldError](err); ok && !e.json {
		for _, h := range held.Holds {
			e.tell("  %s\n", h)
		}
		if more := held.Open - len(held.Holds); more > 0 {
			e.tell("  and %d more\n", more)
		}
		return fmt.Errorf("key %s is still needed by the %s above", id, count(held.Open, "thing"))
	}
	switch {
	case err != nil:
		return err
	case e.json:
		return e.printJSON(u)
	}
	e.say("Retired key %s: a process without it may open this store.\n", u.ID)
	if u.Ended > 0 {
		e.say("Keep its secret: %s ended under it, and nothing else can authenticate them.\n", plain(count(u.Ended, "run")))
	}
	return nil
}
