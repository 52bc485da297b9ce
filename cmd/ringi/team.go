package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/access"
)

func newTeamCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "team",
		Short: "Add teams to a server, list who is in them, and remove them",
		Long: `Teams are sets of people who decide together: deciders name them. Who is in a
team stands with the person (ringi user set), or comes from his groups at the
login provider, at each login.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say ringi team add ID, ringi team list, or ringi team remove ID")
		},
	}
	cmd.AddCommand(newTeamAddCommand(e), newTeamListCommand(e), newTeamRemoveCommand(e))
	return cmd
}

func newTeamAddCommand(e *env) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "add ID",
		Short:   "Add a team without members",
		Example: "  ringi team add support --name \"Customer support\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				if name == "" {
					name = args[0]
				}
				if err := p.addTeam(ctx, args[0], name); err != nil {
					return err
				}
				e.say("Added team %s.\n", args[0])
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the name that people see (default: the ID)")
	serverFlags(cmd)
	return cmd
}

func newTeamListCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List teams and who is in them",
		Example: "  ringi team list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				teams, err := p.teams(ctx)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						Teams []access.Team `json:"teams"`
					}{append([]access.Team{}, teams...)})
				}
				t := table{{"TEAM", "NAME", "MEMBERS"}}
				for _, team := range teams {
					t = append(t, []any{team.ID, team.Name, strings.Join(team.Members, ", ")})
				}
				e.say("%s", t.lay())
				if c := p.config(); c != nil {
					for _, missing := range c.teamsNobodyKnows(teams) {
						e.say("An agent asks team %s, which does not exist or has nobody in it.\n", missing)
					}
				}
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}

// teamsNobodyKnows are the teams that an agent asks and that nobody is in.
func (c *config) teamsNobodyKnows(teams []access.Team) []string {
	manned := map[string]bool{}
	for _, t := range teams {
		manned[t.ID] = len(t.Members) > 0
	}
	for _, g := range c.Login.OIDC.Groups {
		for _, team := range g.Team {
			manned[team] = true // whoever logs in next may be in it
		}
	}
	var out []string
	for _, a := range c.Agents {
		for _, team := range append(append([]string{}, a.Deciders.Teams...), a.Then) {
			if team != "" && !manned[team] {
				out = append(out, team)
				manned[team] = true // once
			}
		}
	}
	return out
}

func newTeamRemoveCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove a team; its people stay",
		Example: "  ringi team remove support",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				if err := p.removeTeam(ctx, args[0]); err != nil {
					return err
				}
				e.say("Removed team %s.\n", args[0])
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}
