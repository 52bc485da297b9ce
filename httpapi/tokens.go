package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi/access"
)

// Tokens is a page of tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
	// Next continues the list as its after; empty at the end.
	Next string `json:"next,omitempty"`
}

// Token is a token without its secret.
type Token struct {
	ID        string           `json:"id"`
	Kind      access.TokenKind `json:"kind"`
	Name      string           `json:"name"`
	Owner     string           `json:"owner,omitempty"`
	Agents    []string         `json:"agents"`
	Scopes    []access.Scope   `json:"scopes"`
	MadeBy    string           `json:"made_by"`
	GrantedBy string           `json:"granted_by,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	EndsAt    time.Time        `json:"ends_at"`
	UsedAt    time.Time        `json:"used_at,omitzero"`
	RevokedAt time.Time        `json:"revoked_at,omitzero"`
}

func tokenOf(t access.Token) Token {
	return Token{t.ID, t.Kind, t.Name, t.Owner, append([]string{}, t.Agents...), append([]access.Scope{}, t.Scopes...), t.MadeBy, t.GrantedBy,
		t.CreatedAt, t.EndsAt, t.UsedAt, t.RevokedAt}
}

// NewToken is a token with its secret.
type NewToken struct {
	Token
	Secret string `json:"secret" doc:"What the header Authorization carries. It is shown this once."`
}

// Done says that something is as it was asked to be.
type Done struct {
	ID string `json:"id"`
}

type tokensInput struct {
	Owner string `query:"owner" doc:"Only this user's; without it all, for who may see them, or one's own."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	After string `query:"after" doc:"The member next of the page before."`
}

func (s *server) listTokens(ctx context.Context, w access.Who, in *tokensInput) (*answer, error) {
	if in.Owner == "" && access.May(w, access.TokensMake, access.All) != nil {
		in.Owner = w.Principal.ID
	}
	list, err := s.Directory.Tokens(ctx, w, in.Owner, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := Tokens{Tokens: []Token{}}
	for _, t := range list {
		out.Tokens = append(out.Tokens, tokenOf(t))
	}
	if len(list) == in.Limit {
		out.Next = list[len(list)-1].ID
	}
	return asJSON(http.StatusOK, out)
}

// TokenBody is the wish for a token.
type TokenBody struct {
	Kind    string   `json:"kind" enum:"agent,person"`
	Name    string   `json:"name" doc:"For people; an agent's is a word, and its client."`
	Owner   string   `json:"owner,omitempty" doc:"The user whose token it is; without it who asks."`
	Unowned bool     `json:"unowned,omitempty" doc:"An agent's token that belongs to nobody."`
	Agents  []string `json:"agents,omitempty" doc:"Needed for an agent's token; * is all."`
	Scopes  []string `json:"scopes" minItems:"1"`
	Seconds int64    `json:"seconds,omitempty" minimum:"1" doc:"How long it lives; without it as long as allowed."`
}

type tokenInput struct {
	Key     string `header:"Idempotency-Key" doc:"A repeat is refused: the secret is not kept."`
	Body    TokenBody
	RawBody []byte
}

func (s *server) postToken(ctx context.Context, w access.Who, in *tokenInput) (*answer, error) {
	if err := access.May(w, access.TokensMake, every); err != nil {
		return nil, err
	}
	n := access.NewToken{Kind: access.TokenKind(in.Body.Kind), Name: in.Body.Name, Owner: in.Body.Owner, Unowned: in.Body.Unowned,
		Agents: in.Body.Agents}
	if in.Body.Seconds > int64(100*365*24*time.Hour/time.Second) {
		return nil, fmt.Errorf("%w: seconds is more than a lifetime", errUnread)
	}
	n.For = time.Duration(in.Body.Seconds) * time.Second
	for _, scope := range in.Body.Scopes {
		n.Scopes = append(n.Scopes, access.Scope(scope))
	}
	return s.once(ctx, w, seen{owner: every}, access.TokensMake, in.Key, in.RawBody, func(bool) (*answer, error) {
		t, secret, err := s.Directory.MakeToken(ctx, w, n)
		if err != nil {
			return nil, err
		}
		a, err := asJSON(http.StatusCreated, NewToken{tokenOf(t), secret})
		if err == nil {
			a.secret = true
		}
		return a, err
	})
}

type idInput struct {
	ID   string `path:"id"`
	Key  string `header:"Idempotency-Key"`
	Body *struct{}
}

func (s *server) postRevoke(ctx context.Context, w access.Who, in *idInput) (*answer, error) {
	if err := access.May(w, access.TokensMake, every); err != nil {
		return nil, err
	}
	return s.once(ctx, w, seen{owner: every}, access.TokensMake, in.Key, nil, func(bool) (*answer, error) {
		if err := s.Directory.RevokeToken(ctx, w, in.ID); err != nil {
			return nil, err
		}
		return asJSON(http.StatusOK, Done{in.ID})
	})
}
