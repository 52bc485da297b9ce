package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
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
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				id, given, change := userID(args[0]), cmd.Flags().Changed, httpapi.UserChange{}
				if given("name") {
					change.Name = &name
				}
				if given("role") {
					words := wordsOf(rolesOf(roles))
					change.Roles = &words
				}
				if given("team") {
					all, err := makeTeams(ctx, p, teams)
					if err != nil {
						return err
					}
					change.Teams = &all
				}
				if given("shared") {
					change.Shared = &shared
				}
				if disable || enable {
					change.Disabled = &disable
				}
				if err := p.changeUser(ctx, id, change); err != nil {
					return err
				}
				e.say("Changed %s.\n", id)
				if c := p.config(); c != nil && c.provided() && c.Login.OIDC.Groups != nil && strings.HasPrefix(id, c.Login.OIDC.Issuer+"#") && (given("role") || given("team")) {
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
