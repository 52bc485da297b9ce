package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// storeSettings are what ringi store set knows: a name for people, the store's
// own flag, and what each value is kept as.
var storeSettings = []struct {
	name, flag string
	values     map[string]string
	what       string
}{
	{"scripted-decisions", flagScripted, map[string]string{"on": "on", "off": ""},
		"on: any script of this user may decide, with --yes and --digest; off (the default): people alone do"},
	{"decide", flagDecide, map[string]string{"server": "server", "anywhere": ""},
		"server: only the server's logins decide, this command does not; anywhere (the default)"},
}

func newStoreCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Show and set how a store may be used",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("say ringi store show, or ringi store set NAME VALUE")
		},
	}
	cmd.AddCommand(newStoreShowCommand(e), newStoreSetCommand(e))
	return cmd
}

func newStoreShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show a store's id and settings",
		Example: "  ringi store show --store sqlite:ringi.db",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			s, err := e.reading(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			id, err := s.store.ID(ctx)
			if err != nil {
				return fmt.Errorf("read store id: %w", err)
			}
			used, err := s.store.Keys(ctx)
			if err != nil {
				return fmt.Errorf("read key memory: %w", err)
			}
			replayed, err := s.store.Flag(ctx, flagReplayed)
			if err != nil {
				return fmt.Errorf("read flag: %w", err)
			}
			doc := map[string]any{"id": id, "keyed": len(used) > 0, "simulated": replayed != ""}
			page := e.paints(e.out)
			page.fact("id", "%s", id)
			page.fact("keyed", "%v", len(used) > 0)
			page.fact("simulated", "%v", replayed != "")
			for _, set := range storeSettings {
				kept, err := s.store.Flag(ctx, set.flag)
				if err != nil {
					return fmt.Errorf("read flag: %w", err)
				}
				for value, as := range set.values {
					if as == kept {
						doc[set.flag] = value
						page.put("  %s: %s\n", set.name, value)
					}
				}
			}
			if e.json {
				return e.printJSON(doc)
			}
			return page.flush(e.out)
		},
	}
}

func newStoreSetCommand(e *env) *cobra.Command {
	long := "Set how a store may be used. A keyed store needs its key for that.\n"
	for _, set := range storeSettings {
		long += "\n  " + set.name + "\n      " + set.what
	}
	return &cobra.Command{
		Use:     "set NAME VALUE",
		Short:   "Set how a store may be used",
		Long:    long,
		Example: "  ringi store set scripted-decisions on --store sqlite:test.db",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, set := range storeSettings {
				value, ok := set.values[args[1]]
				if set.name != args[0] {
					continue
				}
				if !ok {
					return usagef("unknown value %q for %s; %s", args[1], set.name, set.what)
				}
				s, err := e.operating(cmd.Context())
				if err != nil {
					return err
				}
				defer s.close()
				if err := s.store.SetFlag(cmd.Context(), set.flag, value); err != nil {
					return fmt.Errorf("set %s: %w", set.name, err)
				}
				if e.json {
					return e.printJSON(map[string]string{set.flag: args[1]})
				}
				e.say("Set %s to %s.\n", set.name, args[1])
				return nil
			}
			return usagef("unknown setting %q: say scripted-decisions or decide", args[0])
		},
	}
}
