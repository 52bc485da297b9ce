package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/access"
)

const userSetLong = `Change what a person may do. What is not said stays as it is; --role and --team
replace all roles and all teams, and an empty one (--team "") leaves none.

Who is disabled is logged out at once, on every device, and his tokens and those
of his agents are refused while it stands.`

func newUserSetCommand(e *env) *cobra.Command {
	var name string
	var roles, teams []string
	var disable, enable, shared bool
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Change a person's roles and teams, or disable him",
		Long:  userSetLong,
		Example: "  ringi user set ana --role approver --role admin --team support\n" +
			"  ringi user set 'https://id.example.org#4711' --disable",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if disable && enable {
				return usagef("--disable and --enable: say one of them")
			}
			return e.overDirectory(cmd, func(ctx context.Context, d *directory, c *config) error {
				u, err := d.User(ctx, userID(args[0]))
				if err != nil {
					return err
				}
				given := cmd.Flags().Changed
				if given("name") {
					u.Name = name
				}
				if given("role") {
					u.Roles = rolesOf(roles)
				}
				if given("team") {
					if u.Teams, err = d.makeTeams(ctx, teams); err != nil {
						return err
					}
				}
				if given("shared") {
					u.Shared = shared
				}
				u.Disabled = (u.Disabled || disable) && !enable
				if err := d.SetUser(ctx, operator(), u); err != nil {
					return err
				}
				e.say("Changed %s.\n", u.ID)
				if c.provided() && c.Login.OIDC.Groups != nil && strings.HasPrefix(u.ID, c.Login.OIDC.Issuer+"#") && (given("role") || given("team")) {
					e.say("His groups at the login provider replace roles and teams at his next login.\n")
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the name that people see")
	cmd.Flags().StringArrayVar(&roles, "role", nil, "a role; may be given several times")
	cmd.Flags().StringArrayVar(&teams, "team", nil, "a team, made where it is missing; may be given several times")
	cmd.Flags().BoolVar(&disable, "disable", false, "log the person out, and refuse him")
	cmd.Flags().BoolVar(&enable, "enable", false, "let a disabled person in again")
	cmd.Flags().BoolVar(&shared, "shared", false, "mark a login that several people use; four eyes never count it")
	serverFlags(cmd)
	return cmd
}

// userID is an id as people type it: a word is one of ours.
func userID(typed string) string {
	if strings.Contains(typed, ":") {
		return typed
	}
	return access.LocalID(typed)
}

func rolesOf(words []string) []access.Role {
	var out []access.Role
	for _, w := range words {
		if w != "" {
			out = append(out, access.Role(w))
		}
	}
	return out
}

// makeTeams makes the teams that are missing.
func (d *directory) makeTeams(ctx context.Context, teams []string) ([]string, error) {
	teams = slices.DeleteFunc(slices.Clone(teams), func(s string) bool { return s == "" })
	for _, team := range teams {
		if err := d.AddTeam(ctx, operator(), team, team); err != nil && !errors.Is(err, access.ErrExists) {
			return nil, err
		}
	}
	return teams, nil
}
