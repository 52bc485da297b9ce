package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
)

// people are a server's people, teams and tokens: in its data folder, or at its
// address.
type people interface {
	makeToken(ctx context.Context, n access.NewToken) (id, secret string, ends time.Time, err error)
	tokens(ctx context.Context) ([]access.Token, error)
	revokeToken(ctx context.Context, id string) error
	addUser(ctx context.Context, u access.User) error
	changeUser(ctx context.Context, id string, c httpapi.UserChange) error
	users(ctx context.Context) ([]access.User, error)
	addTeam(ctx context.Context, id, name string) error
	removeTeam(ctx context.Context, id string) error
	teams(ctx context.Context) ([]access.Team, error)
	// config is the server's, nil where it is far.
	config() *config
	// link makes a login link and returns its address.
	link(ctx context.Context, id string) (string, time.Time, error)
}

// overPeople runs a command on the people of the server that is meant: the one
// at --server, or the one whose data is here, which may be running.
func (e *env) overPeople(cmd *cobra.Command, do func(context.Context, people) error) error {
	here := cmd.Flags().Changed("data") || cmd.Flags().Changed("config")
	address := e.server
	if address == "" && !here {
		address = e.getenv(serverEnv)
	}
	switch {
	case address == "":
		return e.overDirectory(cmd, func(ctx context.Context, d *directory, c *config) error { return do(ctx, &peopleHere{d, c}) })
	case here:
		return usagef("--server is for a server elsewhere, --data and --config for one here: say one of them")
	}
	d, err := e.serverDesk(cmd.Context(), address)
	if err != nil {
		return err
	}
	return do(cmd.Context(), &peopleThere{d.Client})
}

// peopleHere work on the directory itself.
type peopleHere struct {
	d *directory
	c *config
}

func (p *peopleHere) config() *config { return p.c }

func (p *peopleHere) makeToken(ctx context.Context, n access.NewToken) (string, string, time.Time, error) {
	t, secret, err := p.d.MakeToken(ctx, operator(), n)
	return t.ID, secret, t.EndsAt, err
}

func (p *peopleHere) tokens(ctx context.Context) ([]access.Token, error) {
	return each(func(after string) ([]access.Token, string, error) {
		page, err := p.d.Tokens(ctx, operator(), "", after, pageOf)
		return page, next(page, func(t access.Token) string { return t.ID }), err
	})
}

func (p *peopleHere) revokeToken(ctx context.Context, id string) error {
	return p.d.RevokeToken(ctx, operator(), id)
}

func (p *peopleHere) addUser(ctx context.Context, u access.User) error {
	return p.d.AddUser(ctx, operator(), u)
}

func (p *peopleHere) changeUser(ctx context.Context, id string, c httpapi.UserChange) error {
	u, err := p.d.User(ctx, id)
	if err != nil {
		return err
	}
	c.Apply(&u)
	return p.d.SetUser(ctx, operator(), u)
}

func (p *peopleHere) users(ctx context.Context) ([]access.User, error) {
	return each(func(after string) ([]access.User, string, error) {
		page, err := p.d.Users(ctx, operator(), after, pageOf)
		return page, next(page, func(u access.User) string { return u.ID }), err
	})
}

func (p *peopleHere) link(ctx context.Context, id string) (string, time.Time, error) {
	secret, ends, err := p.d.MakeLink(ctx, operator(), id)
	return loginURL(p.c.base(), secret), ends, err
}

func (p *peopleHere) addTeam(ctx context.Context, id, name string) error {
	return p.d.AddTeam(ctx, operator(), id, name)
}

func (p *peopleHere) removeTeam(ctx context.Context, id string) error {
	return p.d.RemoveTeam(ctx, operator(), id)
}

func (p *peopleHere) teams(ctx context.Context) ([]access.Team, error) { return p.d.Teams(ctx) }

// peopleThere work at a server, with a token that may manage.
type peopleThere struct{ c *httpapi.Client }

func (*peopleThere) config() *config { return nil }

