package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/access"
)

func newTokenCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create tokens for programs and people, list and revoke them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say ringi token create NAME, ringi token list, or ringi token revoke ID")
		},
	}
	cmd.AddCommand(newTokenCreateCommand(e), newTokenListCommand(e), newTokenRevokeCommand(e))
	return cmd
}

const tokenCreateLong = `Create a token and show it once: the server keeps a hash of it.

An agent's token starts runs and makes calls for the agents that are named; it
can never decide. A person's token speaks for its owner within its scopes.
Scopes: read, run, call, decide, audit, manage.

Over the data of a server here, or with --server at one elsewhere, with an
admin's token that has the scope manage.`

func newTokenCreateCommand(e *env) *cobra.Command {
	var kind, user string
	var agents, scopes []string
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token, and show it once",
		Long:  tokenCreateLong,
		Example: "  ringi token create nightly --agent office --scope run --scope read\n" +
			"  ringi token create ana-laptop --kind person --owner local:ana --scope read --scope decide",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				n := access.NewToken{Kind: access.TokenKind(kind), Name: args[0], Owner: user, Agents: agents, For: life}
				n.Unowned = n.Kind == access.AgentToken && user == ""
				for _, s := range scopes {
					n.Scopes = append(n.Scopes, access.Scope(s))
				}
				id, secret, ends, err := p.makeToken(ctx, n)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						ID    string    `json:"id"`
						Token string    `json:"token"`
						Ends  time.Time `json:"ends"`
					}{id, secret, ends})
				}
				e.say("Token %s, good until %s. It is shown this once:\n%s\n", id, ends.Local().Format(time.DateOnly), secret)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", string(access.AgentToken), "agent or person")
	cmd.Flags().StringVar(&user, "owner", "", "the user whose token it is")
	cmd.Flags().StringArrayVar(&agents, "agent", nil, "an agent that it speaks for; may be given several times")
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "a scope; may be given several times")
	cmd.Flags().DurationVar(&life, "for", 0, "how long it lives (default: as long as allowed, 90 days)")
	serverFlags(cmd)
	return cmd
}

func newTokenListCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tokens: never the tokens themselves",
		Example: "  ringi token list\n  ringi token list --server https://ringi.example.org",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				all, err := p.tokens(ctx)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(struct {
						Tokens []access.Token `json:"tokens"`
					}{all})
				}
				t := table{{"TOKEN", "KIND", "NAME", "OWNER", "ENDS", "STATE"}}
				for _, k := range all {
					state := "good"
					if !k.RevokedAt.IsZero() {
						state = "revoked"
					}
					t = append(t, []any{k.ID, string(k.Kind), k.Name, k.Owner, k.EndsAt.Local().Format(time.DateOnly), state})
				}
				e.say("%s", t.lay())
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}

func newTokenRevokeCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a token at once",
		Example: "  ringi token revoke tok_01…",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.overPeople(cmd, func(ctx context.Context, p people) error {
				if err := p.revokeToken(ctx, args[0]); err != nil {
					return err
				}
				e.say("Revoked %s.\n", args[0])
				return nil
			})
		},
	}
	serverFlags(cmd)
	return cmd
}
