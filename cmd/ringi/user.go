package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/access"
)

func newUserCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Add people to a server, list them, and give them a login link",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say ringi user add ID, ringi user list, ringi user set ID, or ringi user link ID")
		},
	}
	cmd.AddCommand(newUserAddCommand(e), newUserListCommand(e), newUserLinkCommand(e), newUserSetCommand(e))
	return cmd
}

const userAddLong = `Add a person who may log in, and show a login link with its QR code. The link is
for one use within ten minutes, and is shown on a terminal only.

Roles: user (starts runs and reads his own), approver (decides), auditor (reads
the log), admin (manages). docs/access.md has the table.

With --server the person is added at a server elsewhere, by an admin's token
that has the scope manage. It makes no login links.`

func newUserAddCommand(e *env) *cobra.Command {
	var name string
	var roles, teams []string
	var provided bool
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Add a person, and show a login link",
		Long:  userAddLong,
		Example: "  ringi user add ana --name \"Ana Example\" --role approver\n" +
			"  ringi user add ben --role approver --role admin --team billing",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				c := p.config()
				u := access.User{ID: userID(args[0]), Name: name, Roles: rolesOf(roles)}
				if provided {
					if c == nil || !c.provided() {
						return usagef("--provider: no login provider is configured here; with --server say the whole id, ISSUER#SUBJECT")
					}
					u.ID = access.ProvidedID(c.Login.OIDC.Issuer, args[0])
				}
				if u.Name == "" {
					u.Name = args[0]
				}
				var err error
				if u.Teams, err = makeTeams(ctx, p, teams); err != nil {
					return err
				}
				if err := p.addUser(ctx, u); err != nil {
					return err
				}
				if e.json {
					return e.printJSON(map[string]string{"user": u.ID})
				}
				e.say("Added %s.\n", u.ID)
				if c == nil || !c.links() {
					return nil // he logs in by the provider, or gets a link where the data is
				}
				return e.showLink(ctx, p, u.ID)
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the name that people see (default: the ID)")
	cmd.Flags().BoolVar(&provided, "provider", false, "ID is the person's subject at the login provider")
	cmd.Flags().StringArrayVar(&roles, "role", []string{string(access.RoleApprover)}, "a role; may be given several times")
	cmd.Flags().StringArrayVar(&teams, "team", nil, "a team, made where it is missing; may be given several times")
	serverFlags(cmd)
	return cmd
}

func newUserLinkCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "link ID",
		Short:   "Show a login link for a person",
		Example: "  ringi user link owner",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				id := userID(args[0])
				if !isTerminal(e.out) {
					return usagef("a login link is shown on a terminal only")
				}
				return e.showLink(ctx, p, id)
			})
		},
	}
	serverFlags(cmd)
	return cmd
}

// showLink makes a login link and shows it, on a terminal alone: what goes into
// a pipe stays in a file or a log (S-10).
func (e *env) showLink(ctx context.Context, p people, user string) error {
	if !isTerminal(e.out) {
		e.say("`ringi user link` on a terminal shows a login link.\n")
		return nil
	}
	url, ends, err := p.link(ctx, user)
	if err != nil {
		return fmt.Errorf("make login link: %w", err)
	}
	e.printf("\n%s\n", code(url))
	e.say("Log in, once, until %s:\n  %s\n", ends.Local().Format("15:04:05"), url)
	return nil
}

func newUserListCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List who may log in",
		Example: "  ringi user list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				all, err := p.users(ctx)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						Users []access.User `json:"users"`
					}{all})
				}
				t := table{{"USER", "NAME", "ROLES", "TEAMS", "STATE"}}
				for _, u := range all {
					state := "may log in"
					if u.Disabled {
						state = "disabled"
					}
					roles := make([]string, len(u.Roles))
					for i, r := range u.Roles {
						roles[i] = string(r)
					}
					t = append(t, []any{u.ID, u.Name, strings.Join(roles, ", "), strings.Join(u.Teams, ", "), state})
				}
				e.say("%s", t.lay())
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}