func (p *peopleThere) makeToken(ctx context.Context, n access.NewToken) (string, string, time.Time, error) {
	if n.For%time.Second != 0 {
		return "", "", time.Time{}, usagef("--for: whole seconds")
	}
	b := httpapi.TokenBody{Kind: string(n.Kind), Name: n.Name, Owner: n.Owner, Unowned: n.Unowned, Agents: n.Agents, Scopes: wordsOf(n.Scopes),
		Seconds: int64(n.For / time.Second)}
	t, err := p.c.MakeToken(ctx, b)
	return t.ID, t.Secret, t.EndsAt, err
}

func (p *peopleThere) tokens(ctx context.Context) ([]access.Token, error) {
	return each(func(after string) ([]access.Token, string, error) {
		page, err := p.c.Tokens(ctx, "", after, pageOf)
		var out []access.Token
		for _, t := range page.Tokens {
			out = append(out, access.Token{ID: t.ID, Kind: t.Kind, Name: t.Name, Owner: t.Owner, Agents: t.Agents, Scopes: t.Scopes, MadeBy: t.MadeBy,
				GrantedBy: t.GrantedBy, CreatedAt: t.CreatedAt, EndsAt: t.EndsAt, UsedAt: t.UsedAt, RevokedAt: t.RevokedAt})
		}
		return out, page.Next, err
	})
}

func (p *peopleThere) revokeToken(ctx context.Context, id string) error {
	return p.c.RevokeToken(ctx, id)
}

func (p *peopleThere) addUser(ctx context.Context, u access.User) error {
	_, err := p.c.AddUser(ctx, httpapi.UserBody{ID: u.ID, Name: u.Name, Roles: wordsOf(u.Roles), Teams: u.Teams})
	return err
}

func (p *peopleThere) changeUser(ctx context.Context, id string, c httpapi.UserChange) error {
	_, err := p.c.ChangeUser(ctx, id, c)
	return err
}

func (p *peopleThere) users(ctx context.Context) ([]access.User, error) {
	return each(func(after string) ([]access.User, string, error) {
		page, err := p.c.Users(ctx, after, pageOf)
		var out []access.User
		for _, u := range page.Users {
			out = append(out, access.User{ID: u.ID, Name: u.Name, Roles: u.Roles, Teams: u.Teams, Payloads: u.Payloads, Shared: u.Shared,
				Disabled: u.Disabled, CreatedAt: u.CreatedAt})
		}
		return out, page.Next, err
	})
}

// link makes none: no token turns into a session.
func (*peopleThere) link(context.Context, string) (string, time.Time, error) {
	return "", time.Time{}, usagef("a login link is made where the server's data is: no token turns into a session")
}

func (p *peopleThere) addTeam(ctx context.Context, id, name string) error {
	_, err := p.c.AddTeam(ctx, httpapi.TeamBody{ID: id, Name: name})
	return err
}

func (p *peopleThere) removeTeam(ctx context.Context, id string) error {
	return p.c.RemoveTeam(ctx, id)
}

func (p *peopleThere) teams(ctx context.Context) ([]access.Team, error) {
	list, err := p.c.Teams(ctx)
	var out []access.Team
	for _, t := range list {
		out = append(out, access.Team{ID: t.ID, Name: t.Name, Members: t.Members})
	}
	return out, err
}

// makeTeams makes the teams that are missing, and returns all without empty
// words.
func makeTeams(ctx context.Context, p people, teams []string) ([]string, error) {
	teams = slices.DeleteFunc(slices.Clone(teams), func(s string) bool { return s == "" })
	for _, team := range teams {
		if err := p.addTeam(ctx, team, team); err != nil && !errors.Is(err, access.ErrExists) {
			return nil, err
		}
	}
	return teams, nil
}

// pageOf is how many of a list are asked for at once.
const pageOf = 100

// each reads a list page by page.
func each[T any](read func(after string) ([]T, string, error)) ([]T, error) {
	all, after := []T{}, ""
	for {
		page, next, err := read(after)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next == "" {
			return all, nil
		}
		after = next
	}
}

// next is where the page behind a full one begins.
func next[T any](page []T, id func(T) string) string {
	if len(page) < pageOf {
		return ""
	}
	return id(page[len(page)-1])
}

func wordsOf[T ~string](list []T) []string {
	out := []string{}
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}
