package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi/access"
)

// Users is a page of users.
type Users struct {
	Users []User `json:"users"`
	// Next continues the list as its after; empty at the end.
	Next string `json:"next,omitempty"`
}

// User is a person who may log in.
type User struct {
	ID        string        `json:"id"`
	Name      string        `json:"name,omitempty"`
	Roles     []access.Role `json:"roles"`
	Teams     []string      `json:"teams"`
	Payloads  bool          `json:"payloads,omitempty"`
	Shared    bool          `json:"shared,omitempty"`
	Disabled  bool          `json:"disabled,omitempty"`
	CreatedAt time.Time     `json:"created_at,omitzero"`
}

func userOf(u access.User) User {
	return User{u.ID, u.Name, append([]access.Role{}, u.Roles...), append([]string{}, u.Teams...), u.Payloads, u.Shared, u.Disabled, u.CreatedAt}
}

type usersInput struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	After string `query:"after" doc:"The member next of the page before."`
}

func (s *server) listUsers(ctx context.Context, w access.Who, in *usersInput) (*answer, error) {
	list, err := s.Directory.Users(ctx, w, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := Users{Users: []User{}}
	for _, u := range list {
		out.Users = append(out.Users, userOf(u))
	}
	if len(list) == in.Limit {
		out.Next = list[len(list)-1].ID
	}
	return asJSON(http.StatusOK, out)
}

// UserBody is a person to be added.
type UserBody struct {
	ID       string   `json:"id" minLength:"1" doc:"local:ana, or issuer and subject."`
	Name     string   `json:"name,omitempty" doc:"For people; without it the id."`
	Roles    []string `json:"roles,omitempty" doc:"user, approver, auditor, admin."`
	Teams    []string `json:"teams,omitempty" doc:"Teams that are there."`
	Payloads bool     `json:"payloads,omitempty"`
	Shared   bool     `json:"shared,omitempty" doc:"A login that several people use: nobody in particular."`
}

type userInput struct {
	Key     string `header:"Idempotency-Key"`
	Body    UserBody
	RawBody []byte
}

func (s *server) postUser(ctx context.Context, w access.Who, in *userInput) (*answer, error) {
	if err := access.May(w, access.UsersManage, access.All); err != nil {
		return nil, err
	}
	b := in.Body
	u := access.User{ID: b.ID, Name: cmp.Or(b.Name, b.ID), Teams: b.Teams, Payloads: b.Payloads, Shared: b.Shared}
	for _, role := range b.Roles {
		u.Roles = append(u.Roles, access.Role(role))
	}
	return s.once(ctx, w, seen{owner: every}, access.UsersManage, in.Key, in.RawBody, func(bool) (*answer, error) {
		if err := s.Directory.AddUser(ctx, w, u); err != nil {
			return nil, err
		}
		return s.oneUser(ctx, http.StatusCreated, u.ID)
	})
}

func (s *server) oneUser(ctx context.Context, status int, id string) (*answer, error) {
	u, err := s.Directory.User(ctx, id)
	if err != nil {
		return nil, err
	}
	return asJSON(status, userOf(u))
}

// UserChange says what is to be another way with a user; what is nil stays.
type UserChange struct {
	Name     *string   `json:"name,omitempty"`
	Roles    *[]string `json:"roles,omitempty" doc:"All that he is to have."`
	Teams    *[]string `json:"teams,omitempty" doc:"All that he is to be in; teams that are there."`
	Payloads *bool     `json:"payloads,omitempty"`
	Shared   *bool     `json:"shared,omitempty"`
	Disabled *bool     `json:"disabled,omitempty" doc:"true ends his sessions, and refuses his tokens and those of his agents."`
}

// Apply changes u so.
func (c *UserChange) Apply(u *access.User) {
	if c.Roles != nil {
		u.Roles = nil
		for _, role := range *c.Roles {
			u.Roles = append(u.Roles, access.Role(role))
		}
	}
	if c.Name != nil {
		u.Name = *c.Name
	}
	if c.Teams != nil {
		u.Teams = *c.Teams
	}
	for to, from := range map[*bool]*bool{&u.Payloads: c.Payloads, &u.Shared: c.Shared, &u.Disabled: c.Disabled} {
		if from != nil {
			*to = *from
		}
	}
}

type changeInput struct {
	ID      string `path:"id"`
	Key     string `header:"Idempotency-Key"`
	Body    UserChange
	RawBody []byte
}

func (s *server) postUserChange(ctx context.Context, w access.Who, in *changeInput) (*answer, error) {
	return s.changeUser(ctx, w, in.ID, in.Key, in.RawBody, &in.Body)
}

func (s *server) postDisable(ctx context.Context, w access.Who, in *idInput) (*answer, error) {
	yes := true
	return s.changeUser(ctx, w, in.ID, in.Key, nil, &UserChange{Disabled: &yes})
}

func (s *server) changeUser(ctx context.Context, w access.Who, id, key string, raw []byte, c *UserChange) (*answer, error) {
	if err := access.May(w, access.UsersManage, access.All); err != nil {
		return nil, err
	}
	return s.once(ctx, w, seen{owner: every}, access.UsersManage, key, raw, func(bool) (*answer, error) {
		u, err := s.Directory.User(ctx, id)
		if err != nil {
			return nil, err
		}
		c.Apply(&u)
		if err := s.Directory.SetUser(ctx, w, u); err != nil {
			return nil, err
		}
		return s.oneUser(ctx, http.StatusOK, u.ID)
	})
}
