package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/ringi-dev/ringi/access"
)

// Teams are all teams, by id.
type Teams struct {
	Teams []Team `json:"teams"`
}

// Team is a set of people who decide together.
type Team struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Members are the ids of its enabled users.
	Members []string `json:"members"`
}

func (s *server) listTeams(ctx context.Context, w access.Who, _ *struct{}) (*answer, error) {
	if err := access.May(w, access.UsersManage, access.All); err != nil {
		return nil, err
	}
	list, err := s.Directory.Teams(ctx)
	if err != nil {
		return nil, err
	}
	out := Teams{Teams: []Team{}}
	for _, t := range list {
		out.Teams = append(out.Teams, Team{t.ID, t.Name, append([]string{}, t.Members...)})
	}
	return asJSON(http.StatusOK, out)
}

// TeamBody is a team to be added. Who is in it stands with the user.
type TeamBody struct {
	ID   string `json:"id" minLength:"1" doc:"A word; deciders name it."`
	Name string `json:"name,omitempty" doc:"For people; without it the id."`
}

type teamInput struct {
	Key     string `header:"Idempotency-Key"`
	Body    TeamBody
	RawBody []byte
}

func (s *server) postTeam(ctx context.Context, w access.Who, in *teamInput) (*answer, error) {
	if err := access.May(w, access.UsersManage, access.All); err != nil {
		return nil, err
	}
	t := Team{in.Body.ID, cmp.Or(in.Body.Name, in.Body.ID), []string{}}
	return s.once(ctx, w, seen{owner: every}, access.UsersManage, in.Key, in.RawBody, func(bool) (*answer, error) {
		if err := s.Directory.AddTeam(ctx, w, t.ID, t.Name); err != nil {
			return nil, err
		}
		return asJSON(http.StatusCreated, t)
	})
}

func (s *server) postRemoveTeam(ctx context.Context, w access.Who, in *idInput) (*answer, error) {
	if err := access.May(w, access.UsersManage, access.All); err != nil {
		return nil, err
	}
	return s.once(ctx, w, seen{owner: every}, access.UsersManage, in.Key, nil, func(bool) (*answer, error) {
		if err := s.Directory.RemoveTeam(ctx, w, in.ID); err != nil {
			return nil, err
		}
		return asJSON(http.StatusOK, Done{in.ID})
	})
}
