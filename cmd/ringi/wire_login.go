package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/access/oidc"
	"github.com/ringi-dev/ringi/inbox"
)

// accessOptions are how the directory of people works under a configuration.
func (c *config) accessOptions() access.Options {
	return access.Options{NoLinks: !c.links(), SessionAge: c.Login.Session.d, SamePerson: c.Login.SamePerson, Previews: c.Login.previews()}
}

// loginProvider makes what logs people in; nil without one.
func loginProvider(s *server, auth *access.Authenticator) (inbox.Provider, error) {
	c := s.config
	if !c.provided() {
		return nil, nil
	}
	l := c.Login.OIDC
	o := oidc.Options{Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: s.clientSecret, RedirectURL: c.public.String() + "/login/oidc/callback",
		Name: l.Name, Scopes: l.Scopes, GroupsClaim: l.GroupsClaim, Directory: s.people.Directory, Authenticator: auth, Logger: s.log}
	if l.SignUp != "mapped" {
		o.SignUp = oidc.SignUp(l.SignUp)
	}
	for group, g := range l.Groups {
		if o.Groups == nil {
			o.Groups = map[string]oidc.Grant{}
		}
		grant := oidc.Grant{Teams: g.Team}
		for _, role := range g.Role {
			grant.Roles = append(grant.Roles, access.Role(role))
		}
		o.Groups[group] = grant
	}
	return oidc.New(o)
}

// readClientSecret reads our secret at the provider: from the environment, or
// a file that nobody else may read. Without both it is empty.
func (e *env) readClientSecret(c *config) (string, error) {
	if v := e.getenv("RINGI_LOGIN_OIDC_CLIENT_SECRET"); v != "" {
		return v, nil
	}
	if c.Login.OIDC.ClientSecretFile == "" {
		return "", nil
	}
	text, err := readGuarded(c.Login.OIDC.ClientSecretFile, onlyOursRead)
	if err != nil {
		return "", fmt.Errorf("read client secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("read client secret: %s is empty", c.Login.OIDC.ClientSecretFile)
	}
	return secret, nil
}

// flagSamePerson is the store's mark with the logins of one person, so that
// who opens the store without the configuration counts people alike.
const flagSamePerson = "same_person"

// openPeople opens the directory of people, and tells the store which logins
// are one person's.
func (e *env) openPeople(ctx context.Context, s *server) (err error) {
	if s.clientSecret, err = e.readClientSecret(s.config); err != nil {
		return err
	}
	if s.people, err = openDirectory(ctx, s.accessPath, s.config.accessOptions()); err != nil {
		return err
	}
	s.persons, s.members = s.people.Directory, s.people.Directory
	joined, err := json.Marshal(s.config.Login.SamePerson)
	if err != nil {
		return fmt.Errorf("encode same_person: %w", err)
	}
	if err := s.store.SetFlag(ctx, flagSamePerson, string(joined)); err != nil {
		return fmt.Errorf("keep same_person: %w", err)
	}
	teams, err := s.people.Teams(ctx)
	if err != nil {
		return err
	}
	for _, team := range s.config.teamsNobodyKnows(teams) {
		s.log.Warn("an agent asks a team that nobody is in", "team", team)
	}
	return s.checkShared(ctx)
}

// checkShared refuses a login marked shared where four eyes hold (S-12): two
// people behind one login are nobody that a second one could be told from.
func (s *server) checkShared(ctx context.Context) error {
	eyes := ""
	for _, a := range s.config.Agents {
		if a.FourEyes != "" && a.FourEyes != switchedOff {
			eyes = a.Name
		}
	}
	if eyes == "" {
		return nil
	}
	return s.people.each(ctx, func(u access.User) error {
		if u.Shared && !u.Disabled {
			return fmt.Errorf("agent %s: four_eyes: login %s is marked shared: disable it, or give each person his own", eyes, u.ID)
		}
		return nil
	})
}

// each hands out all users, in the order of their ids.
func (d *directory) each(ctx context.Context, do func(access.User) error) error {
	for after := ""; ; {
		page, err := d.Users(ctx, operator(), after, 100)
		if err != nil {
			return err
		}
		for _, u := range page {
			if err := do(u); err != nil {
				return err
			}
		}
		if len(page) < 100 {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

// peopleBeside opens the directory of people of the server whose store this
// is; nil where there is none. It makes nothing.
func peopleBeside(ctx context.Context, store ringi.Store, name string) (*directory, error) {
	path, err := sqlitePath(name)
	if err != nil {
		return nil, nil // a store that no server has
	}
	path = filepath.Join(filepath.Dir(path), accessFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := store.Flag(ctx, flagSamePerson)
	if err != nil {
		return nil, fmt.Errorf("read same_person: %w", err)
	}
	var o access.Options
	if text != "" {
		if err := json.Unmarshal([]byte(text), &o.SamePerson); err != nil {
			return nil, fmt.Errorf("read same_person: %w", err)
		}
	}
	return openDirectory(ctx, path, o)
}
