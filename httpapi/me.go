package httpapi

import (
	"context"
	"net/http"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// Me is who asks.
type Me struct {
	ID    string              `json:"id"`
	Name  string              `json:"name,omitempty"`
	Kind  ringi.PrincipalKind `json:"kind"`
	Space string              `json:"space"`
	Roles []access.Role       `json:"roles"`
	Teams []string            `json:"teams"`
	// Owner is who answers for an agent's token.
	Owner string `json:"owner,omitempty"`
	// Token is the one that was sent; none for a session.
	Token *MyToken `json:"token,omitempty"`
	// May are the routes of the table of rights that are his at all, for
	// something.
	May []access.Route `json:"may"`
}

// MyToken is the token that was sent.
type MyToken struct {
	ID     string         `json:"id"`
	Scopes []access.Scope `json:"scopes"`
	Agents []string       `json:"agents"`
}

// getMe tells everybody who he is: it needs no right.
func (s *server) getMe(_ context.Context, w access.Who, _ *struct{}) (*answer, error) {
	out := Me{ID: w.Principal.ID, Name: w.Principal.Name, Kind: w.Principal.Kind, Space: w.Space, Owner: w.Owner,
		Roles: append([]access.Role{}, w.Roles...), Teams: append([]string{}, w.Principal.Teams...), May: []access.Route{}}
	if w.TokenID != "" {
		out.Token = &MyToken{w.TokenID, append([]access.Scope{}, w.Scopes...), append([]string{}, w.Agents...)}
	}
	for _, route := range access.Routes() {
		if access.May(w, route, every) == nil {
			out.May = append(out.May, route)
		}
	}
	return asJSON(http.StatusOK, out)
}
